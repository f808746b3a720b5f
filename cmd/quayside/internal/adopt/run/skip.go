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
	Continue Way = "continue" // repeat the command, after the cause is fixed
	Skip     Way = "skip"     // repeat the command with a reason in Input.Skip
	Revert   Way = "revert"   // return to OLM
	NewPlan  Way = "new-plan" // make a new plan, because no step has begun
)

// canSkipChange reports whether the user may accept that others deleted or recreated the object of an action.
func canSkipChange(step plan.StepKind, do plan.Verb) bool {
	return do.CanSkip() && step != plan.Prepare
}

// skip accepts the findings that stop a step, if Input.Skip is set and no earlier step was executed in this
// run. It records the accepted findings in the journal, so that later steps ignore them. It returns the
// findings that still stop the step.
func (r *runner) skip(s plan.Step, c plan.Condition, findings []verify.Finding) ([]verify.Finding, error) {
	controller := func(f verify.Finding) bool {
		return slices.ContainsFunc(r.Plan.OLM, func(w plan.Workload) bool { return w.Object == f.Object })
	}
	if r.Skip == "" || r.firstStep != s.Number || !c.CanSkip(s.Name) || slices.ContainsFunc(findings, controller) {
		return findings, nil
	}
	for _, f := range findings {
		if err := r.recordEntry(Entry{Event: Skipped, Step: s.Number, Message: r.Skip, Finding: &f}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// isSkipped reports whether a finding was accepted earlier. A finding about permissions counts as accepted only
// if it lists the same permissions.
func (j *Journal) isSkipped(f verify.Finding) bool {
	return slices.ContainsFunc(j.entries, func(e Entry) bool {
		return e.Event == Skipped && e.Finding != nil && e.Finding.Code == f.Code && e.Finding.Object == f.Object && (f.Account == "" || e.Finding.Message == f.Message)
	})
}

// skipChange accepts that others deleted or recreated the object of an action if Input.Skip is set, or if this
// was accepted earlier. Otherwise it returns err. An accepted apply action is still executed (settled is
// false). Any other accepted action counts as done.
func (a *action) skipChange(err error) (settled bool, _ error) {
	var changed *plan.ChangedError
	if a.DryRun || !errors.As(err, &changed) || !canSkipChange(a.Step.Name, a.Do) {
		return false, err
	}
	lost := verify.Finding{Code: verify.Lost, Object: a.Object, Message: changed.Error()}
	other := lost
	other.Code = verify.UIDChanged
	if !a.Journal.isSkipped(lost) && !a.Journal.isSkipped(other) {
		if a.Skip == "" || a.firstStep != a.Step.Number {
			return false, err
		}
		for _, f := range []verify.Finding{lost, other} {
			if err := a.recordEntry(Entry{Event: Skipped, Step: a.Step.Number, Message: a.Skip, Finding: &f}); err != nil {
				return false, err
			}
		}
	}
	if a.Do != plan.Apply {
		return true, nil
	}
	a.UID, a.Sent = "", true
	return false, nil
}

// waysToContinue returns the ways in which the user can continue after a run ended with err.
func (r *runner) waysToContinue(err error) []Way {
	var step *StepError
	var changed *plan.ChangedError
	if !errors.As(err, &step) || r.DryRun {
		return nil
	}
	var out []Way
	isChange := errors.As(err, &changed)
	if !isChange || step.Step.Name == plan.Stop || step.Step.Name == plan.Detach {
		out = append(out, Continue)
	}
	skippable := step.Check.CanSkip(step.Step.Name)
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

// canRevert reports whether a namespace can return to OLM, because a step has begun but the clean-up has not.
// If namespace is "", canRevert reports whether any namespace can return.
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
