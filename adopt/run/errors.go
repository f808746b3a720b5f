package run

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/verify"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/kobj"
)

// ChangedError is an object that is not as the plan has it, by somebody else's
// doing.
type ChangedError struct {
	Object  kobj.Ref
	Message string // what is the matter, and what to do
}

func (e *ChangedError) Error() string { return fmt.Sprintf("%s %s", e.Object, e.Message) }

// StepError is a step that stopped a run.
type StepError struct {
	Step     plan.Step
	Check    plan.Condition   // the one that does not hold; empty where it was none
	Findings []verify.Finding // what does not hold
	Err      error
}

// What stops a step without anything having gone wrong.
var (
	errDeclined = errors.New("not done: you said no")
	errManual   = errors.New("a person has to do it: do it, then go on with '--done'")
	errBefore   = errors.New("nothing of it was done in this run, because it does not hold what must hold before")
	errAfter    = errors.New("it was done, but what must hold after it does not")
)

// Error names the step, and what does not hold, a line each.
func (e *StepError) Error() string {
	text := fmt.Sprintf("step %d (%s): %s", e.Step.Number, named(e.Step), inert.Line(e.Err.Error()))
	if errors.Is(e.Err, context.Canceled) {
		text = fmt.Sprintf("step %d (%s): interrupted; what was under way is done, and noted", e.Step.Number, named(e.Step))
	}
	if e.Check != "" {
		text += " (" + string(e.Check) + ")"
	}
	if apierrors.IsForbidden(e.Err) {
		text += "; 'quayside adopt plan --rbac' prints the rights that the plan takes"
	}
	for _, f := range e.Findings {
		text += "\n\t" + inert.Line(f.Message)
	}
	return text
}

func named(s plan.Step) string {
	if s.Namespace == "" {
		return string(s.Name)
	}
	return string(s.Name) + ", " + s.Namespace
}

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// Differs reports whether the cluster is as it is by somebody's will or doing, and
// nothing failed.
func (e *StepError) Differs() bool {
	var changed *ChangedError
	return len(e.Findings) > 0 || errors.As(e.Err, &changed) || errors.Is(e.Err, errDeclined) || errors.Is(e.Err, errManual)
}
