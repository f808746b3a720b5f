package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/verify"
	"github.com/quayside/quayside/internal/kobj"
)

// Input is all that a run works with.
type Input struct {
	Plan     *plan.Plan
	Rendered []kobj.Object // what the lock renders to for the cluster
	Cluster  Cluster
	Journal  *Journal
	Clock    Clock
	Say      Say

	Only    int   // the one step to do, again where it is done already; 0: all
	CleanUp bool  // of all, those from the first clean-up on too, from which nothing leads back
	Done    []int // steps that a person says they did by hand
	DryRun  bool  // have the API server try everything and store nothing; the journal stays as it is
}

// Clock is the time. Sleep returns early, with an error, when ctx ends.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// Say is told what happens, and asked.
type Say interface {
	// Step is told that a step comes next, and returns whether to do it.
	Step(ctx context.Context, s plan.Step) (bool, error)
	// Manual is told that a person has to do a step, and returns whether it is done.
	Manual(ctx context.Context, s plan.Step) (bool, error)
	// Action is told what an action came to.
	Action(s plan.Step, a ActionResult)
	// Waiting is told what does not hold yet.
	Waiting(s plan.Step, missing []verify.Finding)
}

// Result is what became of every step of a plan.
type Result struct {
	Steps   []StepResult `json:"steps" doc:"What became of each step, in order."`
	Stopped []kobj.Ref   `json:"stopped" doc:"OLM's controllers that the plan has stopped and not started again yet."`
	Error   string       `json:"error,omitempty" doc:"Why the run ended before all was done."`
}

// StepResult is what became of a step.
type StepResult struct {
	Number    int              `json:"number" doc:"As in the plan."`
	Name      plan.Name        `json:"name" doc:"What sort of step it is."`
	Namespace string           `json:"namespace,omitempty" doc:"The namespace that it is about. Absent: the cluster."`
	State     State            `json:"state" form:"enum=done|before|tried|waiting|failed|pending" doc:"done: now; before: by an earlier run; tried: by the API server, which stored nothing; waiting: for a person; failed; pending: it was not its turn."`
	Actions   []ActionResult   `json:"actions,omitempty" doc:"What was done in this run, in order."`
	Findings  []verify.Finding `json:"findings,omitempty" doc:"What does not hold, where the step failed for it."`
}

// State says how far a step is.
type State string

// The states of steps.
const (
	Done    State = "done"
	Before  State = "before"
	Tried   State = "tried"
	Waiting State = "waiting"
	Broken  State = "failed"
	Pending State = "pending"
)

// ActionResult is what an action came to.
type ActionResult struct {
	Do      plan.Verb     `json:"do" doc:"As in the plan."`
	Object  kobj.Ref      `json:"object" doc:"The object."`
	Outcome Outcome       `json:"outcome" form:"enum=created|changed|deleted|already|kept|untried" doc:"created, changed, deleted, kept (in the backup); already: nothing was left to do; untried: not without what earlier actions bring."`
	Changes []adopt.Field `json:"changes,omitempty" doc:"Where it is only tried: the fields that would change."`
}

// Run does a plan's steps, in order, from the first that is not done. Before a
// clean-up that was not asked for it ends, with that step waiting. It stops
// before anything that does not hold, and returns what was done until then: a
// *StepError says which step stopped it and why. Whether OLM's controllers are stopped
// by then is in the result.
//
// When ctx ends, the request that is under way is waited for, and noted.
func Run(ctx context.Context, in Input) (*Result, error) {
	r := &runner{Input: in, rendered: map[kobj.Key]kobj.Object{}, result: &Result{Stopped: []kobj.Ref{}}}
	for _, o := range in.Rendered {
		r.rendered[o.Key()] = o
	}
	for _, s := range in.Plan.Steps {
		state := Pending
		if in.Journal.Ended(s.Number) {
			state = Before
		}
		r.result.Steps = append(r.result.Steps, StepResult{Number: s.Number, Name: s.Name, Namespace: s.Namespace, State: state})
	}
	err := r.run(ctx)
	r.result.Stopped = append(r.result.Stopped, in.Journal.Stopped(in.Plan)...)
	if err != nil {
		r.result.Error = err.Error()
	}
	return r.result, err
}

type runner struct {
	Input
	rendered map[kobj.Key]kobj.Object
	result   *Result
}

