package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/run"
	"github.com/quayside/quayside/adopt/verify"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/terminal"
)

type adoptRunOptions struct {
	*app
	login   loginFlags
	step    int
	cleanUp bool
	done    []int
	yes     bool
	check   bool
	hand    bool // --kubectl
	ends    bool // --finish
}

func newAdoptRun(a *app) *cobra.Command {
	o := &adoptRunOptions{app: a}
	cmd := &cobra.Command{
		Use:   "run {PLAN | --finish [NAMESPACE/PACKAGE]...}",
		Short: "Do what a plan of 'quayside adopt plan' says, step by step",
		Long: doc(`
			Do the steps of a plan in the cluster that it was made for: the only command, with
			'quayside adopt revert', that writes to a cluster. Each step is shown, and done after
			you say yes; --yes says so beforehand, which it takes where nobody can be asked. What
			must hold is checked before each step and after it, and nothing goes on where it
			does not.

			A step that a person has to do is never done by --yes: do it, and say so when you
			are asked or with --done.

			From a clean-up nothing leads back. A run ends before the first one, until
			--clean-up says that what runs is trusted.

			What is done is noted in a journal beside the plan (PLAN.journal), with the
			objects as they were. A run that was interrupted, or killed, goes on from there
			when the command is given again. Ctrl-C ends after what is under way. While OLM is
			stopped, a run that ends says so first.

			With --check the API server tries every change and stores none.

			--finish comes last, and touches no cluster: it takes out of quayside.lock what is
			kept of OLM's for operators that were taken over, all of them or those that are
			named, so that the next render makes them as any other operator: without OLM's
			annotations on the pods, with certificates that the workspace's provider makes and
			renews (spec.certificates), and with an OperatorCondition that keeps its name from
			version to version. Their pods restart once when the new tree is applied; the
			command says which, and what else changes. Where webhooks or conversions trusted
			OLM's certificates, the provider must be at work in the cluster before the tree is
			applied. An operator's next version does the same by itself.

			Exit codes: 0 done; 1 something does not hold, was changed by somebody else, or
			waits for a person, or with --check something is left to do; 2 an error.`),
		Example: examples(`
			# have the API server try it; at a terminal, leave out --yes to be asked before each step
			quayside adopt run adopt-plan.yaml --context prod --check
			quayside adopt run adopt-plan.yaml --context prod --yes

			# after the first step that a person does, go on from there
			quayside adopt run adopt-plan.yaml --context prod --yes --done 3

			# when the pull request is merged
			quayside adopt run adopt-plan.yaml --context prod --yes --clean-up

			# weeks later: render one operator as any other
			quayside adopt run --finish my-etcd/etcd
			quayside render`),
		Args: func(cmd *cobra.Command, args []string) error {
			if o.ends {
				return nil
			}
			return wantArgs("PLAN")(cmd, args)
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.ends {
				return o.finish(cmd.Context(), args)
			}
			return o.writing(o.run)(cmd, args)
		},
	}
	f := cmd.Flags()
	o.flags(cmd)
	f.IntVar(&o.step, "step", 0, "do the step of this `NUMBER` alone, again if it is done already")
	f.BoolVar(&o.cleanUp, "clean-up", false, "do the steps from the first clean-up on too, from which nothing leads back")
	f.BoolVar(&o.offline, "offline", false, "ask no registry for the bundles; name what is missing")
	f.BoolVar(&o.ends, "finish", false, "stop keeping what OLM did to operators that were taken over: write quayside.lock, and no cluster")
	addOutput(cmd, a, nil, run.Result{}, project.Finishing{})
	for _, flag := range []string{"context", "kubeconfig", "done", "yes", "kubectl", "step", "clean-up"} {
		cmd.MarkFlagsMutuallyExclusive("finish", flag)
	}
	return cmd
}

// flags gives cmd the flags of what writes to a cluster.
func (o *adoptRunOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.login.flags(cmd)
	f.IntSliceVar(&o.done, "done", nil, "the steps of these `NUMBERS` are done, by a person: check that, and go on")
	f.BoolVar(&o.yes, "yes", false, "do not ask before each step")
	f.BoolVar(&o.check, "check", false, "store nothing: have the API server try every change; exit with 1 if something is left to do")
	f.BoolVar(&o.hand, "kubectl", false, "show each action as the command of kubectl that does the same")
	o.offer(cmd, "context", func(context.Context, string) []string { return o.login.contexts(o.app) })
}

