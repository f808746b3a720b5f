package run

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/verify"
	"github.com/quayside/quayside/internal/kobj"
)

// patience says how long is waited until a condition holds. What is not in it may
// take as long as the API server's own caches.
func patience() map[plan.Condition]time.Duration {
	return map[plan.Condition]time.Duration{
		plan.IsStopped: 3 * time.Minute,
		plan.IsReady:   10 * time.Minute,
		plan.Gone:      3 * time.Minute,
		plan.NoOwner:   3 * time.Minute,
		plan.Succeeded: 10 * time.Minute,
		plan.Available: time.Minute,
	}
}

const (
	soon      = 15 * time.Second
	firstLook = 250 * time.Millisecond
	lastLook  = 5 * time.Second
)

// holds asks the checks before a step, which must hold at once.
func (r *runner) holds(ctx context.Context, s plan.Step, before *verify.Evidence, checks []plan.Check) error {
	for _, c := range checks {
		findings, err := verify.Check(ctx, r.Cluster, r.Plan, s, before, c)
		if err != nil {
			return err
		}
		if len(findings) > 0 {
			return &StepError{Step: s, Check: c.Check, Findings: findings, Err: errBefore}
		}
	}
	return nil
}

// stillBefore returns the checks before a step that hold until the step is done. Of
// what an action was sent for already, nothing is asked.
func (r *runner) stillBefore(s plan.Step) []plan.Check {
	touched := map[kobj.Key]bool{}
	for i, a := range s.Actions {
		if r.Journal.last(s.Number, i+1, Intends) != nil {
			touched[a.Object.Key()] = true
		}
	}
	if len(touched) == 0 {
		return s.Before
	}
	var out []plan.Check
	for _, c := range s.Before {
		whole := slices.Contains([]plan.Condition{plan.NoPlan, plan.IsStopped, plan.IsReady, plan.Rights, plan.Prepared}, c.Check)
		c.Objects = slices.DeleteFunc(slices.Clone(c.Objects), func(ref kobj.Ref) bool { return touched[ref.Key()] })
		if whole || len(c.Objects) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// await asks the checks after a step until they hold, for as long as each takes.
func (r *runner) await(ctx context.Context, s plan.Step, before *verify.Evidence) error {
	begun, pause := r.Clock.Now(), firstLook
	for _, c := range s.After {
		for {
			findings, err := verify.Check(ctx, r.Cluster, r.Plan, s, before, c)
			if err != nil {
				return err
			}
			if len(findings) == 0 {
				break
			}
			if r.Clock.Now().Sub(begun) > cmp.Or(patience()[c.Check], soon) {
				return &StepError{Step: s, Check: c.Check, Findings: findings, Err: errAfter}
			}
			r.Say.Waiting(s, findings)
			if err := r.Clock.Sleep(ctx, pause); err != nil {
				return err
			}
			pause = min(2*pause, lastLook)
		}
	}
	return nil
}