func (r *runner) run(ctx context.Context) error {
	if err := verify.Same(ctx, r.Cluster, r.Plan); err != nil {
		return err
	}
	if err := r.known(); err != nil {
		return err
	}
	for i, s := range r.Plan.Steps {
		ended := r.Journal.Ended(s.Number)
		switch {
		case r.Only != 0 && s.Number > r.Only:
			return nil
		case r.Only == s.Number:
		case ended:
			continue
		case r.Only != 0 && !blocks(s):
			continue
		case r.Only != 0 && !r.DryRun:
			return fmt.Errorf("step %d cannot be done before step %d (%s), which is not done yet", r.Only, s.Number, s.Title)
		case r.Only != 0:
			continue
		case s.Name == plan.CleanUp && !r.CleanUp && !r.DryRun:
			r.result.Steps[i].State = Waiting
			return nil
		}
		if err := r.step(ctx, s, &r.result.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// known refuses steps that the plan does not have.
func (r *runner) known() error {
	for _, n := range append(slices.Clone(r.Done), r.Only) {
		if n != 0 && !slices.ContainsFunc(r.Plan.Steps, func(s plan.Step) bool { return s.Number == n }) {
			return fmt.Errorf("the plan has no step %d: it has %d", n, len(r.Plan.Steps))
		}
	}
	return nil
}

// blocks reports whether what comes after a step has to wait for it. What a person
// does years later, or about OLM as a whole, is no part of a namespace's way.
func blocks(s plan.Step) bool {
	return s.Manual == "" || s.Name != plan.Certificates && s.Name != plan.Uninstall
}

// step does one step.
func (r *runner) step(ctx context.Context, s plan.Step, out *StepResult) error {
	err := r.inOrder(ctx, s, out)
	var said *StepError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &said):
		out.Findings = said.Findings
	default:
		err = &StepError{Step: s, Err: err}
	}
	if out.State != Waiting {
		out.State = Broken
	}
	if !r.DryRun && r.Journal.Began(s.Number) {
		if lost := r.note(Entry{Event: Failed, Step: s.Number, Message: err.Error()}); lost != nil {
			err = errors.Join(err, lost)
		}
	}
	return err
}

func (r *runner) inOrder(ctx context.Context, s plan.Step, out *StepResult) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.Manual != "" || slices.Contains(r.Done, s.Number) {
		return r.byHand(ctx, s, out)
	}
	if yes, err := r.Say.Step(ctx, s); err != nil || !yes {
		if err == nil {
			out.State, err = Waiting, &StepError{Step: s, Err: errDeclined}
		}
		return err
	}
	if r.DryRun {
		return r.try(ctx, s, out)
	}
	before, err := r.evidence(ctx, s)
	if err != nil {
		return err
	}
	if err := r.holds(ctx, s, before, r.stillBefore(s)); err != nil {
		return err
	}
	if !r.Journal.Began(s.Number) {
		if err := r.note(Entry{Event: Began, Step: s.Number}); err != nil {
			return err
		}
	}
	if err := r.actions(ctx, s, out); err != nil {
		return err
	}
	if err := r.await(ctx, s, before); err != nil {
		return err
	}
	out.State = Done
	return r.note(Entry{Event: Ended, Step: s.Number})
}

// byHand asks for a step that a person does, and checks what they did.
func (r *runner) byHand(ctx context.Context, s plan.Step, out *StepResult) error {
	if r.DryRun {
		out.State = Waiting
		return nil
	}
	done := slices.Contains(r.Done, s.Number)
	if !done {
		var err error
		if done, err = r.Say.Manual(ctx, s); err != nil {
			return err
		}
	}
	switch {
	case !done && blocks(s):
		out.State = Waiting
		return &StepError{Step: s, Err: errManual}
	case !done:
		out.State = Waiting
		return nil
	}
	before, err := r.evidence(ctx, s)
	if err != nil {
		return err
	}
	if err := r.await(ctx, s, before); err != nil {
		return err
	}
	out.State = Done
	return r.note(Entry{Event: Ended, Step: s.Number, Outcome: ByHand})
}

// evidence returns what the cluster had of the step's namespace before its first
// step, and captures it where this is that.
func (r *runner) evidence(ctx context.Context, s plan.Step) (*verify.Evidence, error) {
	if s.Namespace == "" {
		return nil, nil
	}
	e, err := r.Journal.Evidence(s.Namespace)
	if e != nil || err != nil {
		return e, err
	}
	for _, other := range r.Plan.Steps {
		if other.Namespace == s.Namespace && r.Journal.Began(other.Number) {
			return nil, fmt.Errorf("the journal has lost what namespace %s had before step %d (%s)", s.Namespace, other.Number, evidenceName(s.Namespace))
		}
	}
	if e, err = verify.Capture(ctx, r.Cluster, r.Plan, s.Namespace); err != nil {
		return nil, fmt.Errorf("looking at namespace %s: %w", s.Namespace, err)
	}
	return e, r.Journal.keepEvidence(e)
}

// note writes an entry of the journal.
func (r *runner) note(e Entry) error {
	e.Time = r.Clock.Now().UTC()
	return r.Journal.add(e)
}

// actions does what is not done yet of a step.
func (r *runner) actions(ctx context.Context, s plan.Step, out *StepResult) error {
	again := r.Journal.Ended(s.Number)
	for i := range s.Actions {
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.Journal.last(s.Number, i+1, Did) != nil && !again {
			continue
		}
		did, err := r.action(context.WithoutCancel(ctx), s, i+1)
		if err != nil {
			return &StepError{Step: s, Err: err}
		}
		out.Actions = append(out.Actions, did)
		r.Say.Action(s, did)
	}
	return nil
}
