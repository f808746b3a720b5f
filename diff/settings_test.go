package diff

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/diag"
)

// settingFindings returns a finding of every rule about settings.
func settingFindings() []Finding {
	var out []Finding
	for _, r := range append(settingRules(), stateRules()...) {
		out = append(out, Finding{Rule: r.ID, Field: "spec.x", Before: "a", After: "b"})
	}
	return append(out, Finding{Rule: "settings.catalogs", Field: "spec.y", After: "c", Severity: Low})
}

// TestSettings checks findings about settings. They belong to no cluster. Their severity is the higher of
// the severities that the two sides configure.
func TestSettings(t *testing.T) {
	demo := stateRunning(t, "1.0.0", image("a"))
	want := []string{
		"high settings.automerge spec.x: a → b", "high settings.catalogs spec.x: a → b", "high settings.extends spec.x: a → b", "high settings.names spec.x: a → b",
		"high settings.output spec.x: a → b", "high settings.policy spec.x: a → b", "high settings.promotion spec.x: a → b", "high settings.requirements spec.x: a → b", "high settings.trust spec.x: a → b", "high settings.waiver spec.x: a → b", "high state.address spec.x: a → b", "high state.names spec.x: a → b", "high state.owner spec.x: a → b", "high state.promotion spec.x: a → b", "high state.requirements spec.x: a → b", "high state.schema spec.x: a → b",
		"low settings.catalogs spec.y: - → c",
	}
	for _, clusters := range [][]string{nil, {"east", "west"}} {
		r := Join([]Part{{clusters, compare(t, demo, demo)}}, Fleet{clusters, clusters}, CompareOptions{
			Settings: settingFindings(), Severity: map[string]Severity{"settings.policy": Off, "settings.trust": Low}, BaseSeverity: map[string]Severity{"settings.names": Off},
		})
		if d := cmp.Diff(want, lines(r)); d != "" {
			t.Errorf("%q: -want +got\n%s", clusters, d)
		}
		if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Clusters != nil }) {
			t.Errorf("%q: findings of some clusters: %v", clusters, r.Findings)
		}
	}
}

// TestOnlyPolicy checks that findings about policy changes are refused only if something else
// changes, too.
func TestOnlyPolicy(t *testing.T) {
	demo, next := stateRunning(t, "1.0.0", image("a")), stateRunning(t, "1.0.0", image("b"))
	for _, c := range []struct {
		after State
		only  bool
		want  bool
	}{{demo, true, false}, {demo, false, true}, {next, true, true}} {
		opt := CompareOptions{Settings: []Finding{{Rule: SettingsWaiver}}, PolicyOnlyChange: c.only}
		r, err := Judge(Join([]Part{{nil, compare(t, demo, c.after)}}, Fleet{}, opt), Policy{FailOn: High, Rules: []CELRule{{Name: "all", Expression: "true"}}}, "2026-11-21")
		if err != nil || r.Verdict.Fail != c.want || r.Empty() {
			t.Errorf("%v, %v: rejected %v, %v", c.only, c.want, r.Verdict.Faults, err)
		}
	}
}

// TestJudgeByBase checks that the policies of both the branch and its base must accept a finding.
func TestJudgeByBase(t *testing.T) {
	waivers := func(reason string) []diag.Waiver { return []diag.Waiver{{Rule: "crd.*", Reason: reason}} }
	rules := func(expr string) []CELRule { return []CELRule{{Name: "mine", Expression: expr}} }
	for name, c := range map[string]struct {
		branch, base Policy
		refused      int
		waiver       string
	}{
		"both accept":                  {Policy{FailOn: Critical}, Policy{FailOn: Critical}, 0, ""},
		"the branch raised failOn":     {Policy{FailOn: Off}, Policy{FailOn: High}, 1, ""},
		"the branch lowered failOn":    {Policy{FailOn: High}, Policy{FailOn: Off}, 1, ""},
		"the branch adds a waiver":     {Policy{FailOn: High, Waivers: waivers("new")}, Policy{FailOn: High}, 1, ""},
		"the branch removes a waiver":  {Policy{FailOn: High}, Policy{FailOn: High, Waivers: waivers("old")}, 1, ""},
		"both waive":                   {Policy{FailOn: High, Waivers: waivers("new")}, Policy{FailOn: High, Waivers: waivers("old")}, 0, "new"},
		"stricter, with a waiver":      {Policy{FailOn: High, Waivers: waivers("new")}, Policy{FailOn: Critical}, 0, "new"},
		"the branch removes a rule":    {Policy{}, Policy{Rules: rules("true")}, 1, ""},
		"the branch disarms a rule":    {Policy{Rules: rules("false")}, Policy{Rules: rules("true")}, 1, ""},
		"both have the rule":           {Policy{Rules: rules("true")}, Policy{Rules: rules("true")}, 1, ""},
		"the branch waives a rule":     {Policy{Rules: rules("true"), Waivers: []diag.Waiver{{Rule: "mine", Reason: "r"}}}, Policy{Rules: rules("true")}, 1, ""},
		"a base may have only a level": {Policy{FailOn: Off}, Policy{Clusters: []Level{{[]string{"prd"}, High}}}, 0, ""},
	} {
		c.branch.Base = &c.base
		r := judgeTypeChange(t, c.branch, "2026-11-21")
		if len(r.Verdict.Faults) != c.refused || r.Verdict.Fail != (c.refused > 0) || r.Findings[0].Waiver != c.waiver {
			t.Errorf("%s: rejected %v, waiver %q; want %d, %q", name, r.Verdict.Faults, r.Findings[0].Waiver, c.refused, c.waiver)
		}
	}
}
