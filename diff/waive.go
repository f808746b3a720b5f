package diff

import (
	"cmp"
	"slices"

	"github.com/quayside/quayside/internal/diag"
)

// part is the smallest part of a finding that a waiver can select, for one cluster.
type part struct {
	Object           Ref
	Field, Container string
	Vulnerabilities  []string // IDs and aliases
}

// parts splits a finding into its parts: single fields, permissions or vulnerabilities.
func (f Finding) parts() []part {
	whole := part{Object: f.Object, Field: f.Field, Container: f.Container}
	if f.detail == nil {
		return []part{whole}
	}
	return f.detail.parts(whole)
}

// withParts returns f reduced to some of its parts. indexes refer to the result of parts.
func (f Finding) withParts(indexes []int) Finding {
	if f.detail == nil || len(indexes) == len(f.parts()) {
		return f
	}
	return f.detail.selectParts(f, indexes)
}

// selectItems returns the items of list with the given indexes.
func selectItems[T any](list []T, indexes []int) []T {
	out := make([]T, len(indexes))
	for i, at := range indexes {
		out[i] = list[at]
	}
	return out
}

// waiverSet applies waivers and records which of them are used.
type waiverSet struct {
	waivers  []diag.Waiver
	used     []bool     // used[i]: waiver i matches a finding, even if the waiver has expired
	objects  [][]string // objects[i]: objects of findings with the rule and operator of waiver i, if it names an object
	clusters []string
	today    string
}

// waive splits a finding by the waivers that accept its parts. It returns the waived parts first, each with the
// reason of its waiver, then the remaining parts. rule is the rule of the finding, or the user-defined rule
// that refuses it. Only waivers that name this rule apply.
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

// candidates returns the indexes of the waivers for this rule and operator.
func (w *waiverSet) candidates(rule, operator string) []int {
	var out []int
	for i, v := range w.waivers {
		if diag.Matches(v.Rule, rule) && (v.Operator == "" || diag.Matches(v.Operator, operator)) {
			out = append(out, i)
		}
	}
	return out
}

// share is a set of parts of a finding in some clusters, with the index of the waiver that accepts
// them, or len(waivers) if none does.
type share struct {
	waiver   int
	parts    []int
	clusters []string
}

// shares groups the parts of a finding in all clusters by the first waiver that matches. candidates
// are the indexes of the waivers to try, in order.
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
				v := w.waivers[at]
				if v.Object != "" {
					w.objects[at] = append(w.objects[at], s.Objects...)
				}
				if v.Selects(s) {
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
