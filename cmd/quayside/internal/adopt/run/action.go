package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

// maxAttempts is the maximum number of attempts for one action. An attempt can fail because OLM or
// another writer changes the object between the read and the write.
const maxAttempts = 25

// action is one action in progress.
type action struct {
	*runner
	plan.Action
	step   plan.Step
	number int  // from 1
	sent   bool // whether the journal already records that it is about to be sent
}

// verb is the implementation of a kind of action.
type verb struct {
	// isSettled reports whether the live object already has the result of the action. live is nil
	// if the object does not exist. The error explains why the action cannot be executed.
	isSettled func(a *action, live k8s.Object) (bool, error)
	// send executes the action and returns the resulting object.
	send func(ctx context.Context, a *action, live k8s.Object) (k8s.Object, error)
	// outcome is the outcome of a successful send, unless the object did not exist before: then
	// the outcome is Created.
	outcome Outcome
}

// verbTable returns the implementation of each kind of action.
func verbTable() map[plan.Verb]verb {
	return map[plan.Verb]verb{
		plan.Annotate:       {isMetadataDone, patchMetadata, Changed},
		plan.Apply:          {isApplied, apply, Changed},
		plan.Save:           {isNeverSettled, backUp, Saved},
		plan.Create:         {isCreated, create, Created},
		plan.Delete:         {isDeleted, remove, Deleted},
		plan.Orphan:         {isDeleted, orphanDependents, Deleted},
		plan.RestartPods:    {isNeverSettled, restartPods, Changed},
		plan.Restore:        {isRestored, restore, Changed},
		plan.Scale:          {isScaled, scale, Changed},
		plan.TransferFields: {isTransferred, transferOwnership, Changed},
		plan.Unfinalize:     {hasNoFinalizer, removeFinalizer, Changed},
		plan.Unlabel:        {isMetadataDone, patchMetadata, Changed},
	}
}

// runAction executes one action of a step. It writes a journal entry before the request is sent,
// and another one afterwards. If the action is already done, it writes only the second entry.
func (r *runner) runAction(ctx context.Context, s plan.Step, number int) (ActionResult, error) {
	a := &action{runner: r, Action: s.Actions[number-1], step: s, number: number}
	a.sent = r.Journal.lastEntry(s.Number, number, Intends) != nil
	out := ActionResult{Do: a.Do, Object: a.Object}
	v, ok := verbTable()[a.Do]
	if !ok {
		return out, fmt.Errorf("unknown action %q", a.Do)
	}
	pause := 50 * time.Millisecond
	for try := 1; ; try++ {
		live, err := r.Cluster.Get(ctx, a.Object)
		if err != nil {
			return out, err
		}
		settled, err := v.isSettled(a, live)
		if err != nil {
			if settled, err = a.skipChange(err); err != nil {
				return out, err
			}
		}
		if settled {
			out.Outcome = Already
			return out, a.recordOutcome(live, Already)
		}
		if err := a.checkOLMStopped(ctx); err != nil {
			return out, err
		}
		if err := a.recordIntent(live); err != nil {
			return out, err
		}
		after, err := v.send(ctx, a, live)
		if err == nil {
			out.Outcome = v.outcome
			if live == nil {
				out.Outcome = Created
			}
			return out, a.recordOutcome(after, out.Outcome)
		}
		if try == maxAttempts || !isRetryable(err) {
			return out, err
		}
		if err := r.Clock.Sleep(ctx, pause); err != nil {
			return out, err
		}
		pause = min(2*pause, 5*time.Second)
	}
}

// isRetryable reports whether a failed action can be retried after the object is read again.
func isRetryable(err error) bool {
	var refused *cluster.RequestError
	switch {
	case !errors.As(err, &refused):
		return false
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return len(refused.Fields()) == 0
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return refused.Verb == "patch"
	}
	return refused.IsRetryable()
}

func (a *action) entry(event Event, o k8s.Object) Entry {
	e := Entry{
		Event: event, Step: a.step.Number, Action: a.number, Do: a.Do, Object: &a.Object,
		UID: k8s.Text(o, "metadata", "uid"), Version: k8s.Text(o, "metadata", "resourceVersion"),
	}
	if a.Do == plan.Save && o != nil {
		e.Digest = string(catalog.DigestOf(formatBackup(o)))
	}
	return e
}

func (a *action) recordIntent(live k8s.Object) error {
	if a.sent {
		return nil
	}
	a.sent = true
	return a.recordEntry(a.entry(Intends, live))
}

