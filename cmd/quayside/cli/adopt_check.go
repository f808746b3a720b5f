package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
)

type adoptCheckOptions struct {
	*app
	login loginFlags
}

func newAdoptCheck(a *app) *cobra.Command {
	o := &adoptCheckOptions{app: a}
	cmd := &cobra.Command{
		Use:   "check [FILE | DIR | -]",
		Short: "Report which operators need OLM while they run",
		Long: doc(`
			Report for every operator in the lock whether it needs OLM while it runs, by what
			it may do with OLM's objects, by what its pods read and are told, and by what it
			brings: with what it loses where OLM is not, and what can be done.

			With an argument, --context or --kubeconfig, report it for every operator that OLM
			installed in a cluster; no workspace is needed. The cluster is a file as 'kubectl
			get -o json' or '-o yaml' prints it ('-' for standard input), a directory of such
			files, a must-gather, or the live cluster of a kubeconfig. It is only read.

			An operator needs OLM (it installs others through it), loses something without it
			(it reads or writes objects that only OLM fills or heeds), could need it (it may do
			everything in the cluster, or speaks of OLM; nobody can see whether it makes use of
			that), or does not need it.

			Exit codes: 0 no operator needs OLM or loses something; 1 some do; 2 an error.`),
		Example: examples(`
			# the operators in the lock
			quayside adopt check

			# those of a cluster
			quayside adopt check --context prod
			quayside adopt check must-gather.local.4711`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && o.live() {
				return usagef(cmd, "%q or a live cluster: leave out --context and --kubeconfig", args[0])
			}
			return o.run(cmd.Context(), args)
		},
	}
	o.login.flags(cmd)
	addOffline(cmd, a)
	addOutput(cmd, a, nil, adopt.Diagnosis{})
	a.offer(cmd, "context", func(context.Context, string) []string { return o.login.contexts(a) })
	return cmd
}

// live reports whether a live cluster is asked for.
func (o *adoptCheckOptions) live() bool { return o.login.context != "" || o.login.kubeconfig != "" }

func (o *adoptCheckOptions) run(ctx context.Context, args []string) error {
	found, err := o.diagnose(ctx, args)
	if err != nil {
		return err
	}
	if err := o.print(found, found.Text); err != nil {
		return err
	}
	if names := found.Needy(); len(names) > 0 {
		return &project.DiffersError{Msg: inert.Line(diag.Count(len(names), "operator") + " with a need of OLM: " + strings.Join(names, ", "))}
	}
	return nil
}

func (o *adoptCheckOptions) diagnose(ctx context.Context, args []string) (*adopt.Diagnosis, error) {
	if len(args) > 0 || o.live() {
		s, err := o.snapshot(ctx, args, o.login, snapshot.Options{Keep: adopt.Tells})
		if err != nil {
			return nil, err
		}
		return adopt.DiagnoseCluster(s), nil
	}
	p, err := o.open()
	if err != nil {
		return nil, err
	}
	return p.Diagnose(ctx)
}
