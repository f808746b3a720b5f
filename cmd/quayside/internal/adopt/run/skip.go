package run

import (
	"errors"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
)

// Way is a way to continue after a run ended early.
type Way string

// The ways.
const (
	Continue Way = "continue" // repeat the command, after a cause outside of the plan is fixed
	Skip     Way = "skip"     // repeat it with Input.Skip
	Revert   Way = "revert"   // return to OLM
	NewPlan  Way = "new-plan" // make a new plan: no step has begun
)

// canSkip reports whether a plan can continue although a condition of a step does not hold. It cannot
// if OLM would act on the operators, or if the plan no longer matches the cluster.
func canSkip(step plan.StepKind, c plan.Condition) bool {
	return c == plan.Deleted && step == plan.CleanUp || slices.Contains([]plan.Condition{plan.SameUID, plan.Conversion, plan.Available, plan.Permissions, plan.Prepared, plan.NoRestart, plan.IsReady}, c)
}

// canSkipChange reports whether an action can be skipped, or can replace an object, if another
// program or user deleted or recreated the object.
func canSkipChange(step plan.StepKind, do plan.Verb) bool {
	return slices.Contains([]plan.Verb{plan.Save, plan.Annotate, plan.Apply, plan.TransferFields, plan.Unlabel}, do) && step != plan.Prepare
}

// skip returns the findings that stop the plan. With Input.Skip, it records the findings of the first
// step of this run as skipped and returns none; they do not stop later steps either.
func (r *runner) skip(s plan.Step, c plan.Condition, findings []verify.Finding) ([]verify.Finding, error) {
	controller := func(f verify.Finding) bool {
		return slices.ContainsFunc(r.Plan.OLM, func(w plan.Workload) bool { return w.Object == f.Object })
	}
	if r.Skip == "" || r.firstStep != s.Number || !canSkip(s.Name, c) || slices.ContainsFunc(findings, controller) {
		return findings, nil
	}
	for _, f := range findings {
		if err := r.recordEntry(Entry{Event: Skipped, Step: s.Number, Message: r.Skip, Finding: &f}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// isSkipped reports whether a finding was skipped before. A finding about permissions must name the
// same permissions.
func (j *Journal) isSkipped(f verify.Finding) bool {
	return slices.ContainsFunc(j.entries, func(e Entry) bool {
		return e.Event == Skipped && e.Finding != nil && e.Finding.Code == f.Code && e.Finding.Object == f.Object && (f.Account == "" || e.Finding.Message == f.Message)
	})
}

// skipChange continues although another program or user deleted or recreated the object of an
// action, if that was skipped before or Input.Skip is set. An object of the tree is applied; other
// actions count as done.
func (a *action) skipChange(err error) (settled bool, _ error) {
	var changed *ChangedError
	if !errors.As(err, &changed) || !canSkipChange(a.step.Name, a.Do) {
		return false, err
	}
	lost := verify.Finding{Code: verify.Lost, Object: a.Object, Message: changed.Error()}
	other := lost
	other.Code = verify.UIDChanged
	if !a.Journal.isSkipped(lost) && !a.Journal.isSkipped(other) {
		if a.Skip == "" || a.firstStep != a.step.Number {
			return false, err
		}
		for _, f := range []verify.Finding{lost, other} {
			if err := a.recordEntry(Entry{Event: Skipped, Step: a.step.Number, Message: a.Skip, Finding: &f}); err != nil {
				return false, err
			}
		}
	}
	if a.Do != plan.Apply {
		return true, nil
	}
	a.UID, a.sent = "", true
	return false, nil
}

// waysToContinue returns the ways to continue after an error.
func (r *runner) waysToContinue(err error) []Way {
	var step *StepError
	var changed *ChangedError
	if !errors.As(err, &step) || r.DryRun {
		return nil
	}
	var out []Way
	isChange := errors.As(err, &changed)
	if !isChange || step.Step.Name == plan.Stop || step.Step.Name == plan.Detach {
		out = append(out, Continue)
	}
	skippable := canSkip(step.Step.Name, step.Check)
	if isChange {
		i := slices.IndexFunc(step.Step.Actions, func(a plan.Action) bool { return a.Object == changed.Object })
		skippable = i >= 0 && canSkipChange(step.Step.Name, step.Step.Actions[i].Do)
	}
	if skippable {
		out = append(out, Skip)
	}
	if r.canRevert(step.Step.Namespace) {
		out = append(out, Revert)
	}
	if !r.Journal.HasStarted() {
		out = append(out, NewPlan)
	}
	return out
}

// canRevert reports whether a namespace, or for "" any namespace, can return to OLM: its clean-up has
// not begun.
func (r *runner) canRevert(namespace string) bool {
	begun, cleaned := map[string]bool{}, map[string]bool{}
	for _, s := range r.Plan.Steps {
		if s.Namespace != "" && r.Journal.HasBegun(s.Number) {
			begun[s.Namespace] = true
			cleaned[s.Namespace] = cleaned[s.Namespace] || s.Name == plan.CleanUp
		}
	}
	for name := range begun {
		if !cleaned[name] && (namespace == "" || name == namespace) {
			return true
		}
	}
	return false
}
