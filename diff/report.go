package diff

import (
	"cmp"
	"slices"
	"strings"
)

// SchemaVersion identifies the format of the JSON report.
const SchemaVersion = "quayside.dev/diff/v1alpha1"

// Report is the result of a comparison. All lists are sorted.
type Report struct {
	Before    string           // name of the state before
	After     string           // name of the state after
	Clusters  []string         // compared clusters, before and after, sorted; nil if none has a name
	Operators []OperatorReport // with changes or findings; the worst findings first, then by clusters and name, which may be empty
	Findings  []Finding        // worst first, then by operator, rule, object, field
	Removals  []Removal        // uninstall plans, by operator
	Notes     []string         // skipped checks, with reasons
	Verdict   *PolicyResult    // of the policy; nil before Judge
	Reading   []Reading        // reading lists, by operator; nil if not requested

	scanned    bool // scan results were compared
	onlyPolicy bool // all findings are about the policy and trust, which change alone
}

// OperatorReport is one operator in a report.
type OperatorReport struct {
	Name    string `json:"name"`           // "namespace/package"; empty for objects that belong to no pin
	From    string `json:"from,omitempty"` // version before; empty if it was not installed
	To      string `json:"to,omitempty"`   // version after; empty if it is removed
	Added   []Ref  `json:"added,omitempty"`
	Changed []Ref  `json:"changed,omitempty"`
	Removed []Ref  `json:"removed,omitempty"`

	Clusters []string `json:"clusters,omitempty"` // with this change; nil: all
}

// Empty reports whether nothing differs.
func (r *Report) Empty() bool { return len(r.Operators) == 0 && len(r.Findings) == 0 }

// Count returns the number of findings of a severity without a waiver.
func (r *Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s && f.Waiver == "" {
			n++
		}
	}
	return n
}

// of returns the findings about the operator, in order.
func (o OperatorReport) of(findings []Finding) []Finding {
	var out []Finding
	for _, f := range findings {
		if f.Operator == o.Name && slices.Equal(f.Clusters, o.Clusters) {
			out = append(out, f)
		}
	}
	return out
}

func (c *comparison) report() *Report {
	slices.Sort(c.notes)
	if skipped := c.after.Skipped; len(skipped) > 0 {
		c.note("not compared, because they are not valid YAML: %s", strings.Join(skipped[:min(len(skipped), 5)], ", "))
	}
	r := &Report{
		Before: c.before.Name, After: c.after.Name,
		Operators: c.operators(), Findings: c.found, Removals: planRemovals(c.before, c.after), Notes: c.notes,
		scanned: c.opt.Scans != nil,
	}
	r.rank()
	return r
}

// rank sorts the operators: those with the worst findings first, without the waived, then
// by clusters and name. Objects without an operator come after the others.
func (r *Report) rank() {
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

// foldFindings sorts the findings, removes duplicates and joins equal CRD findings about
// several fields of one object: a schema that is used in thirty places is one change.
// Findings worse than low are joined only if the fields have the same name.
func foldFindings(found []Finding) []Finding {
	type same struct {
		rule, operator, before, after, message, leaf string
		severity                                     Severity
		object                                       Ref
	}
	slices.SortStableFunc(found, compareFindings)
	first := map[same]int{}
	var out []Finding
	for _, f := range found {
		k := same{f.Rule, f.Operator, f.Before, f.After, f.Message, "", f.Severity, f.Object}
		if f.Severity > Low {
			k.leaf = f.Field[strings.LastIndexByte(f.Field, '.')+1:]
		}
		i, seen := first[k]
		switch {
		case !seen || f.Family() != "crd":
			first[k] = len(out)
			if seen && compareFindings(out[i], f) == 0 {
				continue
			}
			out = append(out, f)
		case out[i].Field != f.Field:
			if out[i].spots == nil {
				out[i].spots = []spot{out[i].spot()}
			}
			out[i].Also, out[i].spots = append(out[i].Also, f.Field), append(out[i].spots, f.spot())
		}
	}
	return out
}

func (c *comparison) operators() []OperatorReport {
	all := map[string]*OperatorReport{}
	of := func(name string) *OperatorReport {
		if all[name] == nil {
			all[name] = &OperatorReport{Name: name}
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
		op, ref := of(p.object().Operator), p.object().Ref()
		switch {
		case p.both():
			op.Changed = append(op.Changed, ref)
		case p.after != nil:
			op.Added = append(op.Added, ref)
		default:
			op.Removed = append(op.Removed, ref)
		}
	}
	for _, f := range c.found {
		of(f.Operator)
	}
	out := make([]OperatorReport, 0, len(all))
	for _, name := range names(all) {
		out = append(out, *all[name])
	}
	return out
}

func lastIfEmpty(s string) string {
	if s == "" {
		return "\uffff"
	}
	return s
}
