package verify

import (
	"context"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
)

// observedProgress is the progress of a step or an action that the state of the cluster shows.
type observedProgress int

const (
	notVisible observedProgress = iota // the action changes no object, or a later step deletes the object
	notStarted
	started
	completed
)

// findProgress returns the number of the last completed step of a namespace, or 0. partly reports whether the
// next step has started. The cluster shows the progress of most steps. For the other steps, findProgress uses
// known.
func findProgress(ctx context.Context, r Reader, p *plan.Plan, namespace string, known KnownProgress) (last int, partly bool, err error) {
	steps := stepsOf(p, namespace)
	states := make([]observedProgress, len(steps))
	at := -1
	for i, s := range steps {
		if states[i], err = stepProgress(ctx, r, p, s); err != nil {
			return 0, false, err
		}
		switch {
		case concernsOLM(s): // ambiguous: OLM's controllers run both before Stop and after Start
		case states[i] == completed:
			at, partly = i, false
		case states[i] == started:
			at, partly = i-1, true
		}
	}
	for !partly && at+1 < len(steps) && (states[at+1] == completed || states[at+1] == notVisible && known.ended(steps[at+1].Number)) {
		at++
	}
	if at < 0 {
		return 0, partly, nil
	}
	return steps[at].Number, partly, nil
}

// concernsOLM reports whether a step stops, starts or restarts OLM.
func concernsOLM(s plan.Step) bool {
	return slices.ContainsFunc(s.Actions, func(a plan.Action) bool { return a.Do.ConcernsOLM() })
}

// stepProgress returns the observed progress of a step.
func stepProgress(ctx context.Context, r Reader, p *plan.Plan, s plan.Step) (observedProgress, error) {
	states := make([]observedProgress, len(s.Actions))
	err := runParallel(ctx, len(s.Actions), func(ctx context.Context, i int) error {
		o, err := r.Get(ctx, s.Actions[i].Object)
		if done, known := p.Shown(s.Actions[i], o); done && known {
			states[i] = completed
		} else if known {
			states[i] = notStarted
		}
		return err
	})
	shown := slices.DeleteFunc(states, func(s observedProgress) bool { return s == notVisible })
	switch {
	case err != nil || len(shown) == 0:
		return notVisible, err
	case !slices.Contains(shown, notStarted):
		return completed, nil
	case slices.Contains(shown, completed):
		return started, nil
	}
	return notStarted, nil
}
