package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/run"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/adopt/verify"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/project"
)

type adoptVerifyOptions struct {
	*app
	login loginFlags
	step  int
}

func newAdoptVerify(a *app) *cobra.Command {
	o := &adoptVerifyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "verify PLAN [FILE | DIR | -]",
		Short: "Check that a cluster kept what it must keep while operators leave OLM",
		Long: doc(`
			Check that a cluster kept what it must keep while the operators of a plan leave OLM,
			at any time, and report for each namespace how far the plan is. Nothing is written.

			The cluster is the live one of the kubeconfig's current context, or of --context; or,
			after PLAN, a file as 'kubectl get -o json' or '-o yaml' prints it ('-' for standard
			input), a directory of such files, or a must-gather.

			What is there is compared with what 'quayside adopt run' wrote down before the first
			step of the namespace, in the journal beside the plan (PLAN.journal): UIDs, owners,
			the pods of Deployments, how custom resources are converted, aggregated APIs, and
			what every ServiceAccount may do, in every namespace, by the RBAC objects and by
			asking the API server. Without a journal only what the plan itself says can be
			compared, which is UIDs; the rest is unknown.

			How far the plan is, is what the cluster shows. With --step the steps up to that one
			count as done: what they should have made go, or applied, may be otherwise than before.

			Exit codes: 0 all that can be compared holds; 1 something does not; 2 an error.`),
		Example: examples(`
			# the current context of the kubeconfig, or another one
			quayside adopt verify adopt-plan.yaml
			quayside adopt verify adopt-plan.yaml --context prod --step 2`),
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && (o.login.context != "" || o.login.kubeconfig != "") {
				return usagef(cmd, "%q or a live cluster: leave out --context and --kubeconfig", args[1])
			}
			return o.run(cmd.Context(), args[0], args[1:])
		},
	}
	o.login.flags(cmd)
	cmd.Flags().IntVar(&o.step, "step", 0, "the steps up to this `NUMBER` are done, whatever the cluster shows")
	addOutput(cmd, a, nil, verify.Report{})
	a.offer(cmd, "context", func(context.Context, string) []string { return o.login.contexts(a) })
	return cmd
}

func (o *adoptVerifyOptions) run(ctx context.Context, file string, args []string) error {
	p, journal, err := o.plan(file)
	if err != nil {
		return err
	}
	if o.step < 0 || o.step > len(p.Steps) {
		return fmt.Errorf("--step %d: %s has the steps 1 to %d", o.step, file, len(p.Steps))
	}
	before, err := journal.Before(p)
	if err != nil {
		return err
	}
	r, err := o.reader(ctx, args)
	if err != nil {
		return err
	}
	rep, err := verify.Verify(ctx, r, p, verify.Known{Before: before, Ended: journal.Ended, Step: o.step})
	o.talk.Done()
	if err != nil {
		return err
	}
	if err := o.print(rep, func(w io.Writer) { rep.Text(w, p) }); err != nil {
		return err
	}
	if n := rep.Failed(); n > 0 {
		return &project.DiffersError{Msg: diag.Count(n, "check") + " failed"}
	}
	return nil
}

// plan reads a plan with its journal.
func (a *app) plan(file string) (*plan.Plan, *run.Journal, error) {
	data, err := a.readArg(file)
	if err != nil {
		return nil, nil, err
	}
	p, err := plan.Parse(file, data)
	if err != nil {
		return nil, nil, err
	}
	dir, err := project.JournalOf(a.argPath(file))
	if err != nil {
		return nil, nil, err
	}
	journal, err := run.OpenJournal(run.Dir(dir), p)
	return p, journal, err
}

// reader returns the cluster that the argument names, the live one where there is
// none.
func (o *adoptVerifyOptions) reader(ctx context.Context, args []string) (verify.Reader, error) {
	if len(args) > 0 {
		s, err := o.snapshot(ctx, args, o.login, snapshot.Options{ManagedFields: true})
		if err != nil {
			return nil, err
		}
		return verify.Dump(s), nil
	}
	client, err := cluster.Open(o.login.options(o.app))
	if err != nil {
		return nil, err
	}
	o.talk.Progress("reading cluster %s", client.Server)
	return run.Live(client), nil
}
