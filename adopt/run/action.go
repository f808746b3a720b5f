package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/kobj"
)

// sends is how often one action is sent at most: OLM and others may change an
// object between looking at it and sending.
const sends = 25

// action is one action under way.
type action struct {
	*runner
	plan.Action
	step   plan.Step
	number int  // from 1
	sent   bool // it was sent before, by this run or an earlier one
}

// verb is how an action is done.
type verb struct {
	// settled reports whether what is to be done is done, by the object as it is, nil
	// where there is none. The error says why it cannot be done.
	settled func(a *action, live kobj.Object) (bool, error)
	// send does it, and returns the object as it is then.
	send func(ctx context.Context, a *action, live kobj.Object) (kobj.Object, error)
	// outcome is what it comes to.
	outcome Outcome
}

// verbs is the table of what actions do.
func verbs() map[plan.Verb]verb {
	return map[plan.Verb]verb{
		plan.Annotate:   marks("annotations"),
		plan.Apply:      {applied, apply, Changed},
		plan.Keep:       {never, backUp, Kept},
		plan.Create:     {created, create, Created},
		plan.Delete:     {deleted, remove, Gone},
		plan.Orphan:     {deleted, orphan, Gone},
		plan.Restore:    {restored, restore, Changed},
		plan.Scale:      {scaled, scale, Changed},
		plan.TakeOver:   {takenOver, takeOver, Changed},
		plan.Unfinalize: {unfinalized, unfinalize, Changed},
		plan.Unlabel:    marks("labels"),
	}
}

// action does one action of a step, which is noted before it is sent and after.
func (r *runner) action(ctx context.Context, s plan.Step, number int) (ActionResult, error) {
	a := &action{runner: r, Action: s.Actions[number-1], step: s, number: number}
	a.sent = r.Journal.last(s.Number, number, Intends) != nil
	out := ActionResult{Do: a.Do, Object: a.Object}
	v, ok := verbs()[a.Do]
	if !ok {
		return out, fmt.Errorf("%q is nothing that can be done", a.Do)
	}
	pause := 50 * time.Millisecond
	for try := 1; ; try++ {
		live, err := r.Cluster.Get(ctx, a.Object)
		if err != nil {
			return out, err
		}
		settled, err := v.settled(a, live)
		if err != nil {
			return out, err
		}
		if settled {
			out.Outcome = Already
			return out, a.did(live, Already)
		}
		if err := a.olmIsStopped(ctx); err != nil {
			return out, err
		}
		if err := a.intends(live); err != nil {
			return out, err
		}
		after, err := v.send(ctx, a, live)
		if err == nil {
			out.Outcome = v.outcome
			if live == nil {
				out.Outcome = Created
			}
			return out, a.did(after, out.Outcome)
		}
		if try == sends || !again(err) {
			return out, err
		}
		if err := r.Clock.Sleep(ctx, pause); err != nil {
			return out, err
		}
		pause = min(2*pause, 5*time.Second)
	}
}

// again reports whether an action that was not done may be sent once more, after
// another look at the object.
func again(err error) bool {
	var refused *cluster.RequestError
	switch {
	case !errors.As(err, &refused):
		return false
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return len(refused.Fields()) == 0
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return refused.Verb == "patch"
	}
	return refused.Passes()
}

func (a *action) entry(event Event, o kobj.Object) Entry {
	return Entry{
		Event: event, Step: a.step.Number, Action: a.number, Do: a.Do, Object: &a.Object,
		UID: kobj.Text(o, "metadata", "uid"), Version: kobj.Text(o, "metadata", "resourceVersion"),
	}
}

func (a *action) intends(live kobj.Object) error {
	if a.sent {
		return nil
	}
	a.sent = true
	return a.note(a.entry(Intends, live))
}

func (a *action) did(o kobj.Object, outcome Outcome) error {
	e := a.entry(Did, o)
	if first := a.Journal.last(a.step.Number, a.number, Intends); outcome == Already && first != nil {
		outcome = verbs()[a.Do].outcome // an earlier run sent it and did not come to note it
		if first.UID == "" {
			outcome = Created
		}
	}
	e.Outcome = outcome
	return a.note(e)
}

