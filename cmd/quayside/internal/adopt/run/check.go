package run

import (
	"context"
	"slices"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/k8s"
)

const (
	firstPause = 250 * time.Millisecond
	maxPause   = 5 * time.Second
)

// checkPreconditions evaluates the preconditions of a step once, without waiting. If one is not fulfilled, it
// returns a *StepError for the first such condition.
func (r *runner) checkPreconditions(ctx context.Context, s plan.Step) error {
	for _, c := range r.remainingPreconditions(s) {
		findings, err := r.check(ctx, s, c, false)
		if err != nil {
			return err
		}
		if findings, err = r.skip(s, c.Check, findings); err != nil {
			return err
		}
		if len(findings) > 0 {
			return &StepError{Step: s, Check: c.Check, Findings: findings, Err: errPrecondition}
		}
	}
	return nil
}

// check evaluates check c of a step, and returns the violations. If the step is for the whole cluster and c
// lists no objects, it evaluates c for every namespace that leaves OLM. after reports whether the step has been
// executed. If it is false, namespaces whose detach has begun are omitted.
func (r *runner) check(ctx context.Context, s plan.Step, c plan.Check, after bool) ([]verify.Finding, error) {
	namespaces := []string{s.Namespace}
	if s.Namespace == "" && c.Objects == nil {
		namespaces = nil
		for _, other := range r.Plan.Steps {
			if other.Name == plan.Detach && (after || !r.Journal.HasBegun(other.Number)) {
				namespaces = append(namespaces, other.Namespace)
			}
		}
	}
	var out []verify.Finding
	for _, s.Namespace = range namespaces {
		before, err := r.loadEvidence(ctx, s.Namespace)
		if err != nil {
			return nil, err
		}
		findings, err := verify.Check(ctx, r.Cluster, r.Plan, s, before, c)
		if err != nil {
			return nil, err
		}
		out = append(out, findings...)
	}
	return slices.DeleteFunc(out, r.Journal.isSkipped), nil
}

// remainingPreconditions returns the preconditions for starting or resuming a step. If the step is resumed, the
// conditions omit the objects of actions that were already sent.
func (r *runner) remainingPreconditions(s plan.Step) []plan.Check {
	touched := map[k8s.Key]bool{}
	for _, other := range r.Plan.Steps {
		for i, a := range other.Actions {
			mine := other.Number == s.Number || s.Namespace == "" && other.Name == plan.Detach
			if mine && r.Journal.lastEntry(other.Number, i+1, Intends) != nil {
				touched[a.Object.Key()] = true
			}
		}
	}
	if len(touched) == 0 {
		return s.Before
	}
	var out []plan.Check
	for _, c := range s.Before {
		c.Objects = slices.DeleteFunc(slices.Clone(c.Objects), func(ref k8s.Ref) bool { return touched[ref.Key()] })
		if c.Check.IsWhole() || len(c.Objects) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// awaitPostconditions waits until the postconditions of a step are fulfilled. If one is not fulfilled in time,
// it returns a *StepError. If OLM reacts to the step, awaitPostconditions first waits until OLM has processed
// every object. Otherwise OLM could change an object after its check.
func (r *runner) awaitPostconditions(ctx context.Context, s plan.Step) error {
	begun, pause := r.Clock.Now(), firstPause
	synced := !slices.Contains([]plan.StepKind{plan.Start, plan.Restart, plan.CleanUp}, s.Name)
	for _, c := range s.After {
		if !synced && c.Check != plan.IsReady {
			if err := r.Clock.Sleep(ctx, r.SyncDelay); err != nil {
				return err
			}
			synced, begun = true, r.Clock.Now()
		}
		for {
			findings, err := r.check(ctx, s, c, true)
			if err != nil {
				return err
			}
			if len(findings) == 0 {
				break
			}
			if r.Clock.Now().Sub(begun) > time.Duration(c.Check.Seconds())*time.Second {
				if findings, err = r.skip(s, c.Check, findings); err != nil {
					return err
				}
				if len(findings) == 0 {
					break
				}
				return &StepError{Step: s, Check: c.Check, Findings: findings, Err: errPostcondition}
			}
			r.Prompter.ReportWaiting(s, findings)
			if err := r.Clock.Sleep(ctx, pause); err != nil {
				return err
			}
			pause = min(2*pause, maxPause)
			if s.Name == plan.Tree || s.Name == plan.Detach {
				if err := r.limitDowntime(ctx); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
