package diff

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/scan"
	"github.com/quayside/quayside/lockfile"
)

// CompareOptions configures a comparison. With the zero value, all findings have the default
// severities of [Rules], and optional checks are skipped.
type CompareOptions struct {
	Severity map[string]Severity // severity by rule ID, instead of the default; Off disables the rule
	// BaseSeverity is Severity as configured in the old state. If it is not nil, the higher of both severities
	// applies, so that a branch cannot hide its own findings.
	BaseSeverity map[string]Severity
	// Settings are findings of the rules settings.* and state.*. The severity of such a finding, unless it is
	// zero, is an upper limit for the default severity of its rule.
	Settings         []Finding
	PolicyOnlyChange bool // nothing but the policy and trust settings differs

	Mirrors []string      // name prefixes of images that the mirror contains, such as "quay.io/org"; nil skips the check
	Today   string        // current day for the check of support periods, such as "2027-01-31"; empty skips the check
	Scans   *scan.Results // scan results of images; nil skips the check
	// Lifecycle returns the support periods of a pin's version, or nil if they are unknown. If
	// Lifecycle is nil, the check is skipped.
	Lifecycle func(lockfile.Pin) *catalog.SupportedVersion

	Stored map[string][]string // observed status.storedVersions by CRD name; unknown for a missing CRD

	// RolledBack lists the operators ("namespace/package") for which this change restores an earlier pin, and
	// the dependencies that only the newer pin required. The severity of their findings is at most medium. Only
	// critical rules are exempt: these report lost data and objects that cannot be applied.
	RolledBack []string
}

// comparison is the state of one call of Compare.
type comparison struct {
	before, after *view
	opt           CompareOptions
	rules         map[string]RuleInfo
	powers        []power
	powerIndex    map[k8s.Key]int // index of powers by group and kind; -1 for kinds without a row
	types         *admit.Types
	changed       []pair
	accounts      map[k8s.Subject][]string // owners of ServiceAccounts; see accountOwners
	references    map[k8s.Key]string       // see referencesOf
	claimed       claims
	found         []Finding
	lowFindings   int // number of findings below medium severity
	notes         []string
}

// Compare reports the changes from before to after and their risks. The order of objects, pins and
// resources does not matter. It returns an error for an invalid state and for an unknown rule ID in
// the options.
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
	types := admit.NewTypes()
	c := &comparison{
		before: old, after: now, opt: opt, rules: rules, types: types, powers: powers(), powerIndex: map[k8s.Key]int{},
		changed: normalPairs(old, now, types), claimed: claims{},
	}
	for _, f := range ruleFamilies() {
		for _, check := range f.checks {
			check(c)
		}
	}
	c.addRollbackLosses()
	c.found = foldFindings(c.found)
	locateFindings(c.found)
	return c.report(), nil
}

// add records a finding about an object. The finding has the configured severity of the rule. If none is
// configured, it has the default severity, but at most the lowest severity in capped.
func (c *comparison) add(rule string, about *Object, f Finding, capped ...Severity) {
	r, ok := c.rules[rule]
	if !ok {
		panic("diff: no rule " + rule)
	}
	if about != nil {
		f.Operator = cmp.Or(f.Operator, about.Operator)
	}
	if r.Severity < Critical && slices.Contains(c.opt.RolledBack, f.Operator) {
		capped = append(capped, Medium)
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
	c.claimed.addFinding(f) // even if the rule is off: other rules must not report its fields
	if f.Severity == Off {
		return
	}
	if f.Why == "" {
		f.Why = r.Why
	}
	if about != nil {
		f.Object = about.Ref()
		f.Place.Path, f.Place.Removed = f.where.Path, c.isBefore(f.where)
		if f.objects = c.pairOf(about.Key()); f.objects == (pair{}) {
			f.objects.after = about // about is the user's own object, in State.Resources
		}
	}
	all := f.locations()
	for i, l := range all {
		if l.where != nil {
			all[i].objects = c.pairOf(l.where.Key())
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

// maxFindings is the maximum number of findings below medium severity. It exists because the compared states
// may be untrusted. More severe findings are limited only by maxChanges for each object.
const maxFindings = 50_000

// maxValue is the maximum length of Finding.Before and After in bytes: the size limit of an object in a
// cluster.
const maxValue = 1 << 20

// pairOf returns the rendered object with this key before and after the change.
func (c *comparison) pairOf(key k8s.Key) pair { return pair{c.before.byKey[key], c.after.byKey[key]} }

// isBefore reports whether o is a rendered object of the old state.
func (c *comparison) isBefore(o *Object) bool { return c.before.byKey[o.Key()] == o }

// note records why a check was skipped. Each text is recorded once.
func (c *comparison) note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	if !slices.Contains(c.notes, n) {
		c.notes = append(c.notes, n)
	}
}

// each calls f for every added, changed or removed object of the given kinds.
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

// pluralize returns n and a noun as text: the noun one if n is 1, otherwise the noun many.
func pluralize(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// claims records the changed fields that findings already cover, by object. compareObjects, which
// runs last, does not report these fields again. A finding "explains" the fields that it covers.
type claims map[k8s.Key][]fieldPath

// wholeObject returns the value of Finding.explains for a finding that covers all fields of its
// object.
func wholeObject() []fieldPath { return []fieldPath{{}} }

// noField returns the value of Finding.explains for a finding that covers none of the changed
// fields.
func noField() []fieldPath { return []fieldPath{} }

// add records fields of an object as covered.
func (c claims) add(object k8s.Key, fields ...fieldPath) {
	c[object] = append(c[object], fields...)
}

// addFinding records the fields that a finding covers, at all of its locations.
func (c claims) addFinding(f Finding) {
	for _, l := range append([]Finding{f}, f.locations()...) {
		switch {
		case l.where == nil:
		case l.explains == nil && len(l.path) > 0:
			c.add(l.where.Key(), l.path)
		default:
			c.add(l.where.Key(), l.explains...)
		}
	}
}

// cover reports whether a finding already covers the field at path in an object. An empty path
// means the whole object.
func (c claims) cover(o *Object, path fieldPath) bool {
	return slices.ContainsFunc(c[o.Key()], path.isIn)
}