// olmIsStopped refuses to make OLM forget anything while controllers run that the
// plan has stopped.
func (a *action) olmIsStopped(ctx context.Context) error {
	if a.Plan.Mode != plan.Stopped || a.Do != plan.Orphan && a.Do != plan.Unfinalize || a.DryRun {
		return nil
	}
	for _, w := range a.Plan.OLM {
		o, err := a.Cluster.Get(ctx, w.Object)
		if err != nil {
			return err
		}
		if n, set := kobj.At(o, "spec", "replicas").(int64); o != nil && (!set || n > 0) {
			return &ChangedError{w.Object, "somebody started it again: find out who scales it, and do the step before that stops it again ('--step')"}
		}
	}
	return nil
}

// mine refuses an object that is not the one which the plan means.
func (a *action) mine(live kobj.Object) error {
	switch uid := kobj.Text(live, "metadata", "uid"); {
	case live == nil:
		return a.changedf("is gone, and this plan did not delete it: look what became of what it owned ('quayside adopt verify'), and make a new plan")
	case a.UID != "" && uid != a.UID:
		return a.changedf("was deleted and made again since the plan was made (its UID was %s and is %s): make a new plan", a.UID, uid)
	case kobj.At(live, "metadata", "deletionTimestamp") != nil:
		return a.changedf("is being deleted, not by this plan: see who does that ('kubectl get -o yaml' shows what holds it up)")
	}
	return nil
}

func (a *action) changedf(format string, args ...any) error {
	return &ChangedError{a.Object, fmt.Sprintf(format, args...)}
}

// never is for what has no sign in the cluster; the journal alone knows.
func never(a *action, live kobj.Object) (bool, error) { return false, a.mine(live) }

// backUp writes an object to a file. A Secret comes without what it holds.
func backUp(_ context.Context, a *action, live kobj.Object) (kobj.Object, error) {
	if live.Is("", "Secret") {
		live = kobj.Object{"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": live["metadata"]}
	}
	if a.DryRun {
		return live, nil
	}
	return live, a.Journal.keep(live)
}

// marks is how annotations or labels are set and removed.
func marks(field string) verb {
	settled := func(a *action, live kobj.Object) (bool, error) {
		if err := a.mine(live); err != nil {
			return false, err
		}
		have := kobj.Map(live, "metadata", field)
		for k, v := range a.Set {
			if have[k] != v {
				return false, nil
			}
		}
		return !slices.ContainsFunc(a.Unset, func(k string) bool { return have[k] != nil }), nil
	}
	send := func(ctx context.Context, a *action, live kobj.Object) (kobj.Object, error) {
		values := map[string]any{}
		for k, v := range a.Set {
			values[k] = v
		}
		for _, k := range a.Unset {
			values[k] = nil
		}
		meta := map[string]any{"uid": kobj.Text(live, "metadata", "uid"), field: values}
		return a.Cluster.Patch(ctx, a.Object, cluster.Patch{Merge: map[string]any{"metadata": meta}}, a.DryRun)
	}
	return verb{settled, send, Changed}
}

// applied is never so by a look at the object: to apply it again changes nothing
// where nothing is to be changed. A new object may be there if an earlier run, or
// whoever applies the tree, brought it.
func applied(a *action, live kobj.Object) (bool, error) {
	if a.rendered[a.Object.Key()] == nil {
		return false, fmt.Errorf("the lock does not render %s: make a new plan", a.Object)
	}
	if live == nil && a.UID == "" {
		return false, nil
	}
	if a.UID == "" && !a.sent && !manages(live, a.Plan.Manager) {
		return false, a.changedf("is there, though it was not when the plan was made, and %s has not applied it: delete it, or make a new plan", a.Plan.Manager)
	}
	return false, a.mine(live)
}

// manages reports whether a manager has applied an object.
func manages(o kobj.Object, manager string) bool {
	return slices.ContainsFunc(kobj.Items(o, "metadata", "managedFields"), func(e map[string]any) bool {
		return kobj.Text(e, "manager") == manager && kobj.Text(e, "operation") == "Apply"
	})
}

func apply(ctx context.Context, a *action, live kobj.Object) (kobj.Object, error) {
	o := a.Applied(a.rendered[a.Object.Key()])
	if live != nil {
		o = kobj.With(o, kobj.At(live, "metadata", "uid"), "metadata", "uid") // refused where it is another one by then
	}
	return a.Cluster.Apply(ctx, o, a.Plan.Manager, a.Force, a.DryRun)
}

