// Package celrule runs the user's own rules, written in CEL, over findings.
//
// Start from [Compile].
package celrule

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

// Program is a compiled rule.
type Program struct{ run cel.Program }

const (
	maxLength = 10_000
	costLimit = 1_000_000
)

// Compile reads an expression over `finding` that yields a boolean. Names of
// fields are checked when it runs.
func Compile(expression string) (*Program, error) {
	if len(expression) > maxLength {
		return nil, fmt.Errorf("expression is longer than %d bytes", maxLength)
	}
	env, err := cel.NewEnv(cel.Variable("finding", cel.MapType(cel.StringType, cel.DynType)), ext.Strings())
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if err := issues.Err(); err != nil {
		return nil, errors.New(firstLine(err.Error()))
	}
	if t := ast.OutputType(); t != cel.BoolType && t != cel.DynType {
		return nil, fmt.Errorf("expression yields %s, want bool", t)
	}
	run, err := env.Program(ast, cel.CostLimit(costLimit))
	if err != nil {
		return nil, err
	}
	return &Program{run}, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimPrefix(line, "ERROR: ")
}

// Holds runs the rule on one finding.
func (p *Program) Holds(finding map[string]any) (bool, error) {
	out, _, err := p.run.Eval(map[string]any{"finding": finding})
	if err != nil {
		return false, err
	}
	holds, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("expression yields %s, want bool", out.Type().TypeName())
	}
	return holds, nil
}
