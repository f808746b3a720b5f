package resolve

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quayside/quayside/catalog"
)

// celCost bounds the evaluation of one rule on one bundle: rules come from
// strangers.
const celCost = 1_000_000

// celRules compiles the rules of cel constraints. The environment is made when
// the first rule is met; most catalogs hold none.
type celRules struct {
	env *cel.Env
}

// compile returns the test that rule makes. Its variable is properties, a list
// of {type, value}; semver_compare(a, b) is -1, 0 or 1. A rule that fails while
// it runs matches nothing.
func (c *celRules) compile(rule string) (*requirement, error) {
	if c.env == nil {
		env, err := newCELEnv()
		if err != nil {
			return nil, err
		}
		c.env = env
	}
	ast, issues := c.env.Compile(rule)
	if issues != nil && issues.Err() != nil {
		return nil, fmt.Errorf("cel rule %q: %w", rule, issues.Err())
	}
	if !ast.OutputType().IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("cel rule %q: want a bool, not %s", rule, ast.OutputType())
	}
	program, err := c.env.Program(ast, cel.CostLimit(celCost))
	if err != nil {
		return nil, fmt.Errorf("cel rule %q: %w", rule, err)
	}
	return &requirement{
		label: "olm.constraint cel(" + rule + ")",
		words: "a bundle for which " + rule,
		match: func(f *facts) bool {
			out, _, err := program.Eval(map[string]any{"properties": f.celProperties()})
			if err != nil {
				return false
			}
			yes, ok := out.Value().(bool)
			return ok && yes
		},
		where: hint{anywhere: true},
	}, nil
}

func newCELEnv() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("properties", cel.ListType(cel.MapType(cel.StringType, cel.DynType))),
		cel.Function("semver_compare", cel.Overload("semver_compare",
			[]*cel.Type{cel.DynType, cel.DynType}, cel.IntType, cel.BinaryBinding(semverCompare))),
	)
}

func semverCompare(a, b ref.Val) ref.Val {
	x, err := celVersion(a)
	if err != nil {
		return types.WrapErr(err)
	}
	y, err := celVersion(b)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Int(x.Compare(y))
}

func celVersion(v ref.Val) (catalog.Version, error) {
	s, ok := v.Value().(string)
	if !ok {
		return catalog.Version{}, errors.New("semver_compare: want strings")
	}
	return semver.ParseTolerant(s)
}

// celProperties returns the bundle's properties as plain values.
func (f *facts) celProperties() []any {
	if f.cel != nil {
		return f.cel
	}
	f.cel = make([]any, 0, len(f.properties))
	for _, p := range f.properties {
		var value any
		if json.Unmarshal(p.Value, &value) != nil {
			continue
		}
		f.cel = append(f.cel, map[string]any{"type": p.Type, "value": value})
	}
	return f.cel
}
