package verify

import (
	"context"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/internal/kobj"
)

// seen is what a cluster shows of a step or an action.
type seen int

const (
	unseen seen = iota // nothing: it changes no object, or what it did was undone since
	undone
	begun
	done
)

// progress returns which of a namespace's steps was done last, 0 for none, and
// whether the one behind it has begun, as the cluster shows it. Of steps that it does
// not show, what is known says it.
func progress(ctx context.Context, r Reader, p *plan.Plan, namespace string, known Known) (last int, partly bool, err error) {
	steps := stepsOf(p, namespace)
	states := make([]seen, len(steps))
	at := -1
	for i, s := range steps {
		if states[i], err = stateOf(ctx, r, p, s); err != nil {
			return 0, false, err
		}
		switch {
		case scales(s): // OLM's controllers run before they are stopped too
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

func scales(s plan.Step) bool {
	return slices.ContainsFunc(s.Actions, func(a plan.Action) bool { return a.Do == plan.Scale })
}

// stateOf returns what a cluster shows of a step.
func stateOf(ctx context.Context, r Reader, p *plan.Plan, s plan.Step) (seen, error) {
	states := make([]seen, len(s.Actions))
	err := each(ctx, len(s.Actions), func(ctx context.Context, i int) error {
		o, err := r.Get(ctx, s.Actions[i].Object)
		states[i] = outcome(p, s.Actions[i], o)
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

// outcome returns what an object shows of an action; the object is nil where it is
// not there.
func outcome(p *plan.Plan, a plan.Action, o kobj.Object) seen {
	is := func(ok bool) seen {
		if ok {
			return done
		}
		return undone
	}
	gone := o == nil || a.UID != "" && kobj.Text(o, "metadata", "uid") != a.UID
	switch a.Do {
	case plan.Delete, plan.Orphan:
		return is(gone)
	case plan.Create:
		return is(o != nil)
	case plan.Apply:
		if gone && a.UID != "" {
			return unseen
		}
		return is(applied(o, p.Manager))
	case plan.Scale:
		return is(o != nil && replicas(o) == a.To)
	case plan.Keep, plan.Restore:
		return unseen
	case plan.Annotate, plan.Unfinalize, plan.Unlabel, plan.TakeOver:
		if gone {
			return unseen
		}
		return is(changed(a, o))
	}
	return unseen
}

// changed reports whether an object is as an action makes it.
func changed(a plan.Action, o kobj.Object) bool {
	if a.Do == plan.TakeOver {
		return !slices.ContainsFunc(kobj.Items(o, "metadata", "managedFields"), plan.ByOLM)
	}
	if a.Do == plan.Unfinalize {
		return !slices.Contains(kobj.Texts(o, "metadata", "finalizers"), a.Finalizer)
	}
	at := "annotations"
	if a.Do == plan.Unlabel {
		at = "labels"
	}
	have := kobj.TextMap(o, "metadata", at)
	for key, value := range a.Set {
		if have[key] != value {
			return false
		}
	}
	return !slices.ContainsFunc(a.Unset, func(key string) bool { _, there := have[key]; return there })
}

// applied reports whether a manager has applied an object; where its fields'
// managers are not told, whether it bears a label of the tree's.
func applied(o kobj.Object, manager string) bool {
	if fields := kobj.Items(o, "metadata", "managedFields"); len(fields) > 0 {
		return slices.ContainsFunc(fields, func(m map[string]any) bool {
			return kobj.Text(m, "manager") == manager && kobj.Text(m, "operation") == "Apply"
		})
	}
	for key := range kobj.TextMap(o, "metadata", "labels") {
		if strings.HasPrefix(key, "quayside.dev/") {
			return true
		}
	}
	return false
}
