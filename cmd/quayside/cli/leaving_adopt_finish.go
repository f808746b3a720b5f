package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
)

type adoptFinishOptions struct {
	*app
	check bool
}

func newAdoptFinish(a *app) *cobra.Command {
	o := &adoptFinishOptions{app: a}
	cmd := &cobra.Command{
		Use:   "finish [NAMESPACE/PACKAGE...]",
		Short: "Stop keeping what OLM did to operators that were taken over",
		Long: doc(`
			Take out of quayside.lock what it keeps of OLM's for operators that were taken over,
			all of them or those that are named, so that the next render makes them as any other
			operator: without OLM's annotations on the pods, with certificates that the
			workspace's provider makes and renews (spec.certificates), and with an
			OperatorCondition that keeps its name from version to version.

			The pods of these operators restart once when the new tree is applied; the command
			says which, and what else changes. Where webhooks or conversions trusted OLM's
			certificates, the provider must be at work in the cluster before the tree is
			applied, and what they are called for is refused until it has issued its own. An
			operator's next version does the same by itself. Render the tree after that.

			What is OLM's in the objects of the cluster, no tool takes away that applies the
			tree: 'quayside adopt plan' and 'quayside adopt run' do, before the tree is merged.

			Exit codes: 0 done; 1 with --check, something would be written; 2 an error.`),
		Example: examples(`
			# what would change
			quayside adopt finish --check

			# one operator
			quayside adopt finish my-etcd/etcd
			quayside render`),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.operators,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVar(&o.check, "check", false, "write nothing; exit with 1 if anything would be written")
	addOffline(cmd, a)
	addOutput(cmd, a, nil, adoptFinishView{})
	return cmd
}

// adoptFinishView is what `quayside adopt finish` prints.
type adoptFinishView struct {
	Written   bool             `json:"written" doc:"Whether the lock was written. false: nothing was to be written, or --check."`
	Operators []adopt.Finished `json:"operators" doc:"By namespace and package."`
	Shared    []adopt.Change   `json:"shared" doc:"What else of the tree changes."`
}

func (o *adoptFinishOptions) run(ctx context.Context, args []string) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	f, err := p.Finish(ctx, args)
	if err != nil {
		return err
	}
	v := adoptFinishView{Operators: f.Operators, Shared: f.Shared}
	if !o.check && len(f.Operators) > 0 {
		if v.Written, err = filetree.WriteFile(p.Path(project.LockFile), lockfile.Format(f.Lock)); err != nil {
			return err
		}
	}
	if err := o.print(v, func(w io.Writer) { o.show(w, v) }); err != nil {
		return err
	}
	if o.check && len(f.Operators) > 0 {
		return &project.DiffersError{Msg: "something of OLM's is kept for " + diag.Count(len(f.Operators), "operator")}
	}
	return nil
}

func (o *adoptFinishOptions) show(w io.Writer, v adoptFinishView) {
	for _, f := range v.Operators {
		fmt.Fprintf(w, "%s/%s (%s)\n", inert.Line(f.Namespace), inert.Line(f.Package), inert.Line(f.Bundle))
		for _, r := range f.Restarts {
			fmt.Fprintf(w, "    %s restarts: %s\n", inert.Line("Deployment "+r.Deployment), inert.Line(paths(r.Fields)))
		}
		if f.Condition.From != f.Condition.To {
			fmt.Fprintf(w, "    %s\n", inert.Line("OperatorCondition "+f.Condition.From+" becomes "+f.Condition.To))
		}
		for _, service := range f.Certificates {
			fmt.Fprintf(w, "    %s\n", inert.Line("the certificate of Service "+service+" comes from the provider in spec.certificates"))
		}
		for _, kind := range f.Needs {
			fmt.Fprintf(w, "    %s\n", inert.Line("the cluster must serve "+kind+" before the tree is applied"))
		}
		o.list(w, f.Objects)
	}
	if len(v.Shared) > 0 {
		fmt.Fprint(w, "of several operators, or of none\n")
		o.list(w, v.Shared)
	}
	fmt.Fprintf(w, "%s\n", diag.Count(len(v.Operators), "operator"))
}

func paths(fields []adopt.Field) string {
	var out []string
	for _, f := range fields {
		out = append(out, f.Path)
	}
	return strings.Join(out, ", ")
}

func (o *adoptFinishOptions) list(w io.Writer, changes []adopt.Change) {
	signs := map[string]string{"added": "+", "changed": "~", "removed": "-"}
	for _, c := range changes {
		fmt.Fprintf(w, "    %s %s\n", o.out.Sign(signs[c.Change]), inert.Line(c.Key().String()))
	}
}