func (a *action) recordOutcome(o k8s.Object, outcome Outcome) error {
	e := a.entry(Did, o)
	if first := a.Journal.lastEntry(a.step.Number, a.number, Intends); outcome == Already && first != nil {
		outcome = verbTable()[a.Do].outcome // an earlier run sent it, but was interrupted before recording it
		if first.UID == "" {
			outcome = Created
		}
	}
	e.Outcome = outcome
	return a.recordEntry(e)
}

// checkOLMStopped returns an error if the action detaches an operator from OLM, but one of OLM's
// controllers, which the plan stopped before, was started again.
func (a *action) checkOLMStopped(ctx context.Context) error {
	if a.Plan.Mode != plan.Stopped || a.Do != plan.Orphan && a.Do != plan.Unfinalize || a.DryRun {
		return nil
	}
	for _, w := range a.Plan.OLM {
		o, err := a.Cluster.Get(ctx, w.Object)
		if err != nil {
			return err
		}
		if o != nil && plan.Replicas(o) > 0 {
			return &ChangedError{w.Object, "was started again: find out what scales it, and repeat the command, which stops it again"}
		}
	}
	return nil
}

// checkSame returns an error if the live object is missing, has another UID than in the plan, or
// is being deleted.
func (a *action) checkSame(live k8s.Object) error {
	switch uid := k8s.Text(live, "metadata", "uid"); {
	case live == nil:
		return a.changedf("was deleted, but not by this plan: check the objects that it owned ('quayside adopt verify'), and make a new plan")
	case a.UID != "" && uid != a.UID:
		return a.changedf("was deleted and recreated since the plan was made (UID %s, now %s): make a new plan", a.UID, uid)
	case k8s.At(live, "metadata", "deletionTimestamp") != nil:
		return a.changedf("is being deleted, but not by this plan: find the cause ('kubectl get -o yaml' shows its finalizers)")
	}
	return nil
}

func (a *action) changedf(format string, args ...any) error {
	return &ChangedError{a.Object, fmt.Sprintf(format, args...)}
}

// isNeverSettled is the isSettled function of actions that do not change the cluster. It always returns
// false, because only the journal can show that such an action is done.
func isNeverSettled(a *action, live k8s.Object) (bool, error) { return false, a.checkSame(live) }

// backUp writes an object to a file.
func backUp(_ context.Context, a *action, live k8s.Object) (k8s.Object, error) {
	if a.DryRun {
		return live, nil
	}
	return live, a.Journal.saveBackup(live)
}

// isMetadataDone reports whether an object has the changes of an action that changes only its
// metadata.
func isMetadataDone(a *action, live k8s.Object) (bool, error) {
	if live == nil && a.Do == plan.Unlabel {
		return true, nil // it has no labels
	}
	if err := a.checkSame(live); err != nil {
		return false, err
	}
	return a.IsDone(live), nil
}

// patchMetadata sets and removes annotations or labels.
func patchMetadata(ctx context.Context, a *action, live k8s.Object) (k8s.Object, error) {
	return a.Cluster.Patch(ctx, a.Object, cluster.Patch{Merge: a.MetadataPatch(k8s.Text(live, "metadata", "uid"))}, a.DryRun)
}

// isApplied always returns false, because applying an unchanged object has no effect. It returns
// an error if an object exists that did not exist when the plan was made, unless an earlier
// attempt of this action or the plan's manager applied it.
func isApplied(a *action, live k8s.Object) (bool, error) {
	if a.rendered[a.Object.Key()] == nil {
		return false, fmt.Errorf("the lock no longer renders %s: make a new plan", a.Object)
	}
	if live == nil && a.UID == "" {
		return false, nil
	}
	if a.UID == "" && !a.sent && !plan.AppliedBy(live, a.Plan.Manager) {
		return false, a.changedf("was created after the plan was made, and not by %s: delete it, or make a new plan", a.Plan.Manager)
	}
	return false, a.checkSame(live)
}

func apply(ctx context.Context, a *action, live k8s.Object) (k8s.Object, error) {
	o := a.Applied(a.rendered[a.Object.Key()])
	if live != nil {
		o = k8s.With(o, k8s.At(live, "metadata", "uid"), "metadata", "uid") // rejected if the object was replaced
	}
	return a.Cluster.Apply(ctx, o, a.Plan.Manager, a.Force, a.DryRun)
}

// isDeleted reports whether an object is missing, or the deletion of the planned object has begun.
// If its dependents must be kept, a deletion that this action did not start counts only if it
// keeps them.
func isDeleted(a *action, live k8s.Object) (bool, error) {
	dying := k8s.At(live, "metadata", "deletionTimestamp") != nil
	switch {
	case live == nil:
		return true, nil
	case dying && (a.sent || a.Do == plan.Delete) && k8s.Text(live, "metadata", "uid") == a.UID:
		return true, nil
	case a.isBeingOrphaned(live):
		return true, nil
	case a.Do == plan.Delete && k8s.Text(live, "metadata", "uid") != a.UID: // another program or user deleted it: another object is not the plan's
		return true, nil
	}
	return false, a.checkSame(live)
}

