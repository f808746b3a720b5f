package ship

import (
	"context"
	"fmt"

	"github.com/quayside/quayside/internal/bom"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/artifact"
	"github.com/quayside/quayside/registry/sign"
	"github.com/quayside/quayside/registry/trust"
)

// Delivery is the destination of an artifact, with its attachments.
type Delivery struct {
	To      string           // "oci://registry/repository:tag", "oci:directory:tag"
	Project *project.Project // its settings decide which artifacts are signed already
	Here    *project.Project // the same, as paths in To are meant
	Signer  *sign.Signer     // nil: it is not signed

	// BOM returns the bill of materials to attach; nil: none is attached.
	BOM func(context.Context, *project.Project, *lockfile.File) (*bom.Document, error)
}

// Sent is an artifact where it belongs.
type Sent struct {
	Reference string   `json:"reference" doc:"by digest"`
	Tag       string   `json:"tag,omitempty"`
	Digest    string   `json:"digest"`
	Bytes     int64    `json:"bytes" doc:"of the manifest and what it names"`
	Signed    string   `json:"signed,omitempty" form:"enum=signed|present" doc:"With --sign: whether it was signed now, or was before."`
	State     State    `json:"state" doc:"sent; tagged: the repository held it, and the tag was set; present: the tag named it already"`
	Files     int      `json:"files"`
	Clusters  []string `json:"clusters,omitempty" doc:"that it is for; none: all of the environment"`
	Source    string   `json:"source,omitempty"`
	Revision  string   `json:"revision"`
	Created   string   `json:"created"`

	to registry.Source
}

// State is what it took to send an artifact.
type State string

// delivery is an artifact on its way.
type delivery struct {
	Delivery
	cargo  *Cargo
	client *registry.Client
	packed *registry.Packed
	signed string // as Sent has it
}

// Send puts an artifact where it belongs.
func (c *Cargo) Send(ctx context.Context, opt Delivery) (*Sent, error) {
	packed, err := artifact.Pack(c.Files.FS(), c.Meta)
	if err != nil {
		return nil, err
	}
	client, err := opt.Here.Client()
	if err != nil {
		return nil, err
	}
	talk := opt.Project.Talk
	talk.Progress("pushing %s", opt.To)
	defer talk.Done()
	to, err := registry.ParseSource(opt.To)
	if err != nil {
		return nil, err
	}
	d := &delivery{Delivery: opt, cargo: c, client: client, packed: packed}
	state, err := d.send(ctx, to)
	if err != nil {
		return nil, err
	}
	ref := registry.ByDigest(to.String(), packed.Digest())
	if to.Kind == registry.Remote {
		ref = "oci://" + ref // as diff and verify take it
	}
	return &Sent{
		Reference: ref, Tag: to.Tag, Digest: packed.Digest(), Bytes: packed.Size(), State: state, Signed: d.signed, Files: c.Files.Len(), Clusters: c.Clusters,
		Source: c.Meta.Source, Revision: c.Meta.Revision, Created: c.Meta.When(), to: to,
	}, nil
}

// send sends an artifact, and says what that took. The tag comes last: what stands
// beside an artifact is there when engines see it.
func (d *delivery) send(ctx context.Context, to registry.Source) (State, error) {
	if to.Kind == registry.Layout {
		if to.Digest != "" {
			return "", fmt.Errorf("%q: want oci:path or oci:path:tag", d.To)
		}
		return "sent", d.packed.WriteLayout(d.Here.Path(to.Name), to.Tag)
	}
	ref := registry.ByDigest(d.To, d.packed.Digest())
	first, err := d.client.Send(ctx, ref, d.packed)
	if err == nil {
		err = d.accompany(ctx, ref)
	}
	if err != nil {
		return "", err
	}
	named, err := d.client.Send(ctx, d.To, d.packed)
	switch {
	case !first.Held:
		return "sent", err
	case !named.Present:
		return "tagged", err
	default:
		return "present", err
	}
}

// accompany puts what is asked for beside an artifact, which ref names by digest.
// Its signature comes last, when all that it is found with is there.
func (d *delivery) accompany(ctx context.Context, ref string) error {
	var list *bom.Document
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
	note := func(sent bool, err error) error {
		if sent {
			d.signed = "signed"
		}
		return err
	}
	if err := note(d.Project.Attest(ctx, d.Signer, ref, trust.Provenance, d.cargo.Origin.Predicate())); err != nil {
		return err
	}
	if list != nil {
		if err := note(d.Project.Attest(ctx, d.Signer, ref, bom.PredicateType, list)); err != nil {
			return err
		}
	}
	return note(d.Project.Sign(ctx, d.Signer, ref))
}

// attachBOM puts the bill of materials beside an artifact.
func (d *delivery) attachBOM(ctx context.Context, ref string) (*bom.Document, error) {
	list, err := d.BOM(ctx, d.cargo.Project, d.cargo.Lock)
	if err != nil {
		return nil, err
	}
	data, err := list.Text()
	if err != nil {
		return nil, err
	}
	_, _, err = d.client.Attach(ctx, ref, registry.Attachment{Type: bom.MediaType, Data: data})
	return list, err
}

// Tell notes what it took.
func (s *Sent) Tell(talk project.Talk) {
	said := map[State]string{
		"sent": "pushed %s (%s, %s)", "tagged": "%s names what was there already (%s, %s): nothing was sent", "present": "%s is there already (%s, %s): nothing was sent",
	}
	talk.Note(said[s.State], inert.Line(s.to.String()), diag.Count(s.Files, "file"), inert.Line(s.Revision))
	switch s.Signed {
	case "signed":
		talk.Note("signed it")
	case "present":
		talk.Note("signed already")
	}
}
