package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
)

type adoptVerifyOptions struct {
	cli.Host
	login  *cli.Login
	step   int
	record bool
}

func newAdoptVerify(h cli.Host) *cobra.Command {
	o := &adoptVerifyOptions{Host: h}
	cmd := &cobra.Command{
		Use:   "verify PLAN [FILE | DIR | -]",
		Short: "Verify that no required object was lost while operators leave OLM",
		Long: cli.Doc(`
			Verify that a cluster has lost nothing while operators leave OLM, and report the current
			step of each namespace. Run it at any time; nothing is written to the cluster.

			quayside reads the live cluster of --context, by default the kubeconfig's current one.
			The second argument can name a file with the output of 'kubectl get -o json' or '-o
			yaml' ('-' for standard input), a directory of such files, or a must-gather instead.

			quayside compares the cluster with the state that 'quayside adopt run' recorded in
			PLAN.journal before the first step of each namespace: UIDs, owners, pods of Deployments,
			conversion of custom resources, APIs, and the permissions of every ServiceAccount.
			Without a journal it compares only UIDs, and reports the rest as unknown. If you carry out
			the steps by hand, record this state first, with --record.

			quayside derives the current step from the cluster. --step overrides it: quayside then
			expects the changes of all steps up to this one.

			See also: docs/adopt.md
			Exit codes: 0 no check failed; 1 a check failed; 2 an error.`),
		Example: cli.Examples(`
			# the cluster of the current context, or of another one
			quayside adopt verify adopt-plan.yaml
			quayside adopt verify adopt-plan.yaml --context prod --step 2

			# before the first step of a plan that you carry out by hand
			quayside adopt verify adopt-plan.yaml --context prod --record`),
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
	cmd.Flags().IntVar(&o.step, "step", 0, "treat the steps up to this `NUMBER` as done, even if the cluster differs")
	cmd.Flags().BoolVar(&o.record, "record", false, "first record the state before the first step in PLAN.journal, for a plan that you carry out by hand")
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
	before, err := journal.AllEvidence(p)
	if err != nil {
		return err
	}
	r, err := o.reader(ctx, args)
	if err != nil {
		return err
	}
	if o.record {
		if before, err = recordEvidence(ctx, r, p, journal); err != nil {
			return err
		}
	}
	rep, err := verify.Verify(ctx, r, p, verify.KnownProgress{Before: before, Ended: journal.HasEnded, Step: o.step})
	o.Log.Done()
	if err != nil {
		return err
	}
	if err := o.Print(rep, func(w io.Writer) { rep.WriteText(w, p) }); err != nil {
		return err
	}
	if n := rep.Failed(); n > 0 {
		return &workspace.DiffersError{Msg: diag.Count(n, "check") + " failed"}
	}
	return nil
}

// recordEvidence records the state of the cluster in the journal, for a plan that the user executes by hand. It
// returns the state by namespace. If a step has begun, it returns an error.
func recordEvidence(ctx context.Context, r verify.Reader, p *plan.Plan, journal *run.Journal) (map[string]*verify.Evidence, error) {
	rep, err := verify.Verify(ctx, r, p, verify.KnownProgress{})
	if err != nil {
		return nil, err
	}
	out := map[string]*verify.Evidence{}
	for _, ns := range rep.Namespaces {
		if journal.HasStarted() || ns.Step > 0 || ns.Partly {
			return nil, fmt.Errorf("--record: a step of namespace %s has begun, so the state before it cannot be recorded", ns.Namespace)
		}
		if out[ns.Namespace], err = verify.Capture(ctx, r, p, ns.Namespace); err != nil {
			return nil, err
		}
	}
	for _, ns := range rep.Namespaces {
		if err := journal.SaveEvidence(out[ns.Namespace]); err != nil {
			return nil, err
		}
	}
	return out, nil
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
	journal, err := run.OpenJournal(run.JournalDir(dir), p)
	return p, journal, err
}

// reader returns a reader for the cluster dump that the argument names. Without an argument, it returns a
// reader for the live cluster.
func (o *adoptVerifyOptions) reader(ctx context.Context, args []string) (verify.Reader, error) {
	if len(args) > 0 {
		s, err := readCluster(ctx, o.Host, args, o.login, snapshot.Selection{ManagedFields: true})
		if err != nil {
			return nil, err
		}
		return verify.SnapshotReader(s), nil
	}
	client, err := o.login.Open()
	if err != nil {
		return nil, err
	}
	o.Log.Progress("reading cluster %s", client.Server)
	return run.NewLiveCluster(client), nil
}
