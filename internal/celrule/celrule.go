// Package celrule evaluates untrusted CEL rules at a limited cost.
//
// The limit is a number of evaluation steps, not a time, so that a rule has the same result on
// every machine. Every operation costs steps, and so does every byte and element that a function
// processes.
//
// Start from [NewBudget] and [Budget.Compile].
package celrule

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/interpreter"
)

// Limits of rules. maxLength is in bytes. The other limits are costs in steps. A step takes about 50 ns.
const (
	maxLength       = 10_000
	evaluationLimit = 100_000    // for one evaluation
	ruleLimit       = 6_000_000  // for all evaluations of a rule
	budgetLimit     = 30_000_000 // for all rules of a budget

	byteCost  = 50 // cost of compiling one byte
	startCost = 50 // cost of starting an evaluation
)

// ErrCost is returned for a rule that exceeds its own limit or the remaining budget.
var ErrCost = errors.New("the rule takes too long to evaluate")

// Budget is the remaining total cost for all rules of a run. It is not safe for concurrent
// use.
type Budget struct{ remaining, perRule uint64 }

// NewBudget returns an unused budget.
func NewBudget() *Budget { return &Budget{remaining: budgetLimit, perRule: ruleLimit} }

// Rule is a compiled CEL rule.
type Rule struct {
	ast       *cel.Ast
	run       cel.Program
	budget    *Budget
	remaining uint64
	exceeded  bool
}

// Compile compiles a rule whose result is a boolean. It does not check the names of fields. If the
// budget is exhausted, the error is ErrCost.
func (b *Budget) Compile(env *cel.Env, rule string) (*Rule, error) {
	if len(rule) > maxLength {
		return nil, fmt.Errorf("expression is longer than %d bytes", maxLength)
	}
	if !b.take(byteCost * uint64(len(rule))) {
		return nil, ErrCost
	}
	checked, issues := env.Compile(rule)
	if err := issues.Err(); err != nil {
		return nil, errors.New(firstLine(err.Error()))
	}
	if t := checked.OutputType(); t != cel.BoolType && t != cel.DynType {
		return nil, fmt.Errorf("expression must return bool, got %s", t)
	}
	run, err := env.Program(checked, cel.CostLimit(evaluationLimit), cel.CostTracking(estimator{}), cel.CustomDecoratorV2(withCostLimits))
	if err != nil {
		return nil, err
	}
	return &Rule{ast: checked, run: run, budget: b, remaining: b.perRule}, nil
}

// Fields returns the fields of a variable that the rule uses (as in variable.field), sorted.
func (r *Rule) Fields(variable string) []string {
	var out []string
	ast.PostOrderVisit(r.ast.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.SelectKind {
			return
		}
		operand := e.AsSelect().Operand()
		if operand.Kind() == ast.IdentKind && operand.AsIdent() == variable && !e.AsSelect().IsTestOnly() {
			out = append(out, e.AsSelect().FieldName())
		}
	}))
	slices.Sort(out)
	return slices.Compact(out)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimPrefix(line, "ERROR: ")
}

// take subtracts cost from the budget, and reports whether the budget was sufficient.
func (b *Budget) take(cost uint64) bool {
	enough := cost <= b.remaining
	b.remaining -= min(cost, b.remaining)
	return enough
}

// Holds returns the result of the rule. After ErrCost, every later call for this rule returns ErrCost.
func (r *Rule) Holds(vars map[string]any) (bool, error) {
	if r.exceeded || r.budget.remaining == 0 {
		r.exceeded = true
		return false, ErrCost
	}
	out, details, err := r.run.Eval(vars)
	cost := uint64(startCost)
	if spent := details.ActualCost(); spent != nil {
		cost += *spent
	}
	var cancelled interpreter.EvalCancelledError
	r.exceeded = errors.As(err, &cancelled) || cost > r.remaining
	r.remaining -= min(cost, r.remaining)
	if !r.budget.take(cost) {
		r.exceeded = true
	}
	switch {
	case r.exceeded:
		return false, ErrCost
	case err != nil:
		return false, err
	}
	holds, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("expression must return bool, got %s", out.Type().TypeName())
	}
	return holds, nil
}
