package run

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/sanitize"
)

// StepError is returned if a step cannot be completed.
type StepError struct {
	Step     plan.Step
	Check    plan.Condition   // condition that is not fulfilled; empty: another reason
	Findings []verify.Finding // violations of the condition
	Err      error
}

// Errors of steps that stopped without a technical failure.
var (
	errDeclined      = errors.New("aborted by user")
	errManual        = errors.New("manual step: do it, then continue with '--done'")
	errPrecondition  = errors.New("step skipped: precondition failed")
	errPostcondition = errors.New("step done, but its postcondition failed")
)

// Error returns the step and the reason. The violations follow, one per line.
func (e *StepError) Error() string {
	text := fmt.Sprintf("step %d (%s): %s", e.Step.Number, stepName(e.Step), sanitize.Line(e.Err.Error()))
	if errors.Is(e.Err, context.Canceled) {
		text = fmt.Sprintf("step %d (%s): interrupted after the current action, which is recorded", e.Step.Number, stepName(e.Step))
	}
	if e.Check != "" {
		text += " (" + string(e.Check) + ")"
	}
	if apierrors.IsForbidden(e.Err) {
		text += "; 'quayside adopt plan --rbac' prints the permissions that the plan needs"
	}
	for _, f := range e.Findings {
		text += "\n\t" + sanitize.Line(f.Message)
	}
	if e.Check == plan.SameVersion {
		text += "\n" + verify.ChangedHint
	}
	return text
}

func stepName(s plan.Step) string {
	if s.Namespace == "" {
		return string(s.Name)
	}
	return string(s.Name) + ", " + s.Namespace
}

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// Differs reports whether the step stopped because of the state of the cluster or a decision of the user, not
// because of a technical failure.
func (e *StepError) Differs() bool {
	var changed *plan.ChangedError
	return len(e.Findings) > 0 || errors.As(e.Err, &changed) || errors.Is(e.Err, errDeclined) || errors.Is(e.Err, errManual)
}
