package celrule

import (
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	f := map[string]any{"rule": "rbac.gained", "rank": int64(3), "after": "get, list"}
	for expr, want := range map[string]bool{
		`finding.rule == "rbac.gained"`:                    true,
		`finding.rank > 3`:                                 false,
		`finding.after.split(", ").exists(v, v == "list")`: true,
		`"nosuch" in finding`:                              false,
	} {
		p, err := Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Holds(f); err != nil || got != want {
			t.Errorf("%s: got %v, %v", expr, got, err)
		}
	}
}

func TestBadRules(t *testing.T) {
	for _, expr := range []string{"", "finding.", "other == 1", "'text'", "true" + strings.Repeat(" ", maxLength)} {
		if _, err := Compile(expr); err == nil {
			t.Errorf("%.20q was taken", expr)
		}
	}
	p, err := Compile(`[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Holds(nil); err == nil {
		t.Error("a rule that runs for ever ran to its end")
	}
}
