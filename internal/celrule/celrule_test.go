package celrule

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

func environment(t *testing.T) *cel.Env {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("list", cel.ListType(cel.DynType)), cel.Variable("long", cel.StringType),
		cel.Function("first_byte", cel.Overload("first_byte", []*cel.Type{cel.DynType}, cel.IntType,
			cel.UnaryBinding(func(ref.Val) ref.Val { return types.Int(0) }))))
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func variables() map[string]any {
	var list []any
	for i := range 40 {
		list = append(list, map[string]any{"type": "t", "value": map[string]any{"n": i, "deep": []any{"a", 1.5, nil, true}}})
	}
	return map[string]any{"list": list, "long": strings.Repeat("1", 1_000_000)}
}

func TestRules(t *testing.T) {
	for rule, want := range map[string]bool{
		`list.exists(p, p.type == "t" && p.value.n == 39)`:               true,
		`list.all(p, p in list)`:                                         true,
		`list[0] != list[1]`:                                             true,
		`list[0].value.deep == ["a", 1.5, null, true]`:                   true,
		`list.filter(p, p.value.n > 20).map(p, p.type).size() == 19`:     true,
		`list.map(p, p.value.n) + [1] == [2]`:                            false,
		`"deep" in list[0].value`:                                        true,
		`3 in [1, 2]`:                                                    false,
		`"v4.20".matches("^v4[.][0-9]{2}$")`:                             true,
		`long.startsWith("11") && !long.endsWith("2") && long != "long"`: true,
	} {
		r, err := NewBudget().Compile(environment(t), rule)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Holds(variables()); err != nil || got != want {
			t.Errorf("%s: got %v, %v", rule, got, err)
		}
	}
}

func TestBadRules(t *testing.T) {
	for _, rule := range []string{"", "list.", "other == 1", "'text'", "true" + strings.Repeat(" ", maxLength)} {
		if _, err := NewBudget().Compile(environment(t), rule); err == nil || errors.Is(err, ErrCost) {
			t.Errorf("%.20q: got %v", rule, err)
		}
	}
}

// TestCostly checks short rules with a very long run time, for which CEL counts only one step.
func TestCostly(t *testing.T) {
	times := func(n int, s string) string { return strings.Repeat(s, n) }
	for _, rule := range []string{
		`list.all(a, list.all(b, list.all(c, list.all(d, true))))`,
		`list.all(a, list.all(b, list.all(c, first_byte(a) == 0)))`,
		`list.all(a, list.all(b, list.all(c, a == c || a != c)))`,
		`[[1]]` + times(60, `.map(x, x + x)`) + `.all(x, x == x)`,
		`[[1]]` + times(60, `.map(x, x + x)`) + `.all(x, 2 in x)`,
		`[[1]]` + times(60, `.map(x, [x, x])`) + `.all(x, x == x)`,
		`[[1]]` + times(60, `.map(x, [x, x])`) + `.all(x, x != x)`,
		`[[1]]` + times(60, `.map(x, [x, x])`) + `.all(x, x in [x])`,
		`[{"a": 1}]` + times(60, `.map(x, {"a": x, "b": x})`) + `.all(x, x == x)`,
		`["a"]` + times(60, `.map(x, x + x)`) + `.all(x, x == "a")`,
		`list.all(a, list.all(b, long.size() > 0))`,
		`list.all(a, list.all(b, double(long) > 0.0))`,
		`list.all(a, list.all(b, long.contains("0") || true))`,
		`long.matches("(1?){1000}0")`,
		`list.all(a, list.all(b, "1".matches("((1{30}){30}|2){1}") || true))`,
	} {
		b := NewBudget()
		r, err := b.Compile(environment(t), rule)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Holds(variables()); !errors.Is(err, ErrCost) {
			t.Errorf("%.80s: got %v, remaining budget %d", rule, err, b.remaining)
		}
	}
}

// TestBudget exhausts the limit of single rules, and then the whole budget.
func TestBudget(t *testing.T) {
	b := &Budget{remaining: 250_000, perRule: 100_000}
	few := map[string]any{"list": []any{1, 2, 3}, "long": ""}
	often := func() (n int) {
		r, err := b.Compile(environment(t), `list.all(a, a > 0)`)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = r.Holds(few)
			n++
		}
		if _, again := r.Holds(few); !errors.Is(err, ErrCost) || !errors.Is(again, ErrCost) {
			t.Errorf("got %v, and then %v", err, again)
		}
		return n
	}
	first, second, third := often(), often(), often()
	if first < 500 || second != first || third < 100 || third >= first {
		t.Errorf("three rules were evaluated %d, %d and %d times, want two equal numbers and a lower one", first, second, third)
	}
	if _, err := b.Compile(environment(t), "true"); b.remaining != 0 || !errors.Is(err, ErrCost) {
		t.Errorf("remaining budget %d, another rule: %v", b.remaining, err)
	}
}