// deleted is so where an object is gone, or is about to go because of this action.
func deleted(a *action, live kobj.Object) (bool, error) {
	dying := kobj.At(live, "metadata", "deletionTimestamp") != nil
	switch {
	case live == nil:
		return true, nil
	case dying && (a.sent || a.Do == plan.Delete) && kobj.Text(live, "metadata", "uid") == a.UID:
		return true, nil
	case a.leaving(live):
		return true, nil
	}
	return false, a.mine(live)
}

// leaving reports whether an object is about to go and to leave behind what it owns,
// with nothing else that would hold it up or act on its going.
func (a *action) leaving(live kobj.Object) bool {
	return kobj.At(live, "metadata", "deletionTimestamp") != nil && kobj.Text(live, "metadata", "uid") == a.UID &&
		slices.Equal(kobj.Texts(live, "metadata", "finalizers"), []string{"orphan"})
}

func remove(ctx context.Context, a *action, _ kobj.Object) (kobj.Object, error) {
	return nil, a.Cluster.Delete(ctx, a.Object, cluster.Deletion{UID: a.UID}, a.DryRun)
}

// orphan deletes an object as it was looked at. Where the step freed it from a
// finalizer before, that is done again if somebody put it back.
func orphan(ctx context.Context, a *action, live kobj.Object) (kobj.Object, error) {
	for _, other := range a.step.Actions {
		if other.Do != plan.Unfinalize || other.Object.Key() != a.Object.Key() {
			continue
		}
		free := &action{runner: a.runner, Action: other, step: a.step}
		settled, err := unfinalized(free, live)
		if err == nil && !settled {
			live, err = unfinalize(ctx, free, live)
		}
		if err != nil {
			return nil, err
		}
	}
	opt := cluster.Deletion{UID: a.UID, ResourceVersion: kobj.Text(live, "metadata", "resourceVersion"), Orphan: true}
	return nil, a.Cluster.Delete(ctx, a.Object, opt, a.DryRun)
}

func scaled(a *action, live kobj.Object) (bool, error) {
	if err := a.mine(live); err != nil {
		return false, err
	}
	n, set := kobj.At(live, "spec", "replicas").(int64)
	if !set {
		n = 1
	}
	if n != a.To && n != a.From {
		return false, a.changedf("has %d replicas, not %d as when the plan was made: scale it back, or make a new plan", n, a.From)
	}
	return n == a.To, nil
}

func scale(ctx context.Context, a *action, live kobj.Object) (kobj.Object, error) {
	return a.Cluster.Patch(ctx, a.Object, cluster.Patch{JSON: []cluster.Operation{
		{Op: "test", Path: "/metadata/uid", Value: kobj.Text(live, "metadata", "uid")},
		{Op: "test", Path: "/spec/replicas", Value: a.From},
		{Op: "replace", Path: "/spec/replicas", Value: a.To},
	}}, a.DryRun)
}

func unfinalized(a *action, live kobj.Object) (bool, error) {
	if live == nil || a.leaving(live) { // what is to be there is asked by the checks before the step
		return true, nil
	}
	if err := a.mine(live); err != nil {
		return false, err
	}
	have := kobj.Map(live, "metadata", "annotations")
	held := slices.Contains(kobj.Texts(live, "metadata", "finalizers"), a.Finalizer)
	return !held && !slices.ContainsFunc(a.Unset, func(k string) bool { return have[k] != nil }), nil
}

func unfinalize(ctx context.Context, a *action, live kobj.Object) (kobj.Object, error) {
	ops := []cluster.Operation{{Op: "test", Path: "/metadata/uid", Value: kobj.Text(live, "metadata", "uid")}}
	if i := slices.Index(kobj.Texts(live, "metadata", "finalizers"), a.Finalizer); i >= 0 {
		at := fmt.Sprintf("/metadata/finalizers/%d", i)
		ops = append(ops, cluster.Operation{Op: "test", Path: at, Value: a.Finalizer}, cluster.Operation{Op: "remove", Path: at})
	}
	for _, k := range a.Unset {
		if kobj.At(live, "metadata", "annotations", k) != nil {
			ops = append(ops, cluster.Operation{Op: "remove", Path: "/metadata/annotations/" + escaped(k)})
		}
	}
	return a.Cluster.Patch(ctx, a.Object, cluster.Patch{JSON: ops}, a.DryRun)
}
