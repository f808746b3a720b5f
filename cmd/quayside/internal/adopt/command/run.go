package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/inspect"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/terminal"
)

type adoptRunOptions struct {
	cli.Host
	login      *cli.Login
	step       int
	cleanUp    bool
	done       []int
	yes        bool
	check      bool
	kubectl    bool   // value of --kubectl
	finishOnly bool   // value of --finish
	skip       string // value of --skip: the reason
	sync       time.Duration
	maxDown    time.Duration
	watch      time.Duration
	report     string
}

func newAdoptRun(h cli.Host) *cobra.Command {
	o := &adoptRunOptions{Host: h}
	cmd := &cobra.Command{
		Use:   "run {PLAN | --finish [NAMESPACE/PACKAGE]...}",
		Short: "Execute a plan of 'quayside adopt plan', step by step",
		Long: cli.Doc(`
			Execute a plan of 'quayside adopt plan' in its cluster, step by step. Only this command
			and 'quayside adopt revert' write to a cluster. quayside asks before each step; --yes
			skips the confirmation, and is required without a terminal. It checks the preconditions
			and postconditions of each step, and stops if one fails.

			Before the first step, quayside derives the plan again from the cluster, the lock and
			the inspection, and refuses a plan that differs. Later, the journal decides.
			Manual steps are yours, even with --yes: do the step, and confirm it when asked, or with
			--done NUMBER. A clean-up cannot be reverted: the run ends before the first one, until
			you set --clean-up.

			quayside records each action, and each object in its former state, in PLAN.journal, and
			probes the cluster's functions until OLM has run for --watch again. If a run ends early,
			quayside starts OLM again unless an operator is being detached, and prints the possible
			commands. Repeated, the command continues. After Ctrl-C, the current action is finished.

			--finish changes quayside.lock, and no cluster. It removes OLM's settings, such as pod
			annotations and certificates, of the adopted operators that you name, or of all, and
			lists the changes. Then run 'quayside render'; pods restart once when the new tree is
			applied. If webhooks use OLM's certificates, install the provider in spec.certificates
			in the cluster first. An operator's next version has the same effect.

			See also: docs/adopt.md
			Exit codes: 0 done; 1 a condition failed, others changed an object, a manual step is not
			done, probes failed though the steps are done, or with --check, steps remain; 2 an error.`),
		Example: cli.Examples(`
			# let the API server validate the changes; then execute the plan
			quayside adopt run adopt-plan.yaml --context prod --check
			quayside adopt run adopt-plan.yaml --context prod --yes --report adopt-plan.md

			# continue after a manual step
			quayside adopt run adopt-plan.yaml --context prod --yes --done 3

			# when the pull request is merged and the operators are healthy
			quayside adopt run adopt-plan.yaml --context prod --yes --clean-up

			# weeks later: remove OLM's settings of one operator from the lock
			quayside adopt run --finish my-etcd/etcd
			quayside render`),
		Args: func(cmd *cobra.Command, args []string) error {
			if o.finishOnly {
				return nil
			}
			return cli.WantArgs("PLAN")(cmd, args)
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.finishOnly {
				return o.finish(cmd.Context(), args)
			}
			return o.writeCommand(o.run)(cmd, args)
		},
	}
	f := cmd.Flags()
	o.addFlags(cmd)
	f.IntVar(&o.step, "step", 0, "execute only the step with this `NUMBER`, even if it is done")
	f.StringVar(&o.skip, "skip", "", "accept the failed check or the deleted object at which the run stopped, and continue; the journal records the `REASON`")
	f.BoolVar(&o.cleanUp, "clean-up", false, "also execute the clean-up steps, which cannot be reverted")
	f.DurationVar(&o.sync, "olm-sync", 15*time.Second, "wait for this `DURATION` after OLM has started, so that it has processed every object before the postconditions are checked")
	f.DurationVar(&o.maxDown, "max-olm-downtime", time.Minute, "start OLM early if it has been stopped for longer than this `DURATION` and no operator is being detached; OLM is stopped again for the next operator")
	f.DurationVar(&o.watch, "watch", 5*time.Minute, "probe permissions, webhooks, conversion, APIs, pods and custom resources during the run, and for this `DURATION` after OLM was started again; 0 means no probes")
	f.StringVar(&o.report, "report", "", "write a report of all runs of the plan to this `FILE`: Markdown if it ends in .md, otherwise JSON")
	f.BoolVar(o.Offline, "offline", false, "fetch no bundles; list missing ones")
	f.BoolVar(&o.finishOnly, "finish", false, "stop keeping OLM's settings for adopted operators: write quayside.lock; no cluster is changed")
	h.AddOutput(cmd, run.Progress{}, inspect.FinishResult{})
	for _, flag := range []string{"context", "kubeconfig", "done", "yes", "kubectl", "step", "clean-up", "skip", "olm-sync", "max-olm-downtime", "watch", "report"} {
		cmd.MarkFlagsMutuallyExclusive("finish", flag)
	}
	return cmd
}