// isBeingOrphaned reports whether the planned object is being deleted without its dependents, and
// "orphan" is its only remaining finalizer.
func (a *action) isBeingOrphaned(live k8s.Object) bool {
	return k8s.At(live, "metadata", "deletionTimestamp") != nil && k8s.Text(live, "metadata", "uid") == a.UID &&
		slices.Equal(k8s.Texts(live, "metadata", "finalizers"), []string{"orphan"})
}

func remove(ctx context.Context, a *action, _ k8s.Object) (k8s.Object, error) {
	return nil, a.Cluster.Delete(ctx, a.Object, cluster.DeleteOptions{UID: a.UID}, a.DryRun)
}

// orphanDependents deletes an object and keeps its dependents. If another program has restored a
// finalizer that the step removed, orphanDependents removes it again first. The deletion fails if the
// object changes in the meantime.
func orphanDependents(ctx context.Context, a *action, live k8s.Object) (k8s.Object, error) {
	for _, other := range a.step.Actions {
		if other.Do != plan.Unfinalize || other.Object.Key() != a.Object.Key() {
			continue
		}
		free := &action{runner: a.runner, Action: other, step: a.step}
		settled, err := hasNoFinalizer(free, live)
		if err == nil && !settled {
			live, err = removeFinalizer(ctx, free, live)
		}
		if err != nil {
			return nil, err
		}
	}
	opt := cluster.DeleteOptions{UID: a.UID, ResourceVersion: k8s.Text(live, "metadata", "resourceVersion"), Orphan: true}
	return nil, a.Cluster.Delete(ctx, a.Object, opt, a.DryRun)
}

func isScaled(a *action, live k8s.Object) (bool, error) {
	if err := a.checkSame(live); err != nil {
		return false, err
	}
	n := plan.Replicas(live)
	if a.To > 0 {
		return n >= a.To, nil // another program or user may have started it
	}
	if n != a.To && n != a.From {
		return false, a.changedf("has %d replicas, but had %d when the plan was made: scale it back, or make a new plan", n, a.From)
	}
	return n == a.To, nil
}

func scale(ctx context.Context, a *action, live k8s.Object) (k8s.Object, error) {
	return a.Cluster.Patch(ctx, a.Object, cluster.Patch{JSON: []cluster.Operation{
		{Op: "test", Path: "/metadata/uid", Value: k8s.Text(live, "metadata", "uid")},
		{Op: "test", Path: "/spec/replicas", Value: plan.Replicas(live)},
		{Op: "replace", Path: "/spec/replicas", Value: a.To},
	}}, a.DryRun)
}

// restartPods replaces the pods of a Deployment, as 'kubectl rollout restart' does.
func restartPods(ctx context.Context, a *action, live k8s.Object) (k8s.Object, error) {
	annotations := map[string]any{"kubectl.kubernetes.io/restartedAt": a.Clock.Now().UTC().Format(time.RFC3339)}
	return a.Cluster.Patch(ctx, a.Object, cluster.Patch{Merge: map[string]any{
		"metadata": map[string]any{"uid": k8s.Text(live, "metadata", "uid")},
		"spec":     map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": annotations}}},
	}}, a.DryRun)
}

func hasNoFinalizer(a *action, live k8s.Object) (bool, error) {
	if live == nil || a.isBeingOrphaned(live) { // the preconditions check its existence
		return true, nil
	}
	return isMetadataDone(a, live)
}

func removeFinalizer(ctx context.Context, a *action, live k8s.Object) (k8s.Object, error) {
	ops := []cluster.Operation{{Op: "test", Path: "/metadata/uid", Value: k8s.Text(live, "metadata", "uid")}}
	if i := slices.Index(k8s.Texts(live, "metadata", "finalizers"), a.Finalizer); i >= 0 {
		at := fmt.Sprintf("/metadata/finalizers/%d", i)
		ops = append(ops, cluster.Operation{Op: "test", Path: at, Value: a.Finalizer}, cluster.Operation{Op: "remove", Path: at})
	}
	for _, k := range a.Unset {
		if k8s.At(live, "metadata", "annotations", k) != nil {
			ops = append(ops, cluster.Operation{Op: "remove", Path: "/metadata/annotations/" + k8s.EscapePointer(k)})
		}
	}
	return a.Cluster.Patch(ctx, a.Object, cluster.Patch{JSON: ops}, a.DryRun)
}
