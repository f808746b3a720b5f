package diff

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quayside/quayside/internal/base/inert"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/model"
	"github.com/quayside/quayside/internal/scan"
	"github.com/quayside/quayside/lockfile"
)

// CompareOptions configure a comparison. The zero value reports all findings with the severities
// of [Rules].
type CompareOptions struct {
	Severity map[string]Severity // by rule ID; Off disables the rule
	// BaseSeverity is Severity on the side before: of two, the worse counts. nil: only Severity counts.
	BaseSeverity map[string]Severity
	Settings     []Finding // about settings that are loosened; a severity caps that of the rule
	OnlyPolicy   bool      // settings, locks and trees differ in nothing but the policy and trust

	Mirrors []string      // prefixes of mirrored images: "quay.io/org"; nil skips the check
	Today   string        // "2027-01-31", the day to check support for; empty skips the check
	Scans   *scan.Results // scan results of images; nil skips the check
	// Lifecycle returns the lifecycle of a pin's version from its catalog; nil if the catalog
	// states none or is unknown. A nil Lifecycle skips the check.
	Lifecycle func(lockfile.Pin) *model.SupportedVersion

	Stored map[string][]string // by CRD name: the versions in which clusters store objects; missing: unknown
}

// comparison is one run of Compare.
type comparison struct {
	before, after *view
	opt           CompareOptions
	rules         map[string]Rule
	changed       []pair
	claimed       map[k8s.Key][][]step // by object: the fields that findings explain
	found         []Finding
	mild          int // findings below medium severity
	notes         []string
}

// Compare reports the changes from before to after. The order of objects, pins and
// resources does not matter. An error names the invalid state.
func Compare(before, after State, opt CompareOptions) (*Report, error) {
	rules := rulesByID()
	for _, id := range names(opt.Severity) {
		if _, ok := rules[id]; !ok {
			return nil, fmt.Errorf("no rule %q", id)
		}
	}
	old, err := newView(before)
	if err != nil {
		return nil, err
	}
	now, err := newView(after)
	if err != nil {
		return nil, err
	}
	c := &comparison{before: old, after: now, opt: opt, rules: rules, changed: pairObjects(old, now), claimed: map[k8s.Key][][]step{}}
	for _, f := range ruleFamilies() {
		for _, run := range f.checks {
			run(c)
		}
	}
	c.found = foldFindings(c.found)
	locateFindings(c.found)
	return c.report(), nil
}

// add records a finding about the object with the severity of its rule, at most capped.
func (c *comparison) add(rule string, about *Object, f Finding, capped ...Severity) {
	r, ok := c.rules[rule]
	if !ok {
		panic("diff: no rule " + rule)
	}
	f.Rule, f.Severity = rule, r.Severity
	for _, most := range capped {
		f.Severity = min(f.Severity, most)
	}
	base := f.Severity
	if s, tuned := c.opt.BaseSeverity[rule]; tuned {
		base = s
	}
	if s, tuned := c.opt.Severity[rule]; tuned {
		f.Severity = s
	}
	if c.opt.BaseSeverity != nil {
		f.Severity = max(f.Severity, base)
	}
	if f.where == nil {
		f.where = about
	}
	c.claim(f) // also of a rule that is off: the user does not want to read of its fields
	if f.Severity == Off {
		return
	}
	if f.Why == "" {
		f.Why = r.Why
	}
	if about != nil {
		f.Object = about.Ref()
		f.Operator = cmp.Or(f.Operator, about.Operator)
		f.Place.Path, f.Place.Removed = f.where.Path, c.gone(f.where)
		f.was, f.is = c.before.byKey[about.Key()], c.after.byKey[about.Key()]
		if f.was == nil && f.is == nil {
			f.is = about // the user's own object
		}
	}
	for i, s := range f.spots {
		if s.where != nil {
			f.spots[i].was, f.spots[i].is = c.before.byKey[s.where.Key()], c.after.byKey[s.where.Key()]
		}
	}
	if f.Severity < Medium {
		if c.mild++; c.mild > maxFindings {
			c.note("only the first %d findings of low and info severity are listed", maxFindings)
			return
		}
	}
	f.Before, f.After = inert.Cut(f.Before, maxValue), inert.Cut(f.After, maxValue)
	c.found = append(c.found, f)
}

// maxFindings limits the number of findings below medium severity in a report: the compared
// states may be untrusted. Others are all listed; an object has at most a thousand.
const maxFindings = 50_000

// maxValue limits Before and After, in bytes.
const maxValue = 4000

// gone reports whether o is an object of the state before.
func (c *comparison) gone(o *Object) bool { return c.before.byKey[o.Key()] == o }

// note records, once, that a check was skipped, and the reason.
func (c *comparison) note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	if !slices.Contains(c.notes, n) {
		c.notes = append(c.notes, n)
	}
}

// each calls f for every changed, added or removed object of the kinds.
func (c *comparison) each(f func(pair), kinds ...string) {
	for _, p := range c.changed {
		if p.object().Key().Is(kinds...) {
			f(p)
		}
	}
}

// hasOperator reports whether the state contains a pin or an object of the operator.
func (v *view) hasOperator(operator string) bool {
	if _, ok := v.pin(operator); ok {
		return true
	}
	return slices.ContainsFunc(v.order, func(o *Object) bool { return o.Operator == operator })
}

func pluralize(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