// addFlags adds the flags of commands that write to a cluster.
func (o *adoptRunOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.login = o.AddLogin(cmd)
	f.IntSliceVar(&o.done, "done", nil, "the manual steps with these `NUMBERS` are done: check them and continue")
	f.BoolVar(&o.yes, "yes", false, "skip the confirmation of each step")
	f.BoolVar(&o.check, "check", false, "write nothing: send each change as a server-side dry run; exit with 1 if steps remain")
	f.BoolVar(&o.kubectl, "kubectl", false, "show each action as a kubectl command")
}

// writeCommand returns the RunE function of a command that writes to a cluster. The command requires a
// terminal, --yes or --check.
func (o *adoptRunOptions) writeCommand(do func(context.Context, string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if !o.yes && !o.check && !o.Prompt.IsInteractive() {
			return cli.Usagef(cmd, "the command changes the cluster and needs a confirmation, but there is no terminal: preview the changes with --check, then run it with --yes")
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // after the first signal, the next one ends the program at once
		if !o.check {
			unlock, err := store.Lock(o.Path(args[0]), 0) // only one process may write the journal
			if err != nil {
				return err
			}
			defer unlock()
		}
		return do(ctx, args[0])
	}
}

func (o *adoptRunOptions) run(ctx context.Context, file string) error {
	in, err := o.collectInput(ctx, file)
	if err != nil {
		return err
	}
	res, err := run.Run(ctx, *in)
	o.Log.Done()
	if res.Downtime > 0 {
		o.Log.Note("the plan has stopped OLM for %s so far", run.FormatMilliseconds(res.Downtime))
	}
	o.warnStopped(res, fmt.Sprintf("continue with 'quayside adopt run %s', or revert with 'quayside adopt revert %s'", file, file))
	o.printWays(res, in.Plan.Origin(), file)
	left := slices.IndexFunc(res.Steps, func(s run.StepResult) bool { return s.Name == plan.CleanUp && s.State == run.Waiting })
	if left >= 0 && err == nil {
		s := res.Steps[left]
		o.Log.Note("step %d (clean-up, %s) remains: when the pull request is merged and the operators are healthy, continue with 'quayside adopt run %s --clean-up'; it cannot be reverted", s.Number, sanitize.Line(s.Namespace), sanitize.Line(file))
	}
	if o.report != "" {
		err = errors.Join(err, o.writeReport(run.NewRecord(in.Plan, in.Journal, res)))
	}
	if err := o.Print(res, func(w io.Writer) { fmt.Fprintln(w, resultSummary(res)); printProbes(w, res.Probes) }); err != nil {
		return err
	}
	return o.resultError(res, err)
}

// writeReport writes the report of a plan in Markdown if the file extension is .md, and otherwise in JSON.
func (o *adoptRunOptions) writeReport(r *run.Record) error {
	text := r.JSON()
	if filepath.Ext(o.report) == ".md" {
		text = r.Markdown()
	}
	_, err := filetree.WriteFile(o.Path(o.report), text)
	return err
}

// printProbes prints for each kind the number of probes, the number of failures, and the longest gap.
func printProbes(w io.Writer, probes []verify.ProbeResult) {
	for _, p := range probes {
		text := fmt.Sprintf("    %-11s %s of %s, %d failed", p.Kind, diag.Count(p.Probes, "probe"), diag.Count(p.Targets, "target"), p.Failures)
		if p.Failures > 0 {
			text += fmt.Sprintf(", longest gap %s: %s", run.FormatMilliseconds(p.LongestGap), p.Failure)
		}
		if p.Unprobed > 0 {
			text += fmt.Sprintf("; %d not probed", p.Unprobed)
		}
		fmt.Fprintln(w, sanitize.Line(text))
	}
}

// collectInput reads the plan and its journal, renders the tree, and returns the input of a run.
func (o *adoptRunOptions) collectInput(ctx context.Context, file string) (*run.Input, error) {
	p, journal, err := openPlan(o.Host, file)
	if err != nil {
		return nil, err
	}
	if err := p.CheckExecutable(); err != nil {
		return nil, err
	}
	if back, err := journal.IsReverting(); back || err != nil {
		return nil, cmp.Or(err, fmt.Errorf("%s is being reverted or was reverted: finish with 'quayside adopt revert', and make a new plan", file))
	}
	ws, err := o.Open()
	if err != nil {
		return nil, err
	}
	rendered, err := inspect.RenderForPlan(ctx, ws, p)
	if err != nil {
		return nil, err
	}
	if _, err := checkDerived(ctx, o.Host, ws, p, journal, nil, o.login); err != nil {
		return nil, err
	}
	client, err := o.login.Open()
	if err != nil {
		return nil, err
	}
	in := o.runInput(p, journal, run.NewLiveCluster(client))
	in.Rendered = rendered
	return in, nil
}

// checkDerived makes the plan again from a snapshot of the current cluster or of a dump, and returns the
// snapshot. It returns an error if the new plan differs from p. If a step of p has begun, checkDerived does
// nothing and returns nil: the run has changed the cluster, so that a new plan would differ, and the journal
// identifies p.
func checkDerived(ctx context.Context, h cli.Host, ws *workspace.Project, p *plan.Plan, journal *run.Journal, dump []string, login *cli.Login) (*snapshot.Snapshot, error) {
	if journal.HasStarted() {
		return nil, nil
	}
	opt := snapshot.Selection{ManagedFields: true, Namespaces: p.ConfidentialNamespaces(), Releases: inspect.Releases(ws)}
	if p.Mode == plan.Removal {
		opt.Keep = plan.IsReadForUninstall
	}
	snap, err := readCluster(ctx, h, dump, login, opt)
	if err != nil {
		return nil, err
	}
	return snap, inspect.CheckPlan(ctx, ws, p, snap)
}

// runInput returns the input of a run, filled with the values of the flags.
func (o *adoptRunOptions) runInput(p *plan.Plan, journal *run.Journal, cluster run.Client) *run.Input {
	return &run.Input{
		Plan: p, Cluster: cluster, Journal: journal, Clock: wallClock{},
		Prompter: &terminalPrompter{Host: o.Host, yes: o.yes || o.check, kubectl: o.kubectl, plan: p},
		Only:     o.step, CleanUp: o.cleanUp, Done: o.done, DryRun: o.check, SyncDelay: o.sync, MaxDowntime: o.maxDown, Watch: o.watch, Skip: o.skip,
	}
}

// warnStopped warns that OLM is stopped. next is the command that continues the plan.
func (o *adoptRunOptions) warnStopped(res *run.Progress, next string) {
	if len(res.Stopped) == 0 {
		return
	}
	var names []string
	for _, ref := range res.Stopped {
		names = append(names, ref.Namespace+"/"+ref.Name)
	}
	o.Log.WarnAlways(diag.Warning{
		Code: "olm-stopped", Msg: fmt.Sprintf("OLM is stopped (%s): it installs and upgrades nothing until the plan starts it again: %s", strings.Join(names, ", "), next),
	})
}

// printWays prints the commands that can continue or revert a run that ended early.
func (o *adoptRunOptions) printWays(res *run.Progress, origin, file string) {
	for _, way := range res.Ways {
		o.Log.Note("%s", sanitize.Line(map[run.Way]string{
			run.Continue: "to go on, fix the cause if there is one, and run 'quayside adopt run " + file + "'",
			run.Skip:     "to go on nevertheless, run 'quayside adopt run " + file + " --skip REASON'",
			run.Revert:   "to return to " + origin + ", run 'quayside adopt revert " + file + "'",
			run.NewPlan:  "no step has begun: a new plan is possible ('quayside adopt plan')",
		}[way]))
	}
}

// resultError returns the error for the exit code of a run.
func (o *adoptRunOptions) resultError(res *run.Progress, err error) error {
	left := 0
	for _, s := range res.Steps {
		if s.State == run.DryRun || s.State == run.Waiting {
			left++
		}
	}
	if err == nil && o.check && left > 0 {
		return &workspace.DiffersError{Msg: diag.Count(left, "step") + " left to do"}
	}
	var step *run.StepError
	if errors.As(err, &step) && step.Differs() {
		return &workspace.DiffersError{Msg: err.Error()}
	}
	failed := 0
	for _, p := range res.Probes {
		failed += p.Failures
	}
	if err == nil && failed > 0 {
		return &workspace.DiffersError{Msg: diag.Count(failed, "probe") + " failed, but all steps of this run are done; nothing was reverted\n  hint: compare the cluster with its earlier state: 'quayside adopt verify'"}
	}
	return err
}

// resultSummary returns the number of steps per state in one line.
func resultSummary(res *run.Progress) string {
	count := map[run.State]int{}
	for _, s := range res.Steps {
		count[s.State]++
	}
	var parts []string
	for _, state := range []run.State{run.Done, run.AlreadyDone, run.DryRun, run.Waiting, run.StepFailed, run.Pending} {
		if n := count[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, map[run.State]string{
				run.Done: "done", run.AlreadyDone: "done before", run.DryRun: "tried", run.Waiting: "waiting for you", run.StepFailed: "failed", run.Pending: "pending",
			}[state]))
		}
	}
	return fmt.Sprintf("%s: %s", diag.Count(len(res.Steps), "step"), strings.Join(parts, ", "))
}

