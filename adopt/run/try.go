package run

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/internal/kobj"
)

// Untried is an action that the API server cannot try before earlier ones are done.
const Untried Outcome = "untried"

// try has the API server try a step's actions. What must hold before is not asked:
// it takes the steps before.
func (r *runner) try(ctx context.Context, s plan.Step, out *StepResult) error {
	for i := range s.Actions {
		if err := ctx.Err(); err != nil {
			return err
		}
		a := &action{runner: r, Action: s.Actions[i], step: s, number: i + 1}
		a.sent = r.Journal.last(s.Number, a.number, Intends) != nil
		tried, err := a.tried(ctx)
		if err != nil {
			return &StepError{Step: s, Err: err}
		}
		out.Actions = append(out.Actions, tried)
		r.Say.Action(s, tried)
	}
	out.State = Tried
	return nil
}

func (a *action) tried(ctx context.Context) (ActionResult, error) {
	out := ActionResult{Do: a.Do, Object: a.Object}
	v, ok := verbs()[a.Do]
	if !ok {
		return out, fmt.Errorf("%q is nothing that can be done", a.Do)
	}
	live, err := a.Cluster.Get(ctx, a.Object)
	if err != nil {
		return out, err
	}
	settled, err := v.settled(a, live)
	switch {
	case live == nil && a.earlier(a.Object):
		out.Outcome = Untried
		return out, nil
	case err != nil:
		return out, err
	case settled:
		out.Outcome = Already
		return out, nil
	}
	after, err := v.send(ctx, a, live)
	if apierrors.IsNotFound(err) && a.needsEarlier() {
		out.Outcome = Untried
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.Outcome = v.outcome
	switch {
	case live == nil:
		out.Outcome = Created
	case after != nil:
		out.Changes = adopt.Differences(live, after)
	}
	return out, nil
}

// earlier reports whether an action before this one applies an object.
func (a *action) earlier(ref kobj.Ref) bool {
	for _, s := range a.Plan.Steps {
		for i, other := range s.Actions {
			if s.Number > a.step.Number || s.Number == a.step.Number && i+1 >= a.number {
				return false
			}
			if other.Do == plan.Apply && other.Object.Key() == ref.Key() {
				return true
			}
		}
	}
	return false
}

// needsEarlier reports whether the object lies in a namespace, or is of a kind, that
// comes with the plan.
func (a *action) needsEarlier() bool {
	if a.earlier(kobj.Ref{APIVersion: "v1", Kind: "Namespace", Name: a.Object.Namespace}) {
		return true
	}
	for key, o := range a.rendered {
		of := kobj.Text(o, "spec", "names", "kind")
		if kobj.IsCRD(o) && of == a.Object.Kind && kobj.Text(o, "spec", "group") == kobj.Group(a.Object.APIVersion) {
			return a.earlier(kobj.Ref{APIVersion: o.APIVersion(), Kind: key.Kind, Name: key.Name})
		}
	}
	return false
}
