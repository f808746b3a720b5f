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
	"github.com/quayside/quayside/internal/celrule"
)

// celRules holds the data that all CEL constraints share: the CEL environment and the cost budget. The
// environment is created for the first constraint, because most catalogs have no constraint.
type celRules struct {
	env      *cel.Env
	budget   *celrule.Budget
	exceeded int // number of rules whose evaluation exceeded the cost limit
}

// celRule is a CEL rule with its cached results.
type celRule struct {
	rules   *celRules
	text    string
	program *celrule.Rule // nil until compiled
	err     error         // error of compiling, or of exceeding the cost limit
	answers map[*facts]bool
}

// requirement returns a CEL rule as a requirement. The rule has one variable, properties: a list of
// {type, value}. The function semver_compare(a, b) returns -1, 0 or 1. The rule is compiled on
// first use.
func (c *celRules) requirement(rule string) *requirement {
	r := &celRule{rules: c, text: rule, answers: map[*facts]bool{}}
	return &requirement{
		label: "olm.constraint cel(" + rule + ")",
		text:  "a bundle with " + rule,
		match: r.match,
		fault: r.fault,
		scope: searchScope{anywhere: true},
	}
}

// fault returns the error that makes the rule unusable, or nil if none is known. It compiles the
// rule on the first call.
func (r *celRule) fault() error {
	if r.program == nil && r.err == nil {
		r.program, r.err = r.rules.compile(r.text)
	}
	if r.err != nil {
		return fmt.Errorf("cel rule %q: %w", r.text, r.err)
	}
	return nil
}

// match reports whether the rule is true for a bundle. If the evaluation fails, the rule does not
// match.
func (r *celRule) match(f *facts) bool {
	if yes, ok := r.answers[f]; ok {
		return yes
	}
	if r.fault() != nil {
		return false
	}
	yes, err := r.program.Holds(map[string]any{"properties": f.celProperties()})
	if errors.Is(err, celrule.ErrCost) {
		r.err = err
		r.rules.exceeded++
	}
	r.answers[f] = yes
	return yes
}

// CheckRule returns the error that makes a CEL rule of an olm.constraint unusable, or nil.
func CheckRule(rule string) error {
	_, err := (&celRules{}).compile(rule)
	return err
}

func (c *celRules) compile(rule string) (*celrule.Rule, error) {
	if c.env == nil {
		env, err := newCELEnv()
		if err != nil {
			return nil, err
		}
		c.env, c.budget = env, celrule.NewBudget()
	}
	return c.budget.Compile(c.env, rule)
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
	s, ok := v.(types.String)
	if !ok {
		return catalog.Version{}, errors.New("semver_compare: both arguments must be strings")
	}
	return semver.ParseTolerant(string(s))
}

// celProperties returns the properties of the bundle as CEL values.
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
