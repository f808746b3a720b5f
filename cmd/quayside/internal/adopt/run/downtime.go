package run

import (
	"context"
	"slices"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
)

// downtime returns for how long a plan has stopped OLM: in total, and since the current stop began. current is
// 0 if OLM is running.
func (j *Journal) downtime(p *plan.Plan, now time.Time) (total, current time.Duration) {
	var since time.Time
	for _, e := range j.entries {
		a := actionOf(p, e)
		switch {
		case a == nil || a.Do != plan.Scale:
		case a.To < a.From && since.IsZero():
			since = e.Time
		case a.To > a.From && e.Event == Did && !since.IsZero():
			total, since = total+e.Time.Sub(since), time.Time{}
		}
	}
	if since.IsZero() {
		return total, 0
	}
	return total + now.Sub(since), now.Sub(since)
}

// firstStepOfKind returns the first step of a kind that has actions, or nil.
func (r *runner) firstStepOfKind(name plan.StepKind) *plan.Step {
	return r.findStep(func(s plan.Step) bool { return s.Name == name && len(s.Actions) > 0 })
}

// findStep returns the first step that matches, or nil.
func (r *runner) findStep(matches func(plan.Step) bool) *plan.Step {
	i := slices.IndexFunc(r.Plan.Steps, matches)
	if i < 0 {
		return nil
	}
	return &r.Plan.Steps[i]
}

// unfinishedDetach returns the detach step that has begun but is not done, or nil. Until that step is done, OLM
// must not be started.
func (r *runner) unfinishedDetach() *plan.Step {
	return r.findStep(func(s plan.Step) bool {
		return s.Name == plan.Detach && r.Journal.HasBegun(s.Number) && !r.Journal.HasEnded(s.Number)
	})
}

// limitDowntime starts OLM early if OLM has been stopped for longer than MaxDowntime. It does nothing while a
// detach is unfinished.
func (r *runner) limitDowntime(ctx context.Context) error {
	if _, current := r.Journal.downtime(r.Plan, r.Clock.Now()); r.MaxDowntime == 0 || r.DryRun || current <= r.MaxDowntime {
		return nil
	}
	return r.startOLMEarly(ctx)
}

// startOLMEarly starts OLM before it is planned: it executes the actions of the step Start, unless a detach is
// unfinished. The journal then has entries for these actions, but none for the end of the step.
func (r *runner) startOLMEarly(ctx context.Context) error {
	start := r.firstStepOfKind(plan.Start)
	if start == nil || len(r.Journal.Stopped(r.Plan)) == 0 {
		return nil
	}
	if s := r.unfinishedDetach(); s != nil {
		if !r.reportedOLM {
			r.Prompter.ReportOLM(*s, false)
		}
		r.reportedOLM = true
		return nil
	}
	for i := range start.Actions {
		if _, err := r.runAction(ctx, *start, i+1); err != nil {
			return err
		}
	}
	r.Prompter.ReportOLM(*start, true)
	return nil
}

// stopOLMAgain repeats the step that stops OLM if OLM is running and step s needs a stopped OLM. OLM may be
// running because of startOLMEarly, or because a user started it.
func (r *runner) stopOLMAgain(ctx context.Context, s plan.Step) error {
	stop := r.firstStepOfKind(plan.Stop)
	needed := slices.ContainsFunc(s.Before, func(c plan.Check) bool { return c.Check == plan.IsStopped })
	if !needed || r.Plan.Mode != plan.Stopped || stop == nil || r.DryRun || !r.Journal.HasEnded(stop.Number) {
		return nil
	}
	stopped := true
	for _, a := range stop.Actions {
		o, err := r.Cluster.Get(ctx, a.Object)
		if err != nil {
			return err
		}
		stopped = stopped && o != nil && plan.Replicas(o) == 0
	}
	if stopped {
		return nil
	}
	return r.runStep(ctx, *stop, &r.result.Steps[stop.Number-1])
}
