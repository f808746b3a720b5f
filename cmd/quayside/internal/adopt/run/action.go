package run

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

// maxAttempts is the maximum number of attempts for one action. An attempt fails if another program, such as
// OLM, changes the object between the read and the write.
const maxAttempts = 25

// action is an action that is being executed.
type action struct {
	*runner
	plan.Attempt
	number int // number of the action in the step, from 1
}

// runAction executes one action of a step. It writes a journal entry before the first request and another one
// afterwards. If the action is already done, it writes only the latter. In a dry run, it writes none.
func (r *runner) runAction(ctx context.Context, s plan.Step, number int) (ActionResult, error) {
	a := &action{runner: r, number: number}
	a.Attempt = plan.Attempt{Action: s.Actions[number-1], Plan: r.Plan, Step: s, Writer: Manager, DryRun: r.DryRun}
	a.Rendered, a.Sent = r.rendered[a.Object.Key()], r.Journal.lastEntry(s.Number, number, Intends) != nil
	pause := 50 * time.Millisecond
	for try := 1; ; try++ {
		out, canRetry, err := a.try(ctx)
		if err == nil || try == maxAttempts || !canRetry {
			return out, err
		}
		if err := r.Clock.Sleep(ctx, pause); err != nil {
			return out, err
		}
		pause = min(2*pause, 5*time.Second)
	}
}

// try reads the object, and executes the action if necessary. canRetry reports whether the caller may try again
// after an error.
func (a *action) try(ctx context.Context) (out ActionResult, canRetry bool, err error) {
	out = ActionResult{Do: a.Do, Object: a.Object}
	if a.Live, err = a.Cluster.Get(ctx, a.Object); err != nil {
		return out, false, err
	}
	settled, err := a.IsSettled()
	if a.DryRun && a.Live == nil && a.hasEarlierApply(a.Object) {
		out.Outcome = plan.Untried
		return out, false, nil
	}
	if err != nil {
		if settled, err = a.skipChange(err); err != nil {
			return out, false, err
		}
	}
	if settled {
		out.Outcome = plan.DidNothing
		return out, false, a.recordOutcome(a.Live, plan.DidNothing)
	}
	if err := a.checkOLMStopped(ctx); err != nil {
		return out, false, err
	}
	if err := a.recordIntent(); err != nil {
		return out, false, err
	}
	after, err := a.send(ctx)
	switch {
	case a.DryRun && apierrors.IsNotFound(err) && a.dependsOnEarlierApply():
		out.Outcome = plan.Untried
		return out, false, nil
	case err != nil:
		return out, !a.DryRun && isRetryable(err), err
	}
	if out.Outcome = a.Do.Outcome(); a.Live == nil {
		out.Outcome = plan.DidCreate
	} else if a.DryRun && after != nil {
		out.Changes = adopt.Differences(a.Live, after)
	}
	return out, false, a.recordOutcome(after, out.Outcome)
}

// send sends the requests of the action, and returns the resulting object.
func (a *action) send(ctx context.Context) (after k8s.Object, err error) {
	t := a.Attempt
	t.Now = a.Clock.Now().UTC().Format(time.RFC3339)
	for more := true; more && err == nil; t.Requests++ {
		var q plan.Request
		switch q, more = t.Request(); {
		case q.Apply != nil:
			after, err = a.Cluster.Apply(ctx, q.Apply, a.Plan.Manager, a.Force, a.DryRun)
		case q.Create != nil:
			after, err = a.Cluster.Create(ctx, q.Create, a.DryRun)
		case q.Patch != nil:
			after, err = a.Cluster.Patch(ctx, a.Object, *q.Patch, a.DryRun)
		case q.Delete != nil:
			after, err = nil, a.Cluster.Delete(ctx, a.Object, *q.Delete, a.DryRun)
		default:
			if after = t.Live; a.DryRun {
				break
			}
			if snapshot.IsReleaseRecord(a.Object.Key()) {
				if after, err = a.Cluster.Record(ctx, after); err != nil {
					return nil, err
				}
			}
			err = a.Journal.saveBackup(after)
		}
		t.Live = after
	}
	return after, err
}

// isRetryable reports whether the action may succeed after the object is read again.
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

// record writes a journal entry about the action.
func (a *action) record(event Event, o k8s.Object, outcome plan.Outcome) error {
	if a.DryRun {
		return nil
	}
	e := Entry{
		Event: event, Step: a.Step.Number, Action: a.number, Do: a.Do, Object: &a.Object, Outcome: outcome,
		UID: k8s.Text(o, "metadata", "uid"), Version: k8s.Text(o, "metadata", "resourceVersion"),
	}
	if a.Do == plan.Save && o != nil {
		e.Digest = string(catalog.DigestOf(formatBackup(o)))
	}
	return a.recordEntry(e)
}

func (a *action) recordIntent() error {
	if a.Sent {
		return nil
	}
	a.Sent = true
	return a.record(Intends, a.Live, "")
}

func (a *action) recordOutcome(o k8s.Object, outcome plan.Outcome) error {
	if first := a.Journal.lastEntry(a.Step.Number, a.number, Intends); outcome == plan.DidNothing && first != nil {
		outcome = a.Do.Outcome() // an earlier run sent the request, but was interrupted before it wrote the second entry
		if first.UID == "" {
			outcome = plan.DidCreate
		}
	}
	return a.record(Did, o, outcome)
}

// checkOLMStopped returns an error if a controller of OLM that the plan stopped is running again. It checks
// only before actions that detach an operator.
func (a *action) checkOLMStopped(ctx context.Context) error {
	if a.Plan.Mode != plan.Stopped || !a.Do.Detaches() || a.DryRun {
		return nil
	}
	for _, w := range a.Plan.OLM {
		o, err := a.Cluster.Get(ctx, w.Object)
		if err != nil {
			return err
		}
		if o != nil && plan.Replicas(o) > 0 {
			return &plan.ChangedError{Object: w.Object, Message: "was started again: find the program that scales it, then repeat the command to stop it again"}
		}
	}
	return nil
}

// hasEarlierApply reports whether an earlier action of the plan applies the object.
func (a *action) hasEarlierApply(ref k8s.Ref) bool {
	for _, s := range a.Plan.Steps {
		for i, other := range s.Actions {
			if s.Number > a.Step.Number || s.Number == a.Step.Number && i+1 >= a.number {
				return false
			}
			if other.Do == plan.Apply && other.Object.Key() == ref.Key() {
				return true
			}
		}
	}
	return false
}

// dependsOnEarlierApply reports whether an earlier action of the plan applies the object's
// Namespace, or the CRD of its kind.
func (a *action) dependsOnEarlierApply() bool {
	if a.hasEarlierApply(k8s.Ref{APIVersion: "v1", Kind: "Namespace", Name: a.Object.Namespace}) {
		return true
	}
	for key, o := range a.rendered {
		of := k8s.Text(o, "spec", "names", "kind")
		if k8s.IsCRD(o) && of == a.Object.Kind && k8s.Text(o, "spec", "group") == k8s.Group(a.Object.APIVersion) {
			return a.hasEarlierApply(k8s.Ref{APIVersion: o.APIVersion(), Kind: key.Kind, Name: key.Name})
		}
	}
	return false
}
