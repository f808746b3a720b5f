package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// group is the findings of one operator under one rule at one severity: what
// the readable reports print together.
type group struct {
	severity Severity
	rule     Rule
	findings []Finding
}

// groups returns the findings of one operator, worst first, then by rule.
// Waived ones come last, whatever their severity.
func groups(findings []Finding) []group {
	rules := rulesByID()
	var out []group
	for _, f := range findings {
		i := slices.IndexFunc(out, func(g group) bool {
			return g.rule.ID == f.Rule && g.severity == f.Severity && (g.findings[0].Waiver != "") == (f.Waiver != "")
		})
		if i < 0 {
			rule := rules[f.Rule]
			rule.Why = cmp.Or(rule.Why, f.Why)
			out, i = append(out, group{severity: f.Severity, rule: rule}), len(out)
		}
		out[i].findings = append(out[i].findings, f)
	}
	slices.SortStableFunc(out, func(a, b group) int {
		return cmp.Or(cmp.Compare(waived(a), waived(b)), cmp.Compare(b.severity, a.severity), strings.Compare(a.rule.ID, b.rule.ID))
	})
	return out
}

func waived(g group) int {
	if g.findings[0].Waiver != "" {
		return 1
	}
	return 0
}

// headline says the outcome in a line: "3 operators change: 1 critical, 2 high".
func (r *Report) headline() string {
	s := r.movers()
	if c := counts(r.Findings); c != "" && !r.Empty() {
		s += ": " + c
	}
	return s
}

// movers says how many operators change: "3 operators change".
func (r *Report) movers() string {
	if r.Empty() {
		return "no differences"
	}
	named := map[string]bool{}
	for _, op := range r.Operators {
		if strings.Contains(op.Name, "/") {
			named[op.Name] = true
		}
	}
	if len(named) == 0 {
		return "no operator changes"
	}
	return plural(len(named), "operator changes", "operators change")
}

// counts says how many findings of each severity there are, without the waived.
func counts(findings []Finding) string {
	var out []string
	waivers := 0
	for _, s := range Severities() {
		n := 0
		for _, f := range findings {
			if f.Severity == s && f.Waiver == "" {
				n++
			}
		}
		if n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, s))
		}
	}
	for _, f := range findings {
		if f.Waiver != "" {
			waivers++
		}
	}
	if waivers > 0 {
		out = append(out, fmt.Sprintf("%d waived", waivers))
	}
	return strings.Join(out, ", ")
}

// step says what happens to the operator: "0.9.2 → 0.9.4".
func (o Operator) step() string {
	switch {
	case o.From == o.To:
		return o.To
	case o.From == "":
		return "installed, " + o.To
	case o.To == "":
		return "goes, was " + o.From
	}
	return o.From + " → " + o.To
}

// tally says how many objects change.
func (o Operator) tally() string {
	var out []string
	for _, t := range []struct {
		list []Ref
		word string
	}{{o.Added, "added"}, {o.Changed, "changed"}, {o.Removed, "removed"}} {
		if len(t.list) > 0 {
			out = append(out, fmt.Sprintf("%d %s", len(t.list), t.word))
		}
	}
	if len(out) == 0 {
		return "no objects change"
	}
	return "objects: " + strings.Join(out, ", ")
}

// lists names the objects that come and go.
func (o Operator) lists() []string {
	var out []string
	if len(o.Added) > 0 {
		out = append(out, "added: "+some(refs(o.Added), 12))
	}
	if len(o.Removed) > 0 {
		out = append(out, "removed: "+some(refs(o.Removed), 12))
	}
	return out
}

// title names the operator, and the clusters where it is not all.
func (o Operator) title() string { return onlyIn(o.Clusters) + cmp.Or(o.Name, "(no operator)") }

// subject names what a finding is about, without what its message says.
func (f Finding) subject() string { return strings.TrimSpace(f.Object.String() + " " + f.Field) }

// words returns the message, and what else it holds for.
func (f Finding) words() string {
	if len(f.Also) == 0 {
		return f.Message
	}
	return fmt.Sprintf("%s; also at %s", f.Message, some(f.Also, 3))
}

// values reports whether a reader needs Before and After beside the message.
func (f Finding) values() bool {
	return (f.Before != "" || f.After != "") && (f.Severity > Info || slices.Contains([]string{"images", "pods", "objects"}, f.Family()))
}

// String returns "path:line".
func (p Place) String() string {
	if p.Line == 0 {
		return p.Path
	}
	return fmt.Sprintf("%s:%d", p.Path, p.Line)
}
