package diff

import (
	"cmp"
	"slices"
	"strings"
)

// SchemaVersion names the form of the JSON report.
const SchemaVersion = "quayside.dev/diff/v1alpha1"

// Report is the outcome of a comparison. All lists are sorted.
type Report struct {
	Before    string     // name of the state before
	After     string     // name of the state after
	Clusters  []string   // whose states were compared, before and after, sorted; nil where none has a name
	Operators []Operator // those that something happened to, those with the worst findings first, then by clusters and name; one may have no name
	Findings  []Finding  // worst first, then by operator, rule, object, field
	Removals  []Removal  // what to do for each operator that goes
	Notes     []string   // what was not checked, and why
	Verdict   *Verdict   // the policy's answer; nil before Judge
	Reading   []Reading  // what there is to read, by operator; nil where nobody asked

	scanned bool // what scanners found was compared
}

// Operator is one operator in a report.
type Operator struct {
	Name    string `json:"name"`           // "namespace/package"; empty for objects that no pin owns
	From    string `json:"from,omitempty"` // version before; empty where it was not installed
	To      string `json:"to,omitempty"`   // version after; empty where it goes
	Added   []Ref  `json:"added,omitempty"`
	Changed []Ref  `json:"changed,omitempty"`
	Removed []Ref  `json:"removed,omitempty"`

	Clusters []string `json:"clusters,omitempty"` // that it happens in; nil: all
}

// Empty reports whether nothing differs.
func (r *Report) Empty() bool { return len(r.Operators) == 0 && len(r.Findings) == 0 }

// Count returns the findings of one severity that no waiver covers.
func (r *Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s && f.Waiver == "" {
			n++
		}
	}
	return n
}

// of returns those of the findings that are about the operator, in order.
func (o Operator) of(findings []Finding) []Finding {
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
		c.note("not looked into, because they do not parse as YAML: %s", strings.Join(skipped[:min(len(skipped), 5)], ", "))
	}
	r := &Report{
		Before: c.before.Name, After: c.after.Name,
		Operators: c.operators(), Findings: c.found, Removals: planRemovals(c.before, c.after), Notes: c.notes,
		scanned: c.opt.Scans != nil,
	}
	r.rank()
	return r
}

// rank puts the operators with the worst findings first, not counting what is
// waived, then sorts by clusters and name, with what belongs to no operator last.
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
	slices.SortStableFunc(r.Operators, func(a, b Operator) int {
		return cmp.Or(cmp.Compare(worst[key(b.Name, b.Clusters)], worst[key(a.Name, a.Clusters)]),
			slices.Compare(a.Clusters, b.Clusters), strings.Compare(lastIfEmpty(a.Name), lastIfEmpty(b.Name)))
	})
}

// fold returns the findings sorted, those of one object that say the same of
// several fields as one: a schema that is used in thirty places is one change.
// What is worse than low is folded only where the fields have one name.
func fold(found []Finding) []Finding {
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

func (c *comparison) operators() []Operator {
	all := map[string]*Operator{}
	of := func(name string) *Operator {
		if all[name] == nil {
			all[name] = &Operator{Name: name}
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
	out := make([]Operator, 0, len(all))
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
