package diff

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/scan"
	"github.com/quayside/quayside/lockfile"
)

// CompareOptions configures a comparison. The zero value reports all findings with the default
// severities of [Rules].
type CompareOptions struct {
	Severity map[string]Severity // overrides by rule ID; Off disables the rule
	// BaseSeverity contains the overrides of the state before. If it is not nil, the higher
	// severity of both applies.
	BaseSeverity     map[string]Severity
	Settings         []Finding // findings about loosened settings; their severity is an upper limit for that of the rule
	PolicyOnlyChange bool      // settings, locks and trees differ only in the policy and trust settings

	Mirrors []string      // prefixes of mirrored images, such as "quay.io/org"; nil skips the check
	Today   string        // day for the check of support, such as "2027-01-31"; empty skips the check
	Scans   *scan.Results // scan results of images; nil skips the check
	// Lifecycle returns the support periods of a pin's version, or nil if they are unknown. If
	// Lifecycle is nil, the check is skipped.
	Lifecycle func(lockfile.Pin) *catalog.SupportedVersion

	Stored map[string][]string // API versions in which clusters store objects, by CRD name; a missing CRD is unknown
}

// comparison is the state of one call of Compare.
type comparison struct {
	before, after *view
	opt           CompareOptions
	rules         map[string]Rule
	changed       []pair
	claimed       map[k8s.Key][][]step // by object: the paths of fields that findings explain
	found         []Finding
	lowFindings   int // number of findings below medium severity
	notes         []string
}

// Compare reports the changes from before to after. It ignores the order of objects, pins and
// resources. It returns an error for an invalid state or an unknown rule in opt.Severity.
func Compare(before, after State, opt CompareOptions) (*Report, error) {
	rules := rulesByID()
	for _, id := range sortedKeys(opt.Severity) {
		if _, ok := rules[id]; !ok {
			return nil, fmt.Errorf("unknown rule %q", id)
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
		for _, check := range f.checks {
			check(c)
		}
	}
	c.found = foldFindings(c.found)
	locateFindings(c.found)
	return c.report(), nil
}

// add records a finding about an object with the severity of its rule, limited by capped. Overrides
// in the options take precedence over the limit.
func (c *comparison) add(rule string, about *Object, f Finding, capped ...Severity) {
	r, ok := c.rules[rule]
	if !ok {
		panic("diff: no rule " + rule)
	}
	f.Rule, f.Severity = rule, r.Severity
	for _, limit := range capped {
		f.Severity = min(f.Severity, limit)
	}
	base := f.Severity
	if s, ok := c.opt.BaseSeverity[rule]; ok {
		base = s
	}
	if s, ok := c.opt.Severity[rule]; ok {
		f.Severity = s
	}
	if c.opt.BaseSeverity != nil {
		f.Severity = max(f.Severity, base)
	}
	if f.where == nil {
		f.where = about
	}
	c.claim(f) // also if the rule is off: its fields must not be reported by other rules
	if f.Severity == Off {
		return
	}
	if f.Why == "" {
		f.Why = r.Why
	}
	if about != nil {
		f.Object = about.Ref()
		f.Operator = cmp.Or(f.Operator, about.Operator)
		f.Place.Path, f.Place.Removed = f.where.Path, c.isBefore(f.where)
		f.was, f.is = c.before.byKey[about.Key()], c.after.byKey[about.Key()]
		if f.was == nil && f.is == nil {
			f.is = about // an object of State.Resources
		}
	}
	for i, s := range f.locations {
		if s.where != nil {
			f.locations[i].was, f.locations[i].is = c.before.byKey[s.where.Key()], c.after.byKey[s.where.Key()]
		}
	}
	if f.Severity < Medium {
		if c.lowFindings++; c.lowFindings > maxFindings {
			c.note("only the first %d findings of low and info severity are listed", maxFindings)
			return
		}
	}
	f.Before, f.After = sanitize.Truncate(f.Before, maxValue), sanitize.Truncate(f.After, maxValue)
	c.found = append(c.found, f)
}

// maxFindings limits the findings below medium severity, because the compared states may be
// untrusted. More severe findings are not limited, but an object has at most maxChanges.
const maxFindings = 50_000

// maxValue is the maximum length of Finding.Before and After in bytes.
const maxValue = 4000

// isBefore reports whether o is an object of the state before.
func (c *comparison) isBefore(o *Object) bool { return c.before.byKey[o.Key()] == o }

// note records a reason why a check was skipped. Repeated notes are ignored.
func (c *comparison) note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	if !slices.Contains(c.notes, n) {
		c.notes = append(c.notes, n)
	}
}

// each calls f for every changed, added or removed object of the given kinds.
func (c *comparison) each(f func(pair), kinds ...string) {
	for _, p := range c.changed {
		if p.object().Key().Is(kinds...) {
			f(p)
		}
	}
}

// hasOperator reports whether the state contains a pin or an object of an operator.
func (v *view) hasOperator(operator string) bool {
	if _, ok := v.pin(operator); ok {
		return true
	}
	return slices.ContainsFunc(v.order, func(o *Object) bool { return o.Operator == operator })
}

// pluralize formats a number with the singular or plural of a noun.
func pluralize(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