// writing returns what a command does that writes to a cluster, where somebody says
// yes to that.
func (o *adoptRunOptions) writing(do func(context.Context, string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if !o.yes && !o.check && !o.prompt.Can() {
			return usagef(cmd, "this writes to the cluster, and there is no terminal to ask at: look at it with --check, and say --yes")
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // a second one ends the program at once
		if !o.check {
			unlock, err := store.Lock(o.argPath(args[0]), 0) // two runs would write one journal
			if err != nil {
				return err
			}
			defer unlock()
		}
		return do(ctx, args[0])
	}
}

func (o *adoptRunOptions) run(ctx context.Context, file string) error {
	in, err := o.input(ctx, file)
	if err != nil {
		return err
	}
	res, err := run.Run(ctx, *in)
	o.talk.Done()
	o.stopped(res, fmt.Sprintf("go on with 'quayside adopt run %s', or go back with 'quayside adopt revert %s'", file, file))
	left := slices.IndexFunc(res.Steps, func(s run.StepResult) bool { return s.Name == plan.CleanUp && s.State == run.Waiting })
	if left >= 0 && err == nil {
		s := res.Steps[left]
		o.talk.Note("step %d (clean-up, %s) is left: once the pull request is merged and what runs is trusted, go on with 'quayside adopt run %s --clean-up'; nothing leads back from there", s.Number, inert.Line(s.Namespace), inert.Line(file))
	}
	if err := o.print(res, func(w io.Writer) { fmt.Fprintln(w, summary(res)) }); err != nil {
		return err
	}
	return o.verdict(res, err)
}

// input brings together what a run works with.
func (o *adoptRunOptions) input(ctx context.Context, file string) (*run.Input, error) {
	p, journal, err := o.plan(file)
	if err != nil {
		return nil, err
	}
	if back, err := journal.IsBack(); back || err != nil {
		return nil, cmp.Or(err, fmt.Errorf("%s is being taken back, or was: end that with 'quayside adopt revert', and make a new plan", file))
	}
	ws, err := o.open()
	if err != nil {
		return nil, err
	}
	rendered, err := ws.ForPlan(ctx, p)
	if err != nil {
		return nil, err
	}
	client, err := cluster.Open(o.login.options(o.app))
	if err != nil {
		return nil, err
	}
	in := o.with(p, journal, run.Live(client))
	in.Rendered = rendered
	return in, nil
}

// with returns what the flags say of a run.
func (o *adoptRunOptions) with(p *plan.Plan, journal *run.Journal, cluster run.Cluster) *run.Input {
	return &run.Input{
		Plan: p, Cluster: cluster, Journal: journal, Clock: wallClock{},
		Say:  &stepwise{app: o.app, yes: o.yes || o.check, hand: o.hand, plan: p},
		Only: o.step, CleanUp: o.cleanUp, Done: o.done, DryRun: o.check,
	}
}

// stopped says before anything else that OLM is stopped, and what to do.
func (o *adoptRunOptions) stopped(res *run.Result, what string) {
	if len(res.Stopped) == 0 {
		return
	}
	var names []string
	for _, ref := range res.Stopped {
		names = append(names, ref.Namespace+"/"+ref.Name)
	}
	o.talk.Insist(diag.Warning{
		Code: "olm-stopped", Msg: fmt.Sprintf("OLM is stopped (%s), and installs and upgrades nothing until the plan starts it: %s", strings.Join(names, ", "), what),
	})
}

// verdict returns what the exit code of a run comes of.
func (o *adoptRunOptions) verdict(res *run.Result, err error) error {
	left := 0
	for _, s := range res.Steps {
		if s.State == run.Tried || s.State == run.Waiting {
			left++
		}
	}
	if err == nil && o.check && left > 0 {
		return &project.DiffersError{Msg: diag.Count(left, "step") + " left to do"}
	}
	var step *run.StepError
	if errors.As(err, &step) && step.Differs() {
		return &project.DiffersError{Msg: err.Error()}
	}
	return err
}

// summary says in one line how far a plan is.
func summary(res *run.Result) string {
	count := map[run.State]int{}
	for _, s := range res.Steps {
		count[s.State]++
	}
	var parts []string
	for _, state := range []run.State{run.Done, run.Before, run.Tried, run.Waiting, run.Broken, run.Pending} {
		if n := count[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, map[run.State]string{
				run.Done: "done", run.Before: "done before", run.Tried: "tried", run.Waiting: "waiting for you", run.Broken: "failed", run.Pending: "to come",
			}[state]))
		}
	}
	return fmt.Sprintf("%s: %s", diag.Count(len(res.Steps), "step"), strings.Join(parts, ", "))
}

// stepwise tells a person what happens, and asks.
type stepwise struct {
	*app
	yes  bool
	hand bool
	plan *plan.Plan
}

var _ run.Say = (*stepwise)(nil)

// Step shows a step and asks whether to do it.
func (s *stepwise) Step(ctx context.Context, step plan.Step) (bool, error) {
	s.head(step, s.yes && !s.hand)
	for _, a := range step.Actions {
		switch {
		case s.hand:
			s.talk.Say("    %s", inert.Line(s.plan.Kubectl(a, nil)))
		case !s.yes:
			s.talk.Say("    %s", inert.Line(fmt.Sprintf("%s %s", a.Do, a.Object)))
		}
	}
	if s.yes {
		return true, nil
	}
	return s.prompt.Confirm(ctx, "Do this step?")
}

// Manual shows what a person has to do and asks whether it is done.
func (s *stepwise) Manual(ctx context.Context, step plan.Step) (bool, error) {
	s.head(step, false)
	s.talk.Say("    %s", inert.Line(step.Manual))
	if !s.prompt.Can() {
		return false, nil
	}
	return s.prompt.Confirm(ctx, "Is it done?")
}

// head prints which step it is; with --quiet, where it is not done without a word.
func (s *stepwise) head(step plan.Step, alone bool) {
	tell := s.talk.Say
	if alone {
		tell = s.talk.Note
	}
	tell("%s %s", s.talk.Paint(terminal.Bold, fmt.Sprintf("step %d of %d:", step.Number, len(s.plan.Steps))), inert.Line(step.Title))
}

// Action prints what an action came to.
func (s *stepwise) Action(_ plan.Step, a run.ActionResult) {
	s.talk.Note("%s", inert.Line(fmt.Sprintf("    %-8s %s (%s)", a.Outcome, a.Object, a.Do)))
	for _, f := range a.Changes {
		s.talk.Note("%s", inert.Line(fmt.Sprintf("             %s: %s", f.How, f.Path)))
	}
}

// Waiting shows what does not hold yet.
func (s *stepwise) Waiting(step plan.Step, missing []verify.Finding) {
	s.talk.Progress("step %d: waiting: %s", step.Number, missing[0].Message)
}

// wallClock is the time.
type wallClock struct{}

// Now returns the time.
func (wallClock) Now() time.Time { return time.Now() }

// Sleep waits, until ctx ends at most.
func (wallClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
