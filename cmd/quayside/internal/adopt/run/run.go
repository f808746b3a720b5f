package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/k8s"
)

// Input is the input of Run.
type Input struct {
	Plan     *plan.Plan
	Rendered []k8s.Object // rendered objects of the cluster
	Cluster  Client
	Journal  *Journal
	Clock    Clock
	Prompter Prompter

	Only    int    // number of the only step to execute, even if it is done; 0: all remaining steps
	CleanUp bool   // without Only: also execute clean-up steps, which cannot be reverted, and later steps
	Done    []int  // numbers of manual steps that a person has done
	Skip    string // reason for accepting the findings that stop the first step of this run; empty: accept none
	DryRun  bool   // send all requests as dry runs, and do not change the journal

	SyncDelay   time.Duration // time that OLM needs after its start to process every object
	Watch       time.Duration // probe during the run, and for this time after OLM was started again; 0: no probes
	MaxDowntime time.Duration // start OLM again after this time, unless a detach is unfinished; 0: only in the start step

	ProbeInterval time.Duration // pause between two rounds of probes; 0: one second
}

// Clock provides the time. If ctx ends, Sleep returns early with an error.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// Prompter reports progress and asks the user for decisions.
type Prompter interface {
	// ConfirmStep announces the next step, and returns whether the run may execute it.
	ConfirmStep(ctx context.Context, s plan.Step) (bool, error)
	// ConfirmManualStep announces a manual step, and returns whether the user has done it.
	ConfirmManualStep(ctx context.Context, s plan.Step) (bool, error)
	// ReportAction reports the result of an action.
	ReportAction(s plan.Step, a ActionResult)
	// ReportWaiting reports the conditions that are not fulfilled yet.
	ReportWaiting(s plan.Step, missing []verify.Finding)
	// ReportOLM reports that OLM was started before its step s was due. If started is false, it reports that
	// OLM stays stopped until step s is done.
	ReportOLM(s plan.Step, started bool)
	// ReportProbing reports that all steps are done, and that the probes continue for the duration left.
	ReportProbing(left time.Duration)
}

// Progress is the result of a run, with the state of every step of the plan.
type Progress struct {
	Steps    []StepResult         `json:"steps" doc:"Result of each step, in order."`
	Stopped  []k8s.Ref            `json:"stopped" doc:"OLM's controllers that the plan has stopped and has not started again."`
	Ways     []Way                `json:"ways" form:"enum=continue|skip|revert|new-plan" doc:"Ways to go on if the run ended early. continue: repeat the command, after a cause outside of the plan is fixed; skip: repeat it with --skip and a reason; revert: return to OLM; new-plan: make a new plan, because no step has begun."`
	Downtime int64                `json:"olmDowntime,omitempty" doc:"Milliseconds for which the plan has stopped OLM so far."`
	Probes   []verify.ProbeResult `json:"probes,omitempty" doc:"Results of the probes of this run, by kind. Absent without probes."`
	Error    string               `json:"error,omitempty" doc:"Reason why the run ended early."`
}

// StepResult is the result of a step.
type StepResult struct {
	Number    int              `json:"number" doc:"As in the plan."`
	Name      plan.StepKind    `json:"name" doc:"Kind of step."`
	Namespace string           `json:"namespace,omitempty" doc:"Namespace of the step. Absent if the step is for the whole cluster."`
	State     State            `json:"state" form:"enum=done|already-done|dry-run|waiting|failed|pending" doc:"done: now; already-done: by an earlier run; dry-run: by the API server, which stored nothing; waiting: waits for confirmation; failed: stopped; pending: not reached."`
	Actions   []ActionResult   `json:"actions,omitempty" doc:"Actions of this run, in order."`
	Findings  []verify.Finding `json:"findings,omitempty" doc:"Failed conditions of the step."`
}

// State is the progress of a step.
type State string

// The states of steps.
const (
	Done        State = "done"
	AlreadyDone State = "already-done"
	DryRun      State = "dry-run"
	Waiting     State = "waiting"
	StepFailed  State = "failed"
	Pending     State = "pending"
)

// ActionResult is the result of an action.
type ActionResult struct {
	Do      plan.Verb     `json:"verb" doc:"As in the plan."`
	Object  k8s.Ref       `json:"object" doc:"The object."`
	Outcome plan.Outcome  `json:"outcome" form:"enum=created|changed|deleted|unchanged|saved|skipped" doc:"created, changed, deleted, saved (in the backup); unchanged: nothing to do; skipped: an earlier action is required first."`
	Changes []adopt.Field `json:"changes,omitempty" doc:"In a dry run: the fields that would change."`
}

