package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
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
	addOutput(cmd, a, nil, project.Finishing{})
	return cmd
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
	if !o.check && len(f.Operators) > 0 {
		if f.Written, err = filetree.WriteFile(p.Path(project.LockFile), lockfile.Format(f.Lock)); err != nil {
			return err
		}
	}
	if err := o.print(f, func(io.Writer) { f.Print(o.out) }); err != nil {
		return err
	}
	if o.check && len(f.Operators) > 0 {
		return &project.DiffersError{Msg: "something of OLM's is kept for " + diag.Count(len(f.Operators), "operator")}
	}
	return nil
}
