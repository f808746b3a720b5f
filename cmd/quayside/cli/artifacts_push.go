package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/bom"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/ship"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/artifact"
	"github.com/quayside/quayside/registry/sign"
	"github.com/quayside/quayside/registry/trust"
)

type pushOptions struct {
	*app
	signingOptions
	clusters    []string
	environment bool
	at          string
	branch      string
	bom         bool
}

func newPush(a *app) *cobra.Command {
	o := &pushOptions{app: a}
	cmd := &cobra.Command{
		Use:   "push {oci://REGISTRY/REPOSITORY[:TAG] | oci:DIRECTORY[:TAG]}",
		Short: "Push the rendered tree as an artifact that Flux and Argo CD apply",
		Long: doc(`
			Push the rendered tree as one OCI artifact, as Flux's OCIRepository and Argo CD's
			OCI source take it, to a registry or into an OCI layout. Prints its reference by
			digest.

			What is pushed is the tree of the commit that is checked out, or of the one that
			--at names: the whole environment, or with --cluster what these clusters get of
			it, and all that their overlays build from, wherever that lies in the repository.
			The artifact begins where spec.gitops.path finds the tree below it (default:
			spec.output), so that the paths in what Flux or Argo CD apply are right.

			The same commit of the same branch gives the same digest on every machine: name
			the branch where a commit is checked out, as in CI. What the registry holds
			already is not sent again; the tag moves.

			With --sign the artifact is signed, by its digest, as 'quayside sign' does it, and
			so is a statement of what it was made of beside it (provenance, as SLSA has it), and
			with --bom one of the bill of materials. The tag moves last, so that whoever follows
			it never sees an artifact without its signature.

			A work tree that differs from the commit is refused, and so is a tree that is not
			what its lock says, or an overlay that does not build.

			Credentials are those of 'podman login' and 'docker login'.

			Exit codes: 0 done; 1 the tree is not what the lock says; 2 an error.`),
		Example: examples(`
			quayside push oci://registry.example.com/fleet/stage:main
			quayside push oci://registry.example.com/fleet/default:main --cluster default
			quayside push oci://registry.example.com/fleet/stage:main --sign cosign.key`),
		Args:              wantArgs("where to push to, as oci://registry/repository:tag"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !strings.HasPrefix(args[0], "oci:") {
				return usagef(cmd, "%q: want oci://registry/repository:tag, or oci:directory:tag", args[0])
			}
			for _, flag := range []string{"bom", "sign"} {
				if cmd.Flags().Changed(flag) && !strings.HasPrefix(args[0], "oci://") {
					return usagef(cmd, "--%s is for a registry: a layout does not say what belongs together", flag)
				}
			}
			if cmd.Flags().Changed("sign") && o.Key == "" {
				return usagef(cmd, "--sign with what? name a key")
			}
			return o.run(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.clusters, "cluster", nil, "push what `CLUSTER` gets; may be repeated")
	f.BoolVar(&o.environment, "environment", false, "push what all clusters get (default)")
	f.StringVar(&o.at, "at", "", "push the tree of `REVISION`, whatever is checked out")
	f.StringVar(&o.branch, "branch", "", "say that the commit is of `BRANCH` (default: the one that is checked out)")
	f.BoolVar(&o.bom, "bom", false, "put a bill of materials beside it, as 'quayside bom -o cyclonedx' makes it")
	o.addTo(cmd, "sign")
	cmd.MarkFlagsMutuallyExclusive("cluster", "environment")
	offer(cmd, "cluster", a.overlays)
	addOutput(cmd, a, nil, pushView{})
	return cmd
}

// pushView is what `quayside push` prints.
type pushView struct {
	Reference string    `json:"reference" doc:"by digest"`
	Tag       string    `json:"tag,omitempty"`
	Digest    string    `json:"digest"`
	Bytes     int64     `json:"bytes" doc:"of the manifest and what it names"`
	Signed    string    `json:"signed,omitempty" form:"enum=signed|present" doc:"With --sign: whether it was signed now, or was before."`
	State     pushState `json:"state" doc:"sent; tagged: the repository held it, and the tag was set; present: the tag named it already"`
	Files     int       `json:"files"`
	Clusters  []string  `json:"clusters,omitempty" doc:"that it is for; none: all of the environment"`
	Source    string    `json:"source,omitempty"`
	Revision  string    `json:"revision"`
	Created   string    `json:"created"`
}

type pushState string

func (o *pushOptions) run(ctx context.Context, to string) error {
	p, here, err := o.here()
	if err != nil {
		return err
	}
	var signer *sign.Signer
	if o.Key != "" {
		if signer, err = here.Signer(ctx, o.Signing); err != nil {
			return err
		}
	}
	cargo, err := ship.Load(ctx, p, ship.Options{At: o.at, Branch: o.branch, Clusters: o.clusters})
	if err != nil {
		return err
	}
	packed, err := artifact.Pack(cargo.Files.FS(), cargo.Meta)
	if err != nil {
		return err
	}
	client, err := here.Client()
	if err != nil {
		return err
	}
	d := &delivery{pushOptions: o, project: p, client: client, signer: signer, to: to, cargo: cargo, packed: packed}
	o.talk.Progress("pushing %s", to)
	state, err := d.send(ctx)
	o.talk.Done()
	if err != nil {
		return err
	}
	return d.print(state)
}

// delivery is an artifact on its way.
type delivery struct {
	*pushOptions
	project *project.Project
	client  *registry.Client
	signer  *sign.Signer // nil: it is not signed
	to      string
	cargo   *ship.Cargo
	packed  *registry.Packed
	signed  string // as pushView has it
}

// send puts an artifact where it belongs, and says what that took. The tag comes
// last: what stands beside an artifact is there when engines see it.
func (d *delivery) send(ctx context.Context) (pushState, error) {
	src, err := registry.ParseSource(d.to)
	if err != nil {
		return "", err
	}
	if src.Kind == registry.Layout {
		dir, tag, err := d.layoutTarget(d.to)
		if err != nil {
			return "", err
		}
		return "sent", d.packed.WriteLayout(dir, tag)
	}
	ref := registry.ByDigest(d.to, d.packed.Digest())
	first, err := d.client.Send(ctx, ref, d.packed)
	if err == nil {
		err = d.accompany(ctx, ref)
	}
	if err != nil {
		return "", err
	}
	named, err := d.client.Send(ctx, d.to, d.packed)
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
	statements := []statement{{trust.Provenance, d.cargo.Origin.Predicate()}}
	if d.bom {
		list, err := d.attachBOM(ctx, ref)
		if err != nil {
			return err
		}
		statements = append(statements, statement{bom.PredicateType, list})
	}
	if d.signer == nil {
		return nil
	}
	d.signed = "present"
	for _, s := range statements {
		sent, err := d.project.Attest(ctx, d.signer, ref, s.kind, s.predicate)
		if err != nil {
			return err
		}
		d.note(sent)
	}
	_, sent, err := d.project.Sign(ctx, d.signer, ref)
	d.note(sent)
	return err
}

// note takes down whether something was signed now.
func (d *delivery) note(sent bool) {
	if sent {
		d.signed = "signed"
	}
}

// statement is what is stated of an artifact.
type statement struct {
	kind      string
	predicate any
}

// attachBOM puts the bill of materials beside an artifact.
func (d *delivery) attachBOM(ctx context.Context, ref string) (*bom.Document, error) {
	list, err := materials(ctx, d.cargo.Project, d.cargo.Lock)
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

func (d *delivery) print(state pushState) error {
	src, err := registry.ParseSource(d.to)
	if err != nil {
		return err
	}
	v := pushView{
		Reference: byDigest(src, d.packed.Digest()), Tag: src.Tag, Digest: d.packed.Digest(), Bytes: d.packed.Size(),
		State: state, Signed: d.signed, Files: d.cargo.Files.Len(), Clusters: d.cargo.Clusters,
		Source: d.cargo.Meta.Source, Revision: d.cargo.Meta.Revision, Created: d.cargo.Meta.Created.UTC().Format(time.RFC3339),
	}
	said := map[pushState]string{
		"sent": "pushed %s (%s, %s)", "tagged": "%s names what was there already (%s, %s): nothing was sent", "present": "%s is there already (%s, %s): nothing was sent",
	}
	d.talk.Note(said[state], inert.Line(src.String()), diag.Count(v.Files, "file"), inert.Line(v.Revision))
	switch d.signed {
	case "signed":
		d.talk.Note("signed it")
	case "present":
		d.talk.Note("signed already")
	}
	return d.app.print(v, func(w io.Writer) { fmt.Fprintln(w, inert.Line(v.Reference)) })
}

// byDigest returns what pushed names, by digest, as diff and verify take it.
func byDigest(pushed registry.Source, digest string) string {
	ref := registry.ByDigest(pushed.String(), digest)
	if pushed.Kind == registry.Remote {
		ref = "oci://" + ref
	}
	return ref
}