// Run executes the steps of a plan in order, starting with the first step that is not done. If a step fails,
// Run returns the result so far and a *StepError with the reason. Before a clean-up step that was not
// requested, it returns without an error, and the step has the state Waiting. The result lists the controllers
// of OLM that are stopped.
//
// When ctx ends, Run still completes and records the current request.
func Run(ctx context.Context, in Input) (*Progress, error) {
	r := &runner{Input: in, rendered: map[k8s.Key]k8s.Object{}, before: map[string]*verify.Evidence{}, result: &Progress{Stopped: []k8s.Ref{}, Ways: []Way{}}}
	for _, o := range in.Rendered {
		r.rendered[o.Key()] = o
	}
	for _, s := range in.Plan.Steps {
		state := Pending
		if in.Journal.HasEnded(s.Number) {
			state = AlreadyDone
		}
		r.result.Steps = append(r.result.Steps, StepResult{Number: s.Number, Name: s.Name, Namespace: s.Namespace, State: state})
	}
	begun := in.Clock.Now()
	err := r.run(ctx)
	var step *StepError // with any other error, the plan or the journal does not match the cluster
	if errors.As(err, &step) && in.MaxDowntime > 0 && in.Only == 0 && !in.DryRun {
		if startErr := r.startOLMEarly(context.WithoutCancel(ctx)); startErr != nil {
			err = errors.Join(err, startErr)
		}
	}
	if lost := r.endProbes(ctx, begun, err != nil); lost != nil {
		err = errors.Join(err, lost)
	}
	down, _ := in.Journal.downtime(in.Plan, in.Clock.Now())
	r.result.Downtime = down.Milliseconds()
	r.result.Stopped = append(r.result.Stopped, in.Journal.Stopped(in.Plan)...)
	if err != nil {
		r.result.Error = err.Error()
		r.result.Ways = append(r.result.Ways, r.waysToContinue(err)...)
	}
	return r.result, err
}

type runner struct {
	Input
	rendered    map[k8s.Key]k8s.Object
	before      map[string]*verify.Evidence // evidence by namespace
	result      *Progress
	reportedOLM bool // whether ReportOLM was called for a stopped OLM
	firstStep   int  // number of the first step of this run
	probes      *probing
}