// terminalPrompter reports the progress of a run and asks for confirmation.
type terminalPrompter struct {
	cli.Host
	yes     bool
	kubectl bool
	plan    *plan.Plan
}

var _ run.Prompter = (*terminalPrompter)(nil)

// ConfirmStep shows a step and asks whether to do it.
func (s *terminalPrompter) ConfirmStep(ctx context.Context, step plan.Step) (bool, error) {
	s.printHeading(step, s.yes && !s.kubectl)
	for _, a := range step.Actions {
		switch {
		case s.kubectl:
			s.Log.Say("    %s", sanitize.Line(s.plan.Kubectl(a, nil)))
		case !s.yes:
			s.Log.Say("    %s", sanitize.Line(fmt.Sprintf("%s %s", a.Do, a.Object)))
		}
	}
	if s.yes {
		return true, nil
	}
	return s.Prompt.Confirm(ctx, "Execute this step?")
}

// ConfirmManualStep shows a manual step and asks whether it is done.
func (s *terminalPrompter) ConfirmManualStep(ctx context.Context, step plan.Step) (bool, error) {
	s.printHeading(step, false)
	s.Log.Say("    %s", sanitize.Line(step.Manual))
	if !s.Prompt.IsInteractive() {
		return false, nil
	}
	return s.Prompt.Confirm(ctx, "Is it done?")
}

