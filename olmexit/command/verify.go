package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/cli"
	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/olmexit/plan"
	"github.com/quayside/quayside/olmexit/run"
	"github.com/quayside/quayside/olmexit/snapshot"
	"github.com/quayside/quayside/olmexit/verify"
)

type adoptVerifyOptions struct {
	cli.Host
	login *cli.Login
	step  int
}

func newAdoptVerify(h cli.Host) *cobra.Command {
	o := &adoptVerifyOptions{Host: h}
	cmd := &cobra.Command{
		Use:   "verify PLAN [FILE | DIR | -]",
		Short: "Verify that no required object was lost while operators leave OLM",
		Long: cli.Doc(`
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
		Example: cli.Examples(`
			# the current context of the kubeconfig, or another one
			quayside adopt verify adopt-plan.yaml
			quayside adopt verify adopt-plan.yaml --context prod --step 2`),
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSource(cmd, args[1:], o.login); err != nil {
				return err
			}
			return o.run(cmd.Context(), args[0], args[1:])
		},
	}
	o.login = o.AddLogin(cmd)
	cmd.Flags().IntVar(&o.step, "step", 0, "treat the steps up to this `NUMBER` as done, regardless of the cluster")
	h.AddOutput(cmd, verify.Report{})
	return cmd
}

func (o *adoptVerifyOptions) run(ctx context.Context, file string, args []string) error {
	p, journal, err := openPlan(o.Host, file)
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
	o.Talk.Done()
	if err != nil {
		return err
	}
	if err := o.Print(rep, func(w io.Writer) { rep.Text(w, p) }); err != nil {
		return err
	}
	if n := rep.Failed(); n > 0 {
		return &workspace.DiffersError{Msg: diag.Count(n, "check") + " failed"}
	}
	return nil
}

// openPlan reads a plan and opens its journal.
func openPlan(h cli.Host, file string) (*plan.Plan, *run.Journal, error) {
	data, err := h.ReadArg(file)
	if err != nil {
		return nil, nil, err
	}
	p, err := plan.Parse(file, data)
	if err != nil {
		return nil, nil, err
	}
	dir, err := journalOf(h.Path(file))
	if err != nil {
		return nil, nil, err
	}
	journal, err := run.OpenJournal(run.Dir(dir), p)
	return p, journal, err
}

// reader returns a reader of the cluster dump named by the argument, or of the live cluster
// if there is none.
func (o *adoptVerifyOptions) reader(ctx context.Context, args []string) (verify.Reader, error) {
	if len(args) > 0 {
		s, err := readCluster(ctx, o.Host, args, o.login, snapshot.Options{ManagedFields: true})
		if err != nil {
			return nil, err
		}
		return verify.Dump(s), nil
	}
	client, err := o.login.Open()
	if err != nil {
		return nil, err
	}
	o.Talk.Progress("reading cluster %s", client.Server)
	return run.Live(client), nil
}
