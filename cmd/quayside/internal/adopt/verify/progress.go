package verify

import (
	"context"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/k8s"
)

// observedProgress is the observed progress of a step or an action.
type observedProgress int

const (
	notVisible observedProgress = iota // it changes no object, or its object was deleted later
	notStarted
	started
	completed
)

// findProgress returns the number of a namespace's last completed step, or 0, and whether the next step
// has started, as observed in the cluster. For steps that are not visible in the cluster, it uses
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
		case concernsOLM(s): // ambiguous: OLM's controllers run before Stop and after Start
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
	return slices.ContainsFunc(s.Actions, func(a plan.Action) bool { return a.Do == plan.Scale || a.Do == plan.RestartPods })
}

// stepProgress returns the observed progress of a step.
func stepProgress(ctx context.Context, r Reader, p *plan.Plan, s plan.Step) (observedProgress, error) {
	states := make([]observedProgress, len(s.Actions))
	err := runParallel(ctx, len(s.Actions), func(ctx context.Context, i int) error {
		o, err := r.Get(ctx, s.Actions[i].Object)
		states[i] = actionProgress(p, s.Actions[i], o)
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

// actionProgress returns the observed progress of an action on an object; o is nil if the object
// does not exist.
func actionProgress(p *plan.Plan, a plan.Action, o k8s.Object) observedProgress {
	is := func(ok bool) observedProgress {
		if ok {
			return completed
		}
		return notStarted
	}
	gone := o == nil || a.UID != "" && k8s.Text(o, "metadata", "uid") != a.UID
	switch a.Do {
	case plan.Delete, plan.Orphan:
		return is(gone)
	case plan.Create:
		return is(o != nil)
	case plan.Apply:
		if gone && a.UID != "" {
			return notVisible
		}
		return is(isAppliedBy(o, p.Manager))
	case plan.Scale:
		return is(o != nil && plan.Replicas(o) == a.To)
	case plan.Save, plan.Restore, plan.RestartPods:
		return notVisible
	case plan.Annotate, plan.Disown, plan.Unfinalize, plan.Unlabel, plan.TransferFields:
		if gone {
			return notVisible
		}
		return is(a.IsDone(o))
	}
	return notVisible
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
