package run

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/k8s"
)

// Untried is the outcome of an action that cannot be tried before earlier actions are done.
const Untried Outcome = "skipped"

// dryRunStep sends the actions of a step as dry-run requests. It does not check the preconditions,
// which require that the earlier steps are done.
func (r *runner) dryRunStep(ctx context.Context, s plan.Step, out *StepResult) error {
	for i := range s.Actions {
		if err := ctx.Err(); err != nil {
			return err
		}
		a := &action{runner: r, Action: s.Actions[i], step: s, number: i + 1}
		a.sent = r.Journal.lastEntry(s.Number, a.number, Intends) != nil
		result, err := a.dryRun(ctx)
		if err != nil {
			return &StepError{Step: s, Err: err}
		}
		out.Actions = append(out.Actions, result)
		r.Prompter.ReportAction(s, result)
	}
	out.State = DryRun
	return nil
}

func (a *action) dryRun(ctx context.Context) (ActionResult, error) {
	out := ActionResult{Do: a.Do, Object: a.Object}
	v, ok := verbTable()[a.Do]
	if !ok {
		return out, fmt.Errorf("unknown action %q", a.Do)
	}
	live, err := a.Cluster.Get(ctx, a.Object)
	if err != nil {
		return out, err
	}
	settled, err := v.isSettled(a, live)
	switch {
	case live == nil && a.hasEarlierApply(a.Object):
		out.Outcome = Untried
		return out, nil
	case err != nil:
		return out, err
	case settled:
		out.Outcome = Already
		return out, nil
	}
	after, err := v.send(ctx, a, live)
	if apierrors.IsNotFound(err) && a.dependsOnEarlierApply() {
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

// hasEarlierApply reports whether an earlier action applies an object.
func (a *action) hasEarlierApply(ref k8s.Ref) bool {
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

// dependsOnEarlierApply reports whether an earlier action of the plan applies the Namespace of the
// object or the CRD of its kind.
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
