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
	"github.com/quayside/quayside/internal/ship"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/artifact"
)

type pushOptions struct {
	*app
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

			A work tree that differs from the commit is refused, and so is a tree that is not
			what its lock says, or an overlay that does not build.

			Credentials are those of 'podman login' and 'docker login'.

			Exit codes: 0 done; 1 the tree is not what the lock says; 2 an error.`),
		Example: examples(`
			quayside push oci://registry.example.com/fleet/stage:main
			quayside push oci://registry.example.com/fleet/default:main --cluster default`),
		Args:              wantArgs("where to push to, as oci://registry/repository:tag"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !strings.HasPrefix(args[0], "oci:") {
				return usagef(cmd, "%q: want oci://registry/repository:tag, or oci:directory:tag", args[0])
			}
			if o.bom && !strings.HasPrefix(args[0], "oci://") {
				return usagef(cmd, "--bom is for a registry: a layout does not say what belongs together")
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
	o.talk.Progress("pushing %s", to)
	state, err := o.send(ctx, client, to, packed)
	if err == nil && o.bom {
		err = o.attachBOM(ctx, client, to, cargo, packed)
	}
	o.talk.Done()
	if err != nil {
		return err
	}
	return o.printPushed(to, state, cargo, packed)
}

// attachBOM puts the bill of materials beside an artifact.
func (o *pushOptions) attachBOM(ctx context.Context, client *registry.Client, to string, cargo *ship.Cargo, packed *registry.Packed) error {
	d, err := materials(ctx, cargo.Project, cargo.Lock)
	if err != nil {
		return err
	}
	data, err := d.Text()
	if err != nil {
		return err
	}
	_, _, err = client.Attach(ctx, registry.ByDigest(to, packed.Digest()), registry.Attachment{Type: bom.MediaType, Data: data})
	return err
}

// send puts an artifact where it belongs, and says what that took.
func (o *pushOptions) send(ctx context.Context, client *registry.Client, to string, packed *registry.Packed) (pushState, error) {
	src, err := registry.ParseSource(to)
	if err != nil {
		return "", err
	}
	if src.Kind == registry.Layout {
		dir, tag, err := o.layoutTarget(to)
		if err != nil {
			return "", err
		}
		return "sent", packed.WriteLayout(dir, tag)
	}
	sent, err := client.Send(ctx, to, packed)
	switch {
	case sent.Present:
		return "present", err
	case sent.Held:
		return "tagged", err
	default:
		return "sent", err
	}
}

func (o *pushOptions) printPushed(to string, state pushState, cargo *ship.Cargo, packed *registry.Packed) error {
	src, err := registry.ParseSource(to)
	if err != nil {
		return err
	}
	v := pushView{
		Reference: byDigest(src, packed.Digest()), Tag: src.Tag, Digest: packed.Digest(), Bytes: packed.Size(),
		State: state, Files: cargo.Files.Len(), Clusters: cargo.Clusters,
		Source: cargo.Meta.Source, Revision: cargo.Meta.Revision, Created: cargo.Meta.Created.UTC().Format(time.RFC3339),
	}
	said := map[pushState]string{
		"sent": "pushed %s (%s, %s)", "tagged": "%s names what was there already (%s, %s): nothing was sent", "present": "%s is there already (%s, %s): nothing was sent",
	}
	o.talk.Note(said[state], inert.Line(src.String()), diag.Count(v.Files, "file"), inert.Line(v.Revision))
	return o.print(v, func(w io.Writer) { fmt.Fprintln(w, inert.Line(v.Reference)) })
}

// byDigest returns what pushed names, by digest, as diff and verify take it.
func byDigest(pushed registry.Source, digest string) string {
	ref := registry.ByDigest(pushed.String(), digest)
	if pushed.Kind == registry.Remote {
		ref = "oci://" + ref
	}
	return ref
}
