// Package celrule runs rules in CEL that others wrote, at a bounded cost.
//
// Cost is counted and not time, so that the same input has the same outcome on
// every machine. It is charged for every step, and for every byte and element
// that a function looks at.
//
// Start from [NewBudget] and [Budget.Compile].
package celrule

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/interpreter"
)

// What rules may cost, in steps of some 50 ns.
const (
	maxLength = 10_000
	onceCost  = 100_000    // one evaluation
	ruleCost  = 6_000_000  // one rule, over all that it is asked of
	runCost   = 30_000_000 // all rules of a budget

	byteCost  = 50 // to compile one byte
	startCost = 50 // to begin an evaluation
)

// ErrCost says that a rule costs more than it may: by itself, or because others
// have used up what there was.
var ErrCost = errors.New("the rule takes too long to evaluate")

// Budget is what all rules of a run may cost together. It is not safe for
// concurrent use.
type Budget struct{ left, each uint64 }

// NewBudget returns a budget that nothing has been taken from.
func NewBudget() *Budget { return &Budget{left: runCost, each: ruleCost} }

// Rule is a compiled rule.
type Rule struct {
	run    cel.Program
	budget *Budget
	left   uint64
	over   bool
}

// Compile reads a rule that yields a boolean. Names of fields are checked when
// it runs. The error is ErrCost where the budget is used up.
func (b *Budget) Compile(env *cel.Env, rule string) (*Rule, error) {
	if len(rule) > maxLength {
		return nil, fmt.Errorf("expression is longer than %d bytes", maxLength)
	}
	if !b.take(byteCost * uint64(len(rule))) {
		return nil, ErrCost
	}
	ast, issues := env.Compile(rule)
	if err := issues.Err(); err != nil {
		return nil, errors.New(firstLine(err.Error()))
	}
	if t := ast.OutputType(); t != cel.BoolType && t != cel.DynType {
		return nil, fmt.Errorf("expression yields %s, want bool", t)
	}
	run, err := env.Program(ast, cel.CostLimit(onceCost), cel.CostTracking(estimator{}), cel.CustomDecoratorV2(bound))
	if err != nil {
		return nil, err
	}
	return &Rule{run: run, budget: b, left: b.each}, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimPrefix(line, "ERROR: ")
}

// take takes cost from the budget and reports whether it was there.
func (b *Budget) take(cost uint64) bool {
	enough := cost <= b.left
	b.left -= min(cost, b.left)
	return enough
}

// Holds evaluates the rule. Once the error is ErrCost, it always is.
func (r *Rule) Holds(vars map[string]any) (bool, error) {
	if r.over || r.budget.left == 0 {
		r.over = true
		return false, ErrCost
	}
	out, details, err := r.run.Eval(vars)
	cost := uint64(startCost)
	if spent := details.ActualCost(); spent != nil {
		cost += *spent
	}
	var cancelled interpreter.EvalCancelledError
	r.over = errors.As(err, &cancelled) || cost > r.left
	r.left -= min(cost, r.left)
	if !r.budget.take(cost) {
		r.over = true
	}
	switch {
	case r.over:
		return false, ErrCost
	case err != nil:
		return false, err
	}
	holds, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("expression yields %s, want bool", out.Type().TypeName())
	}
	return holds, nil
}
