package verify

import (
	"context"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/olmexit/plan"
)

// seen is the observed progress of a step or an action.
type seen int

const (
	unseen seen = iota // not visible: it changes no object, or its change was undone since
	undone
	begun
	done
)

// findProgress returns the number of a namespace's last completed step, or 0, and whether the next
// one has begun, as observed in the cluster. For steps that are not visible in the cluster, it
// uses known.
func findProgress(ctx context.Context, r Reader, p *plan.Plan, namespace string, known Known) (last int, partly bool, err error) {
	steps := stepsOf(p, namespace)
	states := make([]seen, len(steps))
	at := -1
	for i, s := range steps {
		if states[i], err = stateOf(ctx, r, p, s); err != nil {
			return 0, false, err
		}
		switch {
		case isScaling(s): // OLM's controllers also run before they are stopped
		case states[i] == done:
			at, partly = i, false
		case states[i] == begun:
			at, partly = i-1, true
		}
	}
	for !partly && at+1 < len(steps) && (states[at+1] == done || states[at+1] == unseen && known.ended(steps[at+1].Number)) {
		at++
	}
	if at < 0 {
		return 0, partly, nil
	}
	return steps[at].Number, partly, nil
}

func isScaling(s plan.Step) bool {
	return slices.ContainsFunc(s.Actions, func(a plan.Action) bool { return a.Do == plan.Scale })
}

// stateOf returns the observed progress of a step.
func stateOf(ctx context.Context, r Reader, p *plan.Plan, s plan.Step) (seen, error) {
	states := make([]seen, len(s.Actions))
	err := runParallel(ctx, len(s.Actions), func(ctx context.Context, i int) error {
		o, err := r.Get(ctx, s.Actions[i].Object)
		states[i] = actionOutcome(p, s.Actions[i], o)
		return err
	})
	shown := slices.DeleteFunc(states, func(s seen) bool { return s == unseen })
	switch {
	case err != nil || len(shown) == 0:
		return unseen, err
	case !slices.Contains(shown, undone):
		return done, nil
	case slices.Contains(shown, done):
		return begun, nil
	}
	return undone, nil
}

// actionOutcome returns the observed progress of an action on an object; o is nil if the object
// does not exist.
func actionOutcome(p *plan.Plan, a plan.Action, o k8s.Object) seen {
	is := func(ok bool) seen {
		if ok {
			return done
		}
		return undone
	}
	gone := o == nil || a.UID != "" && k8s.Text(o, "metadata", "uid") != a.UID
	switch a.Do {
	case plan.Delete, plan.Orphan:
		return is(gone)
	case plan.Create:
		return is(o != nil)
	case plan.Apply:
		if gone && a.UID != "" {
			return unseen
		}
		return is(isAppliedBy(o, p.Manager))
	case plan.Scale:
		return is(o != nil && plan.Replicas(o) == a.To)
	case plan.Keep, plan.Restore:
		return unseen
	case plan.Annotate, plan.Unfinalize, plan.Unlabel, plan.TakeOver:
		if gone {
			return unseen
		}
		return is(a.IsDone(o))
	}
	return unseen
}

// isAppliedBy reports whether a manager has applied an object. Without managedFields, it
// reports whether the object has a label of the tree.
func isAppliedBy(o k8s.Object, manager string) bool {
	if len(k8s.Items(o, "metadata", "managedFields")) > 0 {
		return plan.AppliedBy(o, manager)
	}
	for key := range k8s.TextMap(o, "metadata", "labels") {
		if strings.HasPrefix(key, "quayside.dev/") {
			return true
		}
	}
	return false
}
