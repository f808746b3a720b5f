package diff

import (
	"cmp"
	"slices"
	"strings"
)

// schemaVersion identifies the format of the JSON report.
const schemaVersion = "quayside.dev/diff/v1alpha1"

// Report is the result of a comparison. All lists are sorted.
type Report struct {
	Before    string           // name of the state before
	After     string           // name of the state after
	Clusters  []string         // names of the compared clusters, sorted; nil if the workspace has no clusters
	Operators []OperatorReport // operators with changes or findings, sorted by highest severity, clusters and name
	Findings  []Finding        // highest severity first, then by operator, rule, object and field
	Removals  []Removal        // uninstall plans, sorted by operator
	Notes     []string         // skipped checks, with the reason
	Verdict   *PolicyResult    // result of the policy; nil before Judge
	Reading   []Reading        // reading lists, sorted by operator; nil if not requested

	resources  map[Ref]ResourceChange // by object, before Join
	scanned    bool                   // whether scan results were compared
	onlyPolicy bool                   // nothing but the policy and trust settings changes
}

// OperatorReport is the part of a report about one operator.
type OperatorReport struct {
	Name    string `json:"name"`           // "namespace/package"; empty for objects that belong to no operator
	From    string `json:"from,omitempty"` // version before; empty if it was not installed
	To      string `json:"to,omitempty"`   // version after; empty if it is removed
	Added   []Ref  `json:"added,omitempty"`
	Changed []Ref  `json:"changed,omitempty"`
	Removed []Ref  `json:"removed,omitempty"`

	Clusters []string `json:"clusters,omitempty"` // clusters with this change; nil means all

	Resources ResourceChange `json:"resources,omitzero" doc:"change of what its pods request in each cluster"`
}

// Empty reports whether the two states do not differ.
func (r *Report) Empty() bool { return len(r.Operators) == 0 && len(r.Findings) == 0 }

// Count returns the number of findings of a severity, without waived ones.
func (r *Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s && f.Waiver == "" {
			n++
		}
	}
	return n
}

// findingsOf returns, in order, the findings that have the same operator and clusters as o.
func (o OperatorReport) findingsOf(findings []Finding) []Finding {
	var out []Finding
	for _, f := range findings {
		if f.Operator == o.Name && slices.Equal(f.Clusters, o.Clusters) {
			out = append(out, f)
		}
	}
	return out
}

// report returns the collected findings, operators and uninstall plans as a report.
func (c *comparison) report() *Report {
	slices.Sort(c.notes)
	if skipped := c.after.Skipped; len(skipped) > 0 {
		c.note("invalid YAML files were not compared: %s", strings.Join(skipped[:min(len(skipped), 5)], ", "))
	}
	r := &Report{
		Before: c.before.Name, After: c.after.Name,
		Operators: c.operatorReports(), Findings: c.found, Removals: planRemovals(c.before, c.after), Notes: c.notes,
		scanned: c.opt.Scans != nil, resources: map[Ref]ResourceChange{},
	}
	for _, p := range c.changed {
		r.resources[p.object().Ref()] = p.resourceChange()
	}
	r.sortOperators()
	return r
}

// sortOperators sorts the operators by the highest severity of their findings that are not waived,
// then by clusters and name. Objects without an operator come last.
func (r *Report) sortOperators() {
	worst := map[string]Severity{}
	key := func(operator string, clusters []string) string {
		return operator + "\x00" + strings.Join(clusters, ",")
	}
	for _, f := range r.Findings {
		if k := key(f.Operator, f.Clusters); f.Waiver == "" {
			worst[k] = max(worst[k], f.Severity)
		}
	}
	slices.SortStableFunc(r.Operators, func(a, b OperatorReport) int {
		return cmp.Or(cmp.Compare(worst[key(b.Name, b.Clusters)], worst[key(a.Name, a.Clusters)]),
			slices.Compare(a.Clusters, b.Clusters), strings.Compare(lastIfEmpty(a.Name), lastIfEmpty(b.Name)))
	})
}

// foldFindings sorts the findings and removes duplicates. It combines findings about the same
// change of several fields of a CRD, because one schema is often used for many fields. Findings
// above low severity are combined only if the fields have the same name.
func foldFindings(found []Finding) []Finding {
	type groupKey struct {
		rule, operator, before, after, message, leaf string
		severity                                     Severity
		object                                       Ref
	}
	slices.SortStableFunc(found, compareFindings)
	first := map[groupKey]int{}
	var out []Finding
	for _, f := range found {
		k := groupKey{f.Rule, f.Operator, f.Before, f.After, f.Message, "", f.Severity, f.Object}
		if f.Severity > Low {
			k.leaf = f.Field[strings.LastIndexByte(f.Field, '.')+1:]
		}
		i, seen := first[k]
		switch {
		case !seen || f.family() != "crd":
			first[k] = len(out)
			if seen && compareFindings(out[i], f) == 0 {
				continue
			}
			out = append(out, f)
		case out[i].Field != f.Field:
			r, folded := out[i].detail.(repeats)
			if !folded {
				r = repeats{[]Finding{out[i]}, true}
			}
			r.locations = append(r.locations, f)
			out[i].detail = r
		}
	}
	return out
}

// operatorReports returns the changed objects by operator. It includes operators that only have
// findings.
func (c *comparison) operatorReports() []OperatorReport {
	all := map[string]*OperatorReport{}
	from, to := c.before.versions, c.after.versions
	get := func(name string) *OperatorReport {
		if all[name] == nil {
			all[name] = &OperatorReport{Name: name, From: from[name], To: to[name]}
			if p, ok := c.before.pin(name); ok {
				all[name].From = p.VersionText()
			}
			if p, ok := c.after.pin(name); ok {
				all[name].To = p.VersionText()
			}
		}
		return all[name]
	}
	for _, p := range c.changed {
		op, ref := get(p.object().Operator), p.object().Ref()
		op.Resources = op.Resources.plus(p.resourceChange(), 1)
		switch {
		case p.onBothSides():
			op.Changed = append(op.Changed, ref)
		case p.after != nil:
			op.Added = append(op.Added, ref)
		default:
			op.Removed = append(op.Removed, ref)
		}
	}
	for _, f := range c.found {
		get(f.Operator)
	}
	out := make([]OperatorReport, 0, len(all))
	for _, name := range sortedKeys(all) {
		out = append(out, *all[name])
	}
	return out
}

// lastIfEmpty returns a sort key for a name that puts the empty name last.
func lastIfEmpty(s string) string {
	if s == "" {
		return "\uffff"
	}
	return s
}

// Worst returns the most severe finding without a waiver, and whether there is one.
func (r *Report) Worst() (Finding, bool) {
	var out Finding
	found := false
	for _, f := range r.Findings {
		if f.Waiver == "" && (!found || f.Severity > out.Severity) {
			out, found = f, true
		}
	}
	return out, found
}

// Mergeable reports whether the change may be merged without a review: the policy accepts it, and no
// finding without a waiver is more severe than limit.
func (r *Report) Mergeable(limit Severity) bool {
	worst, found := r.Worst()
	return (r.Verdict == nil || !r.Verdict.Fail) && (!found || worst.Severity <= limit)
}