// printHeading prints the number and title of a step. If quietable is true, --quiet suppresses the heading.
func (s *terminalPrompter) printHeading(step plan.Step, quietable bool) {
	say := s.Log.Say
	if quietable {
		say = s.Log.Note
	}
	say("%s %s", s.Log.Paint(terminal.Bold, fmt.Sprintf("step %d of %d:", step.Number, len(s.plan.Steps))), sanitize.Line(step.Title))
}

// ReportAction prints the result of an action.
func (s *terminalPrompter) ReportAction(_ plan.Step, a run.ActionResult) {
	s.Log.Note("%s", sanitize.Line(fmt.Sprintf("    %-8s %s (%s)", a.Outcome, a.Object, a.Do)))
	for _, f := range a.Changes {
		s.Log.Note("%s", sanitize.Line(fmt.Sprintf("             %s: %s", f.Kind, f.Path)))
	}
}

// ReportWaiting shows the first condition that does not hold yet.
func (s *terminalPrompter) ReportWaiting(step plan.Step, missing []verify.Finding) {
	s.Log.Progress("step %d: waiting: %s", step.Number, missing[0].Message)
}

// ReportOLM reports that OLM was started earlier than planned, or that it stays stopped until step is done.
func (s *terminalPrompter) ReportOLM(step plan.Step, started bool) {
	if started {
		s.Log.Note("OLM was started again: no operator is being detached")
		return
	}
	s.Log.Note("OLM stays stopped until step %d (%s, %s) is done: an earlier start would delete objects of the operators", step.Number, step.Name, sanitize.Line(step.Namespace))
}

// ReportProbing reports that the probes continue after the last step.
func (s *terminalPrompter) ReportProbing(left time.Duration) {
	s.Log.Note("all steps are done; the probes continue for %s (--watch); Ctrl-C ends the probes", left.Round(time.Second))
}

// wallClock is the clock of a run in real time.
type wallClock struct{}

// Now returns the current time.
func (wallClock) Now() time.Time { return time.Now() }

// Sleep waits for a duration or until ctx is done.
func (wallClock) Sleep(ctx context.Context, d time.Duration) error { return cluster.Sleep(ctx, d) }
