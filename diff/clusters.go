package diff

import (
	"fmt"
	"slices"
	"strings"
)

func clusterRules() []Rule {
	return []Rule{
		{"clusters.added", Info, "cluster added", "it is compared with what the others had before: what is its own is in the other findings"},
		{"clusters.removed", High, "cluster goes", "nothing is rendered for it any more: what was applied there is pruned, or runs on without anybody's care"},
		{"clusters.operator-dropped", High, "operator goes from a cluster", "others keep it, this cluster does not: its objects are pruned there, and custom resources stay without an operator"},
	}
}

// Part is the comparison of what some clusters get, all of them the same.
type Part struct {
	Clusters []string // sorted
	Report   *Report
}

// Fleet is what clusters there are, before and after. Names are sorted.
type Fleet struct{ Before, After []string }

// Join returns the parts as one report, in which findings, operators and
// plans that do not hold for all clusters name those that they hold for. The
// names of the states and the order of the parts are those of the first. With
// one cluster on both sides none is named.
func Join(parts []Part, fleet Fleet, opt Options) *Report {
	all := fleet.all()
	if len(all) < 2 {
		parts[0].Report.Clusters = all
		return parts[0].Report
	}
	c := &comparison{opt: opt, rules: rulesByID()}
	for _, name := range all {
		rule, message := "clusters.added", "the cluster is new"
		switch {
		case !slices.Contains(fleet.After, name):
			rule, message = "clusters.removed", "the cluster goes"
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

// alike is what is the same in several parts, in the order of the first.
type alike[T any] struct {
	items    []T
	clusters [][]string
	at       map[string]int
}

// add adds item for some clusters; items with one key are the same.
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

// each calls f with every item and the clusters that it holds for, sorted: nil
// for all of them.
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
	objects  alike[Operator] // with one object each, or none
	removals alike[Removal]
}

func (j *joiner) take(p Part) {
	for _, f := range p.Report.Findings {
		j.findings.add(f, p.Clusters, f.Rule, f.Severity, f.Operator, f.Object, f.Field, f.Also, f.Before, f.After, f.Message, f.parts())
	}
	for _, op := range p.Report.Operators {
		one := Operator{Name: op.Name, From: op.From, To: op.To}
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

// fill puts what was taken into a report.
func (j *joiner) fill(r *Report) {
	var ops alike[Operator]
	j.objects.each(j.all, func(op Operator, in []string) {
		if op.Clusters = in; len(op.Added)+len(op.Changed)+len(op.Removed) > 0 {
			ops.add(Operator{Name: op.Name, From: op.From, To: op.To, Clusters: in}, nil, op.Name, in)
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

// arrange sorts the report, and sees to it that every finding has its operator
// for the clusters that it holds for; known tells the versions.
func (r *Report) arrange(known []Operator) {
	for _, f := range r.Findings {
		about := Operator{Name: f.Operator, Clusters: f.Clusters}
		if slices.ContainsFunc(r.Operators, func(op Operator) bool { return op.Name == f.Operator && slices.Equal(op.Clusters, f.Clusters) }) {
			continue
		}
		if i := slices.IndexFunc(known, func(op Operator) bool { return op.Name == f.Operator }); i >= 0 {
			about.From, about.To = known[i].From, known[i].To
		}
		r.Operators = append(r.Operators, about)
	}
	slices.SortStableFunc(r.Findings, compareFindings)
	r.rank()
}

// onlyIn says for which clusters something holds: "c03: ", "38 clusters (c01, c02,
// c04 and 35 more): "; "" for all.
func onlyIn(clusters []string) string {
	switch {
	case len(clusters) == 0:
		return ""
	case len(clusters) <= 3:
		return strings.Join(clusters, ", ") + ": "
	}
	return fmt.Sprintf("%d clusters (%s): ", len(clusters), some(clusters, 3))
}
