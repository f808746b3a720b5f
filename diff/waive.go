package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
)

// part is the smallest part of a finding that a waiver can select in a cluster.
type part struct {
	Object           Ref
	Field, Container string
	Vulnerabilities  []string // IDs and aliases
}

// parts splits a finding into single fields, permissions or vulnerabilities.
func (f Finding) parts() []part {
	whole := part{Object: f.Object, Field: f.Field, Container: f.Container}
	var out []part
	switch {
	case len(f.locations) > 0:
		for _, s := range f.locations {
			out = append(out, part{Object: s.Object, Field: s.Field, Container: s.Container})
		}
	case f.clause != nil:
		for _, object := range f.clause.objects {
			whole.Field = object
			out = append(out, whole)
		}
	case len(f.Vulnerabilities) > 0:
		for _, v := range f.Vulnerabilities {
			whole.Vulnerabilities = append([]string{v.ID}, v.Also...)
			out = append(out, whole)
		}
		if f.countUnlisted() > 0 {
			whole.Vulnerabilities = nil
			out = append(out, whole)
		}
	default:
		out = []part{whole}
	}
	return out
}

// countUnlisted returns the number of vulnerabilities that Counts includes, but Vulnerabilities omits.
func (f Finding) countUnlisted() int {
	n := -len(f.Vulnerabilities)
	for _, count := range f.Counts {
		n += count
	}
	return max(n, 0)
}

// withParts returns a finding with some of the parts of f. indexes are their indexes in
// [Finding.parts].
func (f Finding) withParts(indexes []int) Finding {
	if len(indexes) == len(f.parts()) {
		return f
	}
	switch {
	case len(f.locations) > 0:
		return f.withLocations(indexes)
	case f.clause != nil:
		c := *f.clause
		c.objects = selectItems(c.objects, indexes)
		f.Field, f.Message, f.clause = c.field(), c.message(), &c
	case len(f.Vulnerabilities) > 0:
		return f.withVulnerabilities(indexes)
	}
	return f
}

// withLocations returns f with only the locations at the given indexes. f must have locations.
func (f Finding) withLocations(indexes []int) Finding {
	f.Message = strings.TrimSuffix(f.Message, formatLocationCount(len(f.locations)))
	listed := len(f.Also) > 0
	f.locations, f.Also = selectItems(f.locations, indexes), nil
	if first := f.locations[0]; indexes[0] > 0 {
		f.Object, f.Field, f.Container, f.Place, f.Link = first.Object, first.Field, first.Container, first.Place, ""
		f.was, f.is = first.was, first.is
	}
	for _, s := range f.locations[1:] {
		if listed {
			f.Also = append(f.Also, s.Field)
		}
	}
	if len(f.locations) > 1 && !listed {
		f.Message += formatLocationCount(len(f.locations))
	}
	return f
}

// withVulnerabilities returns f with only the vulnerabilities at the given indexes. f must have
// several vulnerabilities.
func (f Finding) withVulnerabilities(indexes []int) Finding {
	counts := map[string]int{}
	if indexes[len(indexes)-1] == len(f.Vulnerabilities) { // the last part is the unlisted vulnerabilities
		indexes = indexes[:len(indexes)-1]
		for severity, n := range f.Counts {
			counts[severity] = n
		}
		for _, v := range f.Vulnerabilities {
			counts[v.Severity]--
		}
	}
	f.Vulnerabilities = selectItems(f.Vulnerabilities, indexes)
	for _, v := range f.Vulnerabilities {
		counts[v.Severity]++
	}
	f.Counts = counts
	f.Message = f.summary(f.Rule)
	return f
}

// selectItems returns the items of list with the given indexes.
func selectItems[T any](list []T, indexes []int) []T {
	out := make([]T, len(indexes))
	for i, at := range indexes {
		out[i] = list[at]
	}
	return out
}

// waiverSet applies waivers and records their use.
type waiverSet struct {
	waivers  []diag.Waiver
	used     []bool // whether a waiver selects anything, even if it has expired
	clusters []string
	today    string
}

// waive splits a finding. It returns findings with the parts that a waiver selects and its reason,
// followed by findings with the remaining parts. rule is the rule of the finding, or the user-defined
// rule that refuses it.
func (w *waiverSet) waive(f Finding, rule string) []Finding {
	candidates := w.candidates(rule, f.Operator)
	if len(candidates) == 0 {
		return []Finding{f}
	}
	clusters := f.Clusters
	if clusters == nil {
		clusters = w.clusters
	}
	if len(clusters) == 0 {
		clusters = []string{""}
	}
	shares := w.shares(f, rule, clusters, candidates)
	var out []Finding
	for _, s := range shares {
		g := f.withParts(s.parts)
		if len(s.clusters) < len(clusters) {
			g.Clusters = s.clusters
		}
		if s.waiver < len(w.waivers) {
			g.Waiver = w.waivers[s.waiver].Reason
		}
		out = append(out, g)
	}
	return out
}

// candidates returns the indexes of the waivers that match rule and operator.
func (w *waiverSet) candidates(rule, operator string) []int {
	var out []int
	for i, v := range w.waivers {
		if diag.Matches(v.Rule, rule) && (v.Operator == "" || diag.Matches(v.Operator, operator)) {
			out = append(out, i)
		}
	}
	return out
}

// share is a set of parts of a finding in some clusters, with the index of the first waiver that
// selects them. The index is len(waivers) if there is none.
type share struct {
	waiver   int
	parts    []int
	clusters []string
}

// shares groups the parts and clusters of a finding by waiver. candidates are the indexes of the
// waivers to apply.
func (w *waiverSet) shares(f Finding, rule string, clusters []string, candidates []int) []share {
	parts := f.parts()
	var out []share
	for _, cluster := range clusters {
		byWaiver := map[int][]int{}
		for i, p := range parts {
			s := diag.Subject{
				Rule: rule, Operator: f.Operator, Objects: []string{p.Object.String()}, Field: p.Field, Container: p.Container,
				Vulnerabilities: p.Vulnerabilities, Cluster: cluster,
			}
			first := len(w.waivers)
			for _, at := range candidates {
				if v := w.waivers[at]; v.Selects(s) {
					w.used[at] = true
					if !v.Expired(w.today) {
						first = min(first, at)
					}
				}
			}
			byWaiver[first] = append(byWaiver[first], i)
		}
		for at, which := range byWaiver {
			i := slices.IndexFunc(out, func(s share) bool { return s.waiver == at && slices.Equal(s.parts, which) })
			if i < 0 {
				i, out = len(out), append(out, share{waiver: at, parts: which})
			}
			out[i].clusters = append(out[i].clusters, cluster)
		}
	}
	slices.SortFunc(out, func(a, b share) int { return cmp.Or(cmp.Compare(a.waiver, b.waiver), slices.Compare(a.parts, b.parts)) })
	return out
}
