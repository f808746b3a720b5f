package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
)

// group is a set of findings with the same operator, rule and severity. Text, Markdown and HTML
// reports print it as one item.
type group struct {
	severity Severity
	rule     RuleInfo
	findings []Finding
}

// groupFindings groups the findings of one operator. The groups are sorted by severity, highest
// first, then by rule. Groups of waived findings come last.
func groupFindings(findings []Finding) []group {
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
		return cmp.Or(cmp.Compare(waivedRank(a), waivedRank(b)), cmp.Compare(b.severity, a.severity), strings.Compare(a.rule.ID, b.rule.ID))
	})
	return out
}

// waivedRank returns the sort rank of a group: 1 if its findings are waived, otherwise 0.
func waivedRank(g group) int {
	if g.findings[0].Waiver != "" {
		return 1
	}
	return 0
}

// omittedGroups summarizes findings that do not fit into a report. It returns a line for each rule with
// findings of at least medium severity: the number of findings by kind of object.
func omittedGroups(findings []Finding) []string {
	type group struct {
		severity Severity
		rule     string
	}
	counts := map[group]map[string]int{}
	for _, f := range findings {
		if f.Severity < Medium || f.Waiver != "" {
			continue
		}
		g := group{f.Severity, f.Rule}
		if counts[g] == nil {
			counts[g] = map[string]int{}
		}
		counts[g][cmp.Or(f.Object.Kind, "operator")] += max(1, len(f.locations()))
	}
	order := slices.SortedFunc(maps.Keys(counts), func(a, b group) int {
		return cmp.Or(cmp.Compare(b.severity, a.severity), strings.Compare(a.rule, b.rule))
	})
	var out []string
	for _, g := range order {
		kinds := slices.SortedFunc(maps.Keys(counts[g]), func(a, b string) int {
			return cmp.Or(cmp.Compare(counts[g][b], counts[g][a]), strings.Compare(a, b))
		})
		for i, kind := range kinds {
			kinds[i] = fmt.Sprintf("%d %s", counts[g][kind], sanitize.Truncate(kind, 63))
		}
		out = append(out, fmt.Sprintf("%s %s: %s", g.severity, g.rule, diag.Some(kinds, 30)))
	}
	return out
}

// headline returns a summary of the report in one line, such as "3 operators change: 1 critical, 2
// high".
func (r *Report) headline() string {
	s := r.changedOperators()
	if c := formatCounts(r.Findings); c != "" && !r.Empty() {
		s += ": " + c
	}
	return s
}

// changedOperators formats the number of operators with changes, such as "3 operators change".
func (r *Report) changedOperators() string {
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
	return pluralize(len(named), "operator changes", "operators change")
}

// formatCounts formats the numbers of findings by severity and of waived findings, such as "1
// critical, 2 high, 1 waived".
func formatCounts(findings []Finding) string {
	var out []string
	waivers := 0
	for _, s := range severities() {
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

// versionChange formats the change of the operator's version, such as "0.9.2 → 0.9.4".
func (o OperatorReport) versionChange() string {
	switch {
	case o.From == o.To:
		return o.To
	case o.From == "":
		return "installed, " + o.To
	case o.To == "":
		return "removed, was " + o.From
	}
	return o.From + " → " + o.To
}

// objectCounts formats the numbers of added, changed and removed objects.
func (o OperatorReport) objectCounts() string {
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

// objectLists returns one line with the added objects, one with the removed objects, and one with the
// change of requests and limits. It omits empty lines.
func (o OperatorReport) objectLists() []string {
	var out []string
	if len(o.Added) > 0 {
		out = append(out, "added: "+diag.Some(refNames(o.Added), 12))
	}
	if len(o.Removed) > 0 {
		out = append(out, "removed: "+diag.Some(refNames(o.Removed), 12))
	}
	if o.Resources != (ResourceChange{}) {
		out = append(out, o.Resources.String())
	}
	return out
}

// title returns the name of the operator. If only some clusters have the change, the names of these
// clusters come first.
func (o OperatorReport) title() string {
	return clusterPrefix(o.Clusters) + cmp.Or(o.Name, "(no operator)")
}

// subject returns the object and the field that a finding is about.
func (f Finding) subject() string { return strings.TrimSpace(f.Object.String() + " " + f.Field) }

// fullMessage returns the message and the other fields of the object with the same change.
func (f Finding) fullMessage() string {
	others := f.otherFields()
	if len(others) == 0 {
		return f.Message
	}
	return fmt.Sprintf("%s; also at %s", f.Message, diag.Some(others, 3))
}

// showsValues reports whether reports print the values Before and After of the finding.
func (f Finding) showsValues() bool {
	return (f.Before != "" || f.After != "") && (f.Severity > Info || slices.Contains([]string{"images", "pods", "objects"}, f.family()))
}

// String returns "path:line", or only the path for a whole file.
func (p Region) String() string {
	if p.Line == 0 {
		return p.Path
	}
	return fmt.Sprintf("%s:%d", p.Path, p.Line)
}
