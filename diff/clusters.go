package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/base/diag"
)

func clusterRules() []Rule {
	return []Rule{
		{"clusters.added", Info, "cluster added", "compared with the other clusters before the change; its differences are separate findings"},
		{"clusters.removed", High, "cluster removed", "no longer rendered: its objects are pruned, or run on unmanaged"},
		{"clusters.operator-dropped", High, "operator removed from a cluster", "other clusters keep it; on this one its objects are pruned, and custom resources stay without an operator"},
	}
}

// Part is the comparison for a group of clusters with equal states.
type Part struct {
	Clusters []string // sorted
	Report   *Report
}

// Fleet holds the names of the clusters before and after, sorted.
type Fleet struct{ Before, After []string }

// Join joins the parts into one report. Findings, operators and plans that do not apply to
// all clusters name their clusters. The names of the states and the order of the parts are
// those of the first part. A single cluster is not named.
func Join(parts []Part, fleet Fleet, opt CompareOptions) *Report {
	r := joinParts(parts, fleet, opt)
	r.addSettings(opt)
	return r
}

func joinParts(parts []Part, fleet Fleet, opt CompareOptions) *Report {
	all := fleet.all()
	if len(all) < 2 && len(parts) == 1 {
		parts[0].Report.Clusters = all
		return parts[0].Report
	}
	c := &comparison{opt: opt, rules: rulesByID()}
	for _, name := range all {
		if len(all) < 2 {
			break // a single cluster is not named
		}
		rule, message := "clusters.added", "the cluster is new"
		switch {
		case !slices.Contains(fleet.After, name):
			rule, message = "clusters.removed", "cluster removed"
		case slices.Contains(fleet.Before, name) || len(fleet.Before) == 0:
			continue
		}
		c.add(rule, nil, Finding{Clusters: []string{name}, Message: message})
	}
	j := joiner{all: fleet.After}
	for _, f := range c.found {
		j.findings.add(f, f.Clusters, f.Message)
	}
	out := &Report{Before: parts[0].Report.Before, After: parts[0].Report.After, Clusters: all, scanned: opt.Scans != nil}
	for _, p := range parts {
		j.take(p)
		for _, n := range p.Report.Notes {
			if !slices.Contains(out.Notes, n) {
				out.Notes = append(out.Notes, n)
			}
		}
	}
	j.fill(out)
	return out
}

// all returns the names of all clusters, sorted.
func (f Fleet) all() []string {
	out := slices.Concat(f.Before, f.After)
	slices.Sort(out)
	return slices.Compact(out)
}

// alike collects equal items of several parts, in order of first appearance.
type alike[T any] struct {
	items    []T
	clusters [][]string
	at       map[string]int
}

// add adds an item for some clusters. Items with the same key are equal.
func (a *alike[T]) add(item T, clusters []string, key ...any) {
	if a.at == nil {
		a.at = map[string]int{}
	}
	k := fmt.Sprintf("%q", key)
	i, known := a.at[k]
	if !known {
		i = len(a.items)
		a.at[k] = i
		a.items, a.clusters = append(a.items, item), append(a.clusters, nil)
	}
	a.clusters[i] = append(a.clusters[i], clusters...)
}

// each calls f with every item and its clusters, sorted; nil means all of them.
func (a *alike[T]) each(all []string, f func(item T, clusters []string)) {
	for i, item := range a.items {
		in := slices.Compact(slices.Sorted(slices.Values(a.clusters[i])))
		if slices.Equal(in, all) {
			in = nil
		}
		f(item, in)
	}
}

// joiner joins the parts of a report.
type joiner struct {
	all      []string
	findings alike[Finding]
	objects  alike[OperatorReport] // with one object each, or none
	removals alike[Removal]
}

func (j *joiner) take(p Part) {
	for _, f := range p.Report.Findings {
		j.findings.add(f, p.Clusters, f.Rule, f.Severity, f.Operator, f.Object, f.Field, f.Also, f.Before, f.After, f.Message, f.parts())
	}
	for _, op := range p.Report.Operators {
		one := OperatorReport{Name: op.Name, From: op.From, To: op.To}
		j.objects.add(one, p.Clusters, one)
		for i, refs := range [][]Ref{op.Added, op.Changed, op.Removed} {
			for _, ref := range refs {
				with := one
				*[]*[]Ref{&with.Added, &with.Changed, &with.Removed}[i] = []Ref{ref}
				j.objects.add(with, p.Clusters, with)
			}
		}
	}
	for _, r := range p.Report.Removals {
		j.removals.add(r, p.Clusters, r)
	}
}

// fill adds the joined findings, operators and removals to a report.
func (j *joiner) fill(r *Report) {
	var ops alike[OperatorReport]
	j.objects.each(j.all, func(op OperatorReport, in []string) {
		if op.Clusters = in; len(op.Added)+len(op.Changed)+len(op.Removed) > 0 {
			ops.add(OperatorReport{Name: op.Name, From: op.From, To: op.To, Clusters: in}, nil, op.Name, in)
			to := &ops.items[ops.at[fmt.Sprintf("%q", []any{op.Name, in})]]
			to.Added, to.Changed, to.Removed = append(to.Added, op.Added...), append(to.Changed, op.Changed...), append(to.Removed, op.Removed...)
		}
	})
	j.findings.each(j.all, func(f Finding, in []string) {
		f.Clusters = in
		r.Findings = append(r.Findings, f)
	})
	r.Operators = ops.items
	j.removals.each(j.all, func(x Removal, in []string) {
		x.Clusters = in
		r.Removals = append(r.Removals, x)
	})
	r.arrange(j.objects.items)
}

// arrange adds an operator for every finding that has none for the same clusters, with the
// versions of known, and sorts the report.
func (r *Report) arrange(known []OperatorReport) {
	for _, f := range r.Findings {
		about := OperatorReport{Name: f.Operator, Clusters: f.Clusters}
		if slices.ContainsFunc(r.Operators, func(op OperatorReport) bool { return op.Name == f.Operator && slices.Equal(op.Clusters, f.Clusters) }) {
			continue
		}
		if i := slices.IndexFunc(known, func(op OperatorReport) bool { return op.Name == f.Operator }); i >= 0 {
			about.From, about.To = known[i].From, known[i].To
		}
		r.Operators = append(r.Operators, about)
	}
	slices.SortStableFunc(r.Findings, compareFindings)
	r.rank()
}

// onlyIn formats clusters as the prefix of a message, "" for all: "38 clusters (c01, c02,
// c04 and 35 more): ".
func onlyIn(clusters []string) string {
	switch {
	case len(clusters) == 0:
		return ""
	case len(clusters) <= 3:
		return strings.Join(clusters, ", ") + ": "
	}
	return fmt.Sprintf("%d clusters (%s): ", len(clusters), diag.Some(clusters, 3))
}
