package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
)

func clusterRules() []RuleInfo {
	return []RuleInfo{
		{"clusters.added", Info, "cluster added", "compared with the other clusters before the change; its differences are separate findings"},
		{"clusters.removed", High, "cluster removed", "no longer rendered: its objects are pruned, or run on unmanaged"},
		{"clusters.operator-dropped", High, "operator removed from a cluster", "other clusters keep the operator; in this cluster its objects are pruned, and custom resources stay without an operator"},
	}
}

// Part is the comparison of one group of clusters. All clusters of the group have the same objects.
type Part struct {
	Clusters []string // sorted
	Report   *Report
}

// Fleet holds the names of all clusters on both sides of the comparison, sorted.
type Fleet struct{ Before, After []string }

// Join combines the reports of groups of clusters into one report. A finding, an operator or an uninstall
// plan lists its clusters, unless it applies to all clusters or there is only one cluster. The names of the
// two states are taken from the first part.
func Join(parts []Part, fleet Fleet, opt CompareOptions) *Report {
	r := joinParts(parts, fleet, opt)
	r.addSettings(opt)
	return r
}

// joinParts does the work of Join, without the findings about settings.
func joinParts(parts []Part, fleet Fleet, opt CompareOptions) *Report {
	all := fleet.all()
	if len(all) < 2 && len(parts) == 1 {
		parts[0].Report.Clusters = all
		return parts[0].Report
	}
	c := &comparison{opt: opt, rules: rulesByID()}
	for _, name := range all {
		if len(all) < 2 {
			break // with a single cluster, findings list no clusters
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
		j.addPart(p)
		for _, n := range p.Report.Notes {
			if !slices.Contains(out.Notes, n) {
				out.Notes = append(out.Notes, n)
			}
		}
	}
	j.fill(out)
	return out
}

// all returns the sorted names of all clusters.
func (f Fleet) all() []string {
	out := slices.Concat(f.Before, f.After)
	slices.Sort(out)
	return slices.Compact(out)
}

// itemGroups merges equal items of several clusters. It keeps the order of first appearance.
type itemGroups[T any] struct {
	items    []T
	clusters [][]string
	at       map[string]int
}

// add adds an item for the given clusters. It merges items with equal keys.
func (a *itemGroups[T]) add(item T, clusters []string, key ...any) {
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

// each calls f with every item and the sorted names of its clusters. clusters is nil if the item
// applies to all clusters.
func (a *itemGroups[T]) each(all []string, f func(item T, clusters []string)) {
	for i, item := range a.items {
		itemClusters := slices.Compact(slices.Sorted(slices.Values(a.clusters[i])))
		if slices.Equal(itemClusters, all) {
			itemClusters = nil
		}
		f(item, itemClusters)
	}
}

// joiner merges the reports of all parts.
type joiner struct {
	all      []string
	findings itemGroups[Finding]
	objects  itemGroups[OperatorReport] // one item per operator without objects, and one per object
	removals itemGroups[Removal]
}

// addPart adds the findings, changed objects and uninstall plans of one part.
func (j *joiner) addPart(p Part) {
	for _, f := range p.Report.Findings {
		j.findings.add(f, p.Clusters, f.Rule, f.Severity, f.Operator, f.Object, f.Field, f.Before, f.After, f.Message, f.parts())
	}
	for _, op := range p.Report.Operators {
		header := OperatorReport{Name: op.Name, From: op.From, To: op.To}
		j.objects.add(header, p.Clusters, header)
		for i, refs := range [][]Ref{op.Added, op.Changed, op.Removed} {
			for _, ref := range refs {
				item := header
				item.Resources = p.Report.resources[ref]
				*[]*[]Ref{&item.Added, &item.Changed, &item.Removed}[i] = []Ref{ref}
				j.objects.add(item, p.Clusters, item, item.Resources.String())
			}
		}
	}
	for _, r := range p.Report.Removals {
		j.removals.add(r, p.Clusters, r)
	}
}

// fill writes the merged findings, operators and uninstall plans to r.
func (j *joiner) fill(r *Report) {
	var ops itemGroups[OperatorReport]
	j.objects.each(j.all, func(op OperatorReport, clusters []string) {
		if op.Clusters = clusters; len(op.Added)+len(op.Changed)+len(op.Removed) > 0 {
			ops.add(OperatorReport{Name: op.Name, From: op.From, To: op.To, Clusters: clusters}, nil, op.Name, clusters)
			to := &ops.items[ops.at[fmt.Sprintf("%q", []any{op.Name, clusters})]]
			to.Resources = to.Resources.plus(op.Resources, 1)
			to.Added, to.Changed, to.Removed = append(to.Added, op.Added...), append(to.Changed, op.Changed...), append(to.Removed, op.Removed...)
		}
	})
	j.findings.each(j.all, func(f Finding, clusters []string) {
		f.Clusters = clusters
		r.Findings = append(r.Findings, f)
	})
	r.Operators = ops.items
	j.removals.each(j.all, func(x Removal, clusters []string) {
		x.Clusters = clusters
		r.Removals = append(r.Removals, x)
	})
	r.addMissingOperators(j.objects.items)
}

// addMissingOperators adds an entry to r.Operators for each finding that has no entry with its operator and
// clusters, and sorts the report. known contains the versions for the new entries.
func (r *Report) addMissingOperators(known []OperatorReport) {
	for _, f := range r.Findings {
		missing := OperatorReport{Name: f.Operator, Clusters: f.Clusters}
		if slices.ContainsFunc(r.Operators, func(op OperatorReport) bool { return op.Name == f.Operator && slices.Equal(op.Clusters, f.Clusters) }) {
			continue
		}
		if i := slices.IndexFunc(known, func(op OperatorReport) bool { return op.Name == f.Operator }); i >= 0 {
			missing.From, missing.To = known[i].From, known[i].To
		}
		r.Operators = append(r.Operators, missing)
	}
	slices.SortStableFunc(r.Findings, compareFindings)
	r.sortOperators()
}

// clusterPrefix returns the clusters as a prefix for a message, such as "38 clusters (c01, c02, c04
// and 35 more): ". It returns "" if clusters is empty, which means all.
func clusterPrefix(clusters []string) string {
	switch {
	case len(clusters) == 0:
		return ""
	case len(clusters) <= 3:
		return strings.Join(clusters, ", ") + ": "
	}
	return fmt.Sprintf("%d clusters (%s): ", len(clusters), diag.Some(clusters, 3))
}