func (r *runner) run(ctx context.Context) error {
	if err := r.Plan.CheckLimits(); err != nil {
		return err
	}
	if err := verify.CheckCluster(ctx, r.Cluster, r.Plan); err != nil {
		return err
	}
	if err := r.checkKnownSteps(); err != nil {
		return err
	}
	for i, s := range r.Plan.Steps {
		ended := r.Journal.HasEnded(s.Number)
		switch {
		case r.Only != 0 && s.Number > r.Only:
			return nil
		case r.Only == s.Number:
		case ended:
			continue
		case r.Only != 0 && !isBlocking(s):
			continue
		case r.Only != 0 && !r.DryRun:
			return fmt.Errorf("step %d needs step %d (%s) to be done first", r.Only, s.Number, s.Title)
		case r.Only != 0:
			continue
		case s.Name == plan.CleanUp && !r.CleanUp && !r.DryRun:
			r.result.Steps[i].State = Waiting
			return nil
		}
		if s.Name == plan.Detach && !r.Journal.HasBegun(s.Number) {
			stopped := len(r.Journal.Stopped(r.Plan))
			if err := r.limitDowntime(ctx); err != nil {
				return err
			}
			if len(r.Journal.Stopped(r.Plan)) < stopped { // OLM was started: give it time to work
				if err := r.Clock.Sleep(ctx, r.SyncDelay); err != nil {
					return err
				}
			}
		}
		if s.Manual == "" {
			if err := r.startProbes(ctx); err != nil {
				return err
			}
		}
		if err := r.stopOLMAgain(ctx, s); err != nil {
			return err
		}
		r.firstStep = cmp.Or(r.firstStep, s.Number)
		if err := r.runStep(ctx, s, &r.result.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkKnownSteps returns an error if the input names a step that the plan does not have.
func (r *runner) checkKnownSteps() error {
	for _, n := range append(slices.Clone(r.Done), r.Only) {
		if n != 0 && !slices.ContainsFunc(r.Plan.Steps, func(s plan.Step) bool { return s.Number == n }) {
			return fmt.Errorf("the plan has no step %d: it has %d steps", n, len(r.Plan.Steps))
		}
	}
	return nil
}

// isBlocking reports whether a step must be done before later steps. Two kinds of manual steps are not
// blocking: Certificates, which may be due years later, and Uninstall, which affects only OLM.
func isBlocking(s plan.Step) bool {
	return s.Manual == "" || s.Name != plan.Certificates && s.Name != plan.Uninstall
}

// runStep executes one step. If the step fails, runStep records the failure in the result and the journal.
func (r *runner) runStep(ctx context.Context, s plan.Step, out *StepResult) error {
	err := r.executeStep(ctx, s, out)
	var failed *StepError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		out.Findings = failed.Findings
	default:
		err = &StepError{Step: s, Err: err}
	}
	if out.State != Waiting {
		out.State = StepFailed
	}
	if !r.DryRun && r.Journal.HasBegun(s.Number) {
		if lost := r.recordEntry(Entry{Event: Failed, Step: s.Number, Message: err.Error()}); lost != nil {
			err = errors.Join(err, lost)
		}
	}
	return err
}

func (r *runner) executeStep(ctx context.Context, s plan.Step, out *StepResult) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.Manual != "" || slices.Contains(r.Done, s.Number) {
		return r.runManualStep(ctx, s, out)
	}
	if yes, err := r.Prompter.ConfirmStep(ctx, s); err != nil || !yes {
		if err == nil {
			out.State, err = Waiting, &StepError{Step: s, Err: errDeclined}
		}
		return err
	}
	if r.DryRun {
		out.State = DryRun
		return r.runActions(ctx, s, out)
	}
	if _, err := r.loadEvidence(ctx, s.Namespace); err != nil {
		return err
	}
	if err := r.checkPreconditions(ctx, s); err != nil {
		return err
	}
	if !r.Journal.HasBegun(s.Number) {
		if err := r.recordEntry(Entry{Event: Began, Step: s.Number}); err != nil {
			return err
		}
	}
	r.probes.beginStep(s)
	if err := r.runActions(ctx, s, out); err != nil {
		return err
	}
	if err := r.awaitPostconditions(ctx, s); err != nil {
		return err
	}
	out.State = Done
	return r.recordEntry(Entry{Event: Ended, Step: s.Number})
}

// runManualStep asks whether a manual step is done, and checks its postconditions.
func (r *runner) runManualStep(ctx context.Context, s plan.Step, out *StepResult) error {
	if r.DryRun {
		out.State = Waiting
		return nil
	}
	done := slices.Contains(r.Done, s.Number)
	if !done {
		plans, err := r.approvalCommands(ctx, s)
		if err != nil {
			return err
		}
		s.Manual += plans
		if done, err = r.Prompter.ConfirmManualStep(ctx, s); err != nil {
			return err
		}
	}
	switch {
	case !done && isBlocking(s):
		out.State = Waiting
		return &StepError{Step: s, Err: errManual}
	case !done:
		out.State = Waiting
		return nil
	}
	if _, err := r.loadEvidence(ctx, s.Namespace); err != nil {
		return err
	}
	if err := r.awaitPostconditions(ctx, s); err != nil {
		return err
	}
	out.State = Done
	return r.recordEntry(Entry{Event: Ended, Step: s.Number, Outcome: plan.ByHand})
}

// loadEvidence returns the state of a namespace as captured before its first step. Until a step of the
// namespace has begun, each run captures the state again. If namespace is "", the result is nil.
func (r *runner) loadEvidence(ctx context.Context, namespace string) (*verify.Evidence, error) {
	if e := r.before[namespace]; e != nil || namespace == "" {
		return e, nil
	}
	for _, s := range r.Plan.Steps {
		if s.Namespace != namespace || !r.Journal.HasBegun(s.Number) {
			continue
		}
		e, err := r.Journal.Evidence(namespace)
		if e == nil && err == nil {
			err = fmt.Errorf("the journal lacks the evidence of namespace %s before step %d (%s)", namespace, s.Number, evidenceName(namespace))
		}
		r.before[namespace] = e
		return e, err
	}
	e, err := verify.Capture(ctx, r.Cluster, r.Plan, namespace)
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", namespace, err)
	}
	r.before[namespace] = e
	return e, r.Journal.SaveEvidence(e)
}

// recordEntry writes an entry to the journal.
func (r *runner) recordEntry(e Entry) error {
	e.Time = r.Clock.Now().UTC()
	return r.Journal.add(e)
}

// runActions executes the actions of a step that are not done. In a dry run, it tries all actions.
func (r *runner) runActions(ctx context.Context, s plan.Step, out *StepResult) error {
	again := r.DryRun || r.Journal.HasEnded(s.Number)
	for i := range s.Actions {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.Actions[i].Do != plan.Scale && r.Journal.lastEntry(s.Number, i+1, Did) != nil && !again {
			continue
		}
		did, err := r.runAction(context.WithoutCancel(ctx), s, i+1)
		if err != nil {
			return &StepError{Step: s, Err: err}
		}
		out.Actions = append(out.Actions, did)
		r.Prompter.ReportAction(s, did)
	}
	return nil
}
