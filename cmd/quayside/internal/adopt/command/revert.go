package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
)

func newAdoptRevert(h cli.Host) *cobra.Command {
	o := &adoptRunOptions{Host: h}
	cmd := &cobra.Command{
		Use:   "revert PLAN",
		Short: "Return operators to OLM, from any step of a plan before its clean-up",
		Long: cli.Doc(`
			Return operators to OLM, after any step of 'quayside adopt run' before the clean-up.
			quayside restores changed objects, creates the Subscriptions again with startingCSV at
			the running version, starts OLM, waits until OLM has installed the operators, and
			deletes the objects that the tree added. Pods restart only if they restarted during the
			adoption.

			The first step is yours: suspend the tool that applies the tree. If a Subscription is
			manual, approve the InstallPlan of the running version. quayside asks before each of
			the other steps, unless you set --yes. It records its actions in PLAN.journal. If it is
			interrupted, repeat the command: it continues.

			A namespace whose clean-up has begun cannot be reverted: quayside does not change it,
			and prints your options. Afterwards make a new plan: the old one cannot be used again.

			See also: docs/adopt.md
			Exit codes: 0 done; 1 a namespace cannot be reverted, a condition failed, an object was
			changed by others, or a manual step is not done; 2 an error.`),
		Example: cli.Examples(`
			# let the API server validate the changes, without storing them
			quayside adopt revert adopt-plan.yaml --context prod --check

			# after you have suspended the tool that applies the tree (step 1)
			quayside adopt revert adopt-plan.yaml --context prod --yes --done 1`),
		Args:              cli.WantArgs("PLAN"),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE:              o.writeCommand(o.revert),
	}
	o.addFlags(cmd)
	h.AddOutput(cmd, adoptRevertView{})
	return cmd
}

// adoptRevertView is the output of `quayside adopt revert`.
type adoptRevertView struct {
	run.Progress `json:",inline"`
	Skipped      []plan.SkippedOperator `json:"skipped" doc:"Changes that are not reverted, with reason and remedy."`
}

func (o *adoptRunOptions) revert(ctx context.Context, file string) error {
	p, journal, err := openPlan(o.Host, file)
	if err != nil {
		return err
	}
	if err := p.CheckExecutable(); err != nil {
		return err
	}
	if p.Mode == plan.Removal {
		return fmt.Errorf("%s uninstalls OLM, which cannot be reverted: install OLM again; the deleted objects are in the backup of the journal", file)
	}
	if err := o.checkSameLock(p); err != nil {
		return err
	}
	client, err := o.login.Open()
	if err != nil {
		return err
	}
	live := run.NewLiveCluster(client)
	rev, log, err := journal.PlanRevert(ctx, live, p)
	if err != nil {
		return err
	}
	if !o.check && len(rev.Plan.Steps) > 0 {
		if err := journal.SaveRevert(rev); err != nil {
			return err
		}
	}
	res := &run.Progress{Steps: []run.StepResult{}, Stopped: []k8s.Ref{}}
	if in := o.runInput(rev.Plan, log, live); len(rev.Plan.Steps) > 0 {
		in.Rendered = slices.SortedFunc(maps.Values(rev.Objects), func(x, y k8s.Object) int { return x.Key().Compare(y.Key()) })
		res, err = run.Run(ctx, *in)
	}
	o.Log.Done()
	o.warnStopped(res, fmt.Sprintf("continue with 'quayside adopt revert %s'", file))
	return o.reportReverted(adoptRevertView{*res, rev.Plan.Skipped}, err)
}

// reportReverted prints the reverted steps, and returns the error for the exit code.
func (o *adoptRunOptions) reportReverted(v adoptRevertView, err error) error {
	if err := o.Print(v, func(w io.Writer) { showReverted(w, v) }); err != nil {
		return err
	}
	if err == nil && len(v.Skipped) > 0 {
		return &workspace.DiffersError{Msg: "some namespaces cannot be returned to OLM: see above"}
	}
	return o.resultError(&v.Progress, err)
}

// checkSameLock returns an error if the lock has changed since the plan was made. Operators may then run
// versions that OLM would not install.
func (o *adoptRunOptions) checkSameLock(p *plan.Plan) error {
	ws, err := o.Open()
	if err != nil {
		return err
	}
	lock, err := ws.LockIfAny()
	if err != nil || lock == nil || plan.LockDigest(lock) == p.Lock {
		return err
	}
	return fmt.Errorf("%s has changed since the plan was made: the running versions may differ from those of OLM; restore the lock of the plan, render and apply it, then run 'quayside adopt revert'", workspace.LockFile)
}

func showReverted(w io.Writer, v adoptRevertView) {
	for _, l := range v.Skipped {
		fmt.Fprintf(w, "%s\n", sanitize.Line(l.Namespace+" cannot be reverted: "+strings.Join(l.Reasons, "; ")))
	}
	if len(v.Steps) == 0 {
		fmt.Fprintln(w, "the plan has nothing to revert")
		return
	}
	fmt.Fprintln(w, resultSummary(&v.Progress))
}
