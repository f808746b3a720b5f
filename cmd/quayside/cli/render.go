package cli

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/app/compare"
	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/render"
)

type renderOptions struct {
	*app
	stdout  bool
	overlay string
	check   bool
	force   bool

	observed []string
}

func newRender(a *app) *cobra.Command {
	o := &renderOptions{app: a}
	cmd := &cobra.Command{
		Use:   "render",
		Short: "Write the manifests of all operators in quayside.lock",
		Long: Doc(`
			Write the manifests of every operator in quayside.lock as a tree of kustomizations:
			a base for each operator, an overlay for each cluster, and a directory with all
			CustomResourceDefinitions. The tree is written to rendered/, or to spec.output of
			quayside.yaml.

			quayside reads only the lock, quayside.yaml and the bundles: the same lock gives the
			same bytes on every machine. It removes its own files that are no longer needed, and
			does not touch files that it did not write. If you edited one of its files, it reports
			an error: move your change to an overlay, or overwrite the file with --force.

			quayside computes what the operators need from the clusters: APIs, classes, Secrets,
			Pod Security levels, OLM. If neither the tree, nor spec.provides, nor an observation
			(--observed) meets a need, and the cluster would reject the objects or pods, it reports
			an error and writes nothing. The same applies to patches in overlays, and to settings of
			the GitOps tool, that select no object.

			With --stdout, nothing is written: quayside builds the overlay of one cluster, with
			your patches, like 'kubectl kustomize', and prints the CustomResourceDefinitions and
			then the other objects.

			See also: docs/needs.md
			Exit codes: 0 done; 1 with --check, the tree is out of date; 2 an error.`),
		Example: Examples(`
			# write the tree
			quayside render

			# in CI: check that the committed tree is up to date with the lock
			quayside render --check

			# print the objects of one cluster as one stream, in apply order
			quayside render --stdout --overlay default`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.stdout && (o.check || cmd.Flags().Changed("output")) {
				return Usagef(cmd, "--stdout cannot be used with --check or --output")
			}
			if o.overlay != "" && !o.stdout {
				return Usagef(cmd, "--overlay requires --stdout")
			}
			if o.force && (o.stdout || o.check) {
				return Usagef(cmd, "--force cannot be used with --check or --stdout")
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.stdout, "stdout", false, "print one stream of YAML documents in apply order instead of writing the tree")
	f.StringVar(&o.overlay, "overlay", "", "with --stdout, the `CLUSTER` to print (default: the only one)")
	f.BoolVar(&o.check, "check", false, "write nothing; print the differences and exit with 1 if there are any")
	f.BoolVar(&o.force, "force", false, "overwrite and remove files of the tree that were edited by hand")
	addObservedSupply(cmd, &o.observed)
	addOffline(cmd, o.app)
	addOutput(cmd, a, nil, workspace.TreeReport{})
	addAll(cmd, a, "stdout")
	a.offer(cmd, "overlay", a.clusterCompletions)
	addWriter(cmd, a, "check", "stdout")
	return cmd
}

func (o *renderOptions) run(ctx context.Context) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	if p.Observed, err = o.readObserved(p, o.observed...); err != nil {
		return err
	}
	if o.stdout {
		res, err := p.RenderLock(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(p.CheckNeeds(res), compare.CheckTargets(p, res)); err != nil {
			return err
		}
		return o.stream(p, res)
	}
	var r *workspace.TreeReport
	if o.check {
		r, err = p.CheckTree(ctx, false)
	} else {
		r, err = p.WriteTree(ctx, o.force)
	}
	if err != nil {
		return err
	}
	err = o.print(r, func(io.Writer) { r.Print(o.out, o.log) })
	if err == nil && o.check {
		err = r.Err()
	}
	return err
}

// stream prints the objects of a cluster, including those in the user's overlays.
func (o *renderOptions) stream(p *workspace.Project, res *render.Result) error {
	cluster, err := p.Cluster(o.overlay, "--overlay")
	if err != nil {
		return err
	}
	build, err := compare.Builder(p, res)
	if err != nil {
		return err
	}
	text, err := render.StreamOverlay(res, build, cluster)
	if err != nil {
		return err
	}
	_, err = o.out.Write(text)
	return err
}
