package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/verify"
	"github.com/quayside/quayside/internal/inert"
)

// RefusedError is a request that the API server did not fulfil.
type RefusedError struct {
	Verb    string // "apply"
	Object  plan.Ref
	Why     Why
	Message string        // what the server said
	After   time.Duration // how long it asks to wait before the next try
}

// Why says why a request was not fulfilled.
type Why string

// The reasons for which requests are not fulfilled.
const (
	NotFound  Why = "not found" // the object, its namespace or its kind
	Forbidden Why = "forbidden"
	Invalid   Why = "invalid" // or a test of a patch failed
	Busy      Why = "busy"    // the server did nothing, and wants to be asked again
	Unsure    Why = "unsure"  // there was no answer, or the server failed: it may have done it
	Refused   Why = "refused"
)

// Error names the object and the verb, and says what to do where that is known.
func (e *RefusedError) Error() string {
	text := fmt.Sprintf("%s %s: %s", e.Verb, e.Object, e.Message)
	if e.Why == Forbidden {
		text += "; 'quayside adopt plan --rbac' prints the rights that the plan takes"
	}
	return text
}

// Passes reports whether the same request may succeed a little later.
func (e *RefusedError) Passes() bool { return e.Why == Busy || e.Why == Unsure }

// ConflictError is a request that the API server did not fulfil because the object
// is not what the request says (409), or because others manage fields of it.
type ConflictError struct {
	Verb    string
	Object  plan.Ref
	Message string
	Fields  []Field // those that others manage, where that is why
}

// Field is a field that somebody manages.
type Field struct{ Manager, Path string }

// Error names the object and, where others manage fields of it, who does which.
func (e *ConflictError) Error() string {
	if len(e.Fields) == 0 {
		return fmt.Sprintf("%s %s: %s", e.Verb, e.Object, e.Message)
	}
	var who []string
	for _, f := range e.Fields {
		who = append(who, f.Manager+" has "+f.Path)
	}
	return fmt.Sprintf("%s %s: others manage fields of it: %s", e.Verb, e.Object, strings.Join(who, ", "))
}

// ChangedError is an object that is not as the plan has it, by somebody else's
// doing.
type ChangedError struct {
	Object  plan.Ref
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
