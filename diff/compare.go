package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog/lifecycle"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/scan"
	"github.com/quayside/quayside/lockfile"
)

// Options tune a comparison. The zero value reports everything with the
// severities of [Rules].
type Options struct {
	Severity map[string]Severity // by rule ID; Off silences it
	Mirrors  []string            // image prefixes that the mirror serves: "quay.io/org"; nil leaves the check out
	Today    string              // "2027-01-31": what is supported on that day; empty leaves the check out
	Scans    *scan.Results       // what scanners found in images; nil leaves the check out
	// Lifecycle returns what the catalog of a pin states about the support of its version;
	// nil where it states nothing, or is not known. A nil Lifecycle leaves the check out.
	Lifecycle func(lockfile.Pin) *lifecycle.Version

	Stored map[string][]string // by name of a definition: the versions that clusters store its objects in; one that is absent is not known
}

// comparison is one run of Compare.
type comparison struct {
	before, after *view
	opt           Options
	rules         map[string]Rule
	changed       []pair
	found         []Finding
	notes         []string
}

// check looks at a comparison and adds findings.
type check func(*comparison)

func checks() []check {
	return []check{
		compareCRDs, compareResources, comparePermissions, compareImages, compareWebhooks, compareAPIs,
		comparePods, compareSecurityLevels, compareNamespaces, comparePriorities, compareDeletions, compareImmutable, compareUpgrades, compareLeftovers, compareLifecycles, compareScans, compareObjects,
	}
}

// Compare reports what the step from before to after changes. The order of
// objects, pins and resources does not matter. An error names the state that
// is broken.
func Compare(before, after State, opt Options) (*Report, error) {
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
	c := &comparison{before: old, after: now, opt: opt, rules: rules, changed: pairs(old, now)}
	for _, run := range checks() {
		run(c)
	}
	c.found = fold(c.found)
	locate(c.found)
	return c.report(), nil
}

// add records a finding of a rule about the object, with the severity that the
// rule has; capped lowers it.
func (c *comparison) add(rule string, about *Object, f Finding, capped ...Severity) {
	r, ok := c.rules[rule]
	if !ok {
		panic("diff: no rule " + rule)
	}
	f.Rule, f.Severity = rule, r.Severity
	for _, most := range capped {
		f.Severity = min(f.Severity, most)
	}
	if s, tuned := c.opt.Severity[rule]; tuned {
		f.Severity = s
	}
	if f.Severity == Off {
		return
	}
	if f.Why == "" {
		f.Why = r.Why
	}
	if about != nil {
		f.Object = about.Ref()
		f.Operator = cmp.Or(f.Operator, about.Operator)
		if f.where == nil {
			f.where = about
		}
		f.Place.Path, f.Place.Removed = f.where.Path, c.gone(f.where)
	}
	if len(c.found) >= maxFindings {
		c.note("only the first %d findings are listed", maxFindings)
		return
	}
	f.Before, f.After = inert.Cut(f.Before, maxValue), inert.Cut(f.After, maxValue)
	c.found = append(c.found, f)
}

// maxFindings bounds a report: what is compared may come from a stranger.
const maxFindings = 50_000

// maxValue bounds Before and After in bytes.
const maxValue = 4000

// gone reports whether o stands in the state before and no longer after.
func (c *comparison) gone(o *Object) bool { return c.before.byKey[o.Ref().key()] == o }

// note says once that something was not checked, and why.
func (c *comparison) note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	if !slices.Contains(c.notes, n) {
		c.notes = append(c.notes, n)
	}
}

// each calls f for every changed, added or removed object of these kinds.
func (c *comparison) each(f func(pair), kinds ...string) {
	for _, p := range c.changed {
		if p.object().Ref().is(kinds...) {
			f(p)
		}
	}
}

// hasOperator reports whether the state before already held the operator.
func (v *view) hasOperator(operator string) bool {
	if _, ok := v.pin(operator); ok {
		return true
	}
	return slices.ContainsFunc(v.order, func(o *Object) bool { return o.Operator == operator })
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// some joins at most n of list and counts the rest.
func some(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:n], ", "), len(list)-n)
}
