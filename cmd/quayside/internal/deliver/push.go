package deliver

import (
	"context"
	"fmt"

	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/oci/artifact"
	"github.com/quayside/quayside/internal/oci/sign"
	"github.com/quayside/quayside/internal/oci/trust"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/lockfile"
)

// PushOptions are the target and the attachments of a pushed artifact.
type PushOptions struct {
	To      string             // "oci://registry/repository:tag", "oci:directory:tag"
	Project *workspace.Project // workspace of the tree; its spec.trust decides whether the artifact is signed already
	Here    *workspace.Project // workspace on disk; paths in To are relative to it
	Signer  *sign.Signer       // nil: do not sign

	// BOM creates the bill of materials to attach; nil: attach none.
	BOM func(context.Context, *workspace.Project, *lockfile.File) (*inventory.BOM, error)
}

// PushResult is a pushed artifact.
type PushResult struct {
	Reference string    `json:"reference" doc:"reference by digest"`
	Tag       string    `json:"tag,omitempty"`
	Digest    string    `json:"digest"`
	Bytes     int64     `json:"bytes" doc:"size of the manifest and its blobs"`
	Signed    string    `json:"signed,omitempty" form:"enum=signed|present" doc:"With --sign: whether it was signed now, or was before."`
	State     PushState `json:"state" doc:"sent: this run pushed the artifact; tagged: the repository already had the artifact, and this run set the tag; present: the tag already named the artifact"`
	Files     int       `json:"files"`
	Clusters  []string  `json:"clusters,omitempty" doc:"target clusters; absent: all clusters of the environment"`
	Source    string    `json:"source,omitempty"`
	Revision  string    `json:"revision"`
	Created   string    `json:"created"`

	to oci.Reference
}

// PushState is the outcome of a push.
type PushState string

// push is a push in progress.
type push struct {
	PushOptions
	tree   *Tree
	client *oci.Client
	packed *oci.Packed
	signed string // value of PushResult.Signed
}

// Push packs the tree as an artifact and pushes it.
func (c *Tree) Push(ctx context.Context, opt PushOptions) (*PushResult, error) {
	packed, err := artifact.Pack(c.Files.FS(), c.Meta)
	if err != nil {
		return nil, err
	}
	client, err := opt.Here.Client()
	if err != nil {
		return nil, err
	}
	log := opt.Project.Log
	log.Progress("pushing %s", opt.To)
	defer log.Done()
	to, err := oci.ParseReference(opt.To)
	if err != nil {
		return nil, err
	}
	d := &push{PushOptions: opt, tree: c, client: client, packed: packed}
	state, err := d.pushTo(ctx, to)
	if err != nil {
		return nil, err
	}
	ref := oci.ByDigest(to.String(), packed.Digest())
	if to.Kind == oci.Remote {
		ref = "oci://" + ref // the form that 'quayside diff' and 'quayside verify' accept
	}
	return &PushResult{
		Reference: ref, Tag: to.Tag, Digest: packed.Digest(), Bytes: packed.Size(), State: state, Signed: d.signed, Files: c.Files.Len(), Clusters: c.Clusters,
		Source: c.Meta.Source, Revision: c.Meta.Revision, Created: c.Meta.When(), to: to,
	}, nil
}

// pushTo pushes the artifact, then its attachments, and sets the tag last, so that a tagged artifact is always
// complete.
func (d *push) pushTo(ctx context.Context, to oci.Reference) (PushState, error) {
	if to.Kind == oci.Layout {
		if to.Digest != "" {
			return "", fmt.Errorf("%q: must be oci:path or oci:path:tag", d.To)
		}
		return "sent", d.packed.WriteLayout(d.Here.Path(to.Name), to.Tag)
	}
	ref := oci.ByDigest(d.To, d.packed.Digest())
	first, err := d.client.Send(ctx, ref, d.packed)
	if err == nil {
		err = d.attachStatements(ctx, ref)
	}
	if err != nil {
		return "", err
	}
	named, err := d.client.Send(ctx, d.To, d.packed)
	switch {
	case !first.Exists:
		return "sent", err
	case !named.UpToDate:
		return "tagged", err
	default:
		return "present", err
	}
}

// attachStatements attaches the bill of materials and the attestations. It attaches the signature last, so that
// a signed artifact is always complete. ref must have a digest.
func (d *push) attachStatements(ctx context.Context, ref string) error {
	var list *inventory.BOM
	var err error
	if d.BOM != nil {
		if list, err = d.attachBOM(ctx, ref); err != nil {
			return err
		}
	}
	if d.Signer == nil {
		return nil
	}
	d.signed = "present"
	record := func(sent bool, err error) error {
		if sent {
			d.signed = "signed"
		}
		return err
	}
	if err := record(d.Project.Attest(ctx, d.Signer, ref, trust.Provenance, d.tree.Origin.Predicate())); err != nil {
		return err
	}
	if list != nil {
		if err := record(d.Project.Attest(ctx, d.Signer, ref, inventory.BOMPredicateType, list)); err != nil {
			return err
		}
	}
	return record(d.Project.Sign(ctx, d.Signer, ref))
}

// attachBOM attaches the bill of materials to an artifact.
func (d *push) attachBOM(ctx context.Context, ref string) (*inventory.BOM, error) {
	list, err := d.BOM(ctx, d.tree.Project, d.tree.Lock)
	if err != nil {
		return nil, err
	}
	data, err := list.Text()
	if err != nil {
		return nil, err
	}
	_, _, err = d.client.Attach(ctx, ref, oci.Attachment{Type: inventory.BOMMediaType, Data: data})
	return list, err
}

// Log logs whether the artifact was pushed, tagged and signed.
func (s *PushResult) Log(log workspace.Logger) {
	formats := map[PushState]string{
		"sent": "pushed %s (%s, %s)", "tagged": "tagged %s (%s, %s), which already exists", "present": "%s already exists (%s, %s): nothing pushed",
	}
	log.Note(formats[s.State], sanitize.Line(s.to.String()), diag.Count(s.Files, "file"), sanitize.Line(s.Revision))
	switch s.Signed {
	case "signed":
		log.Note("signed the artifact")
	case "present":
		log.Note("the artifact is already signed")
	}
}
