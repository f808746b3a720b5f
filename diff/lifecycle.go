package diff

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// soonDays is the maximum number of days until the end of support for which a version is reported. It leaves
// time to upgrade several environments.
const soonDays = 90

func lifecycleRules() []RuleInfo {
	return []RuleInfo{
		{"lifecycle.end-of-life", High, "version is end of life", "no fixes are released for this version"},
		{"lifecycle.ends-soon", Low, fmt.Sprintf("version reaches end of life within %d days", soonDays), "upgrade by that day"},
		{"lifecycle.platform", High, "version does not support this OpenShift", "the vendor does not list the OpenShift version in quayside.yaml as supported"},
		{"lifecycle.supported", Info, "supported again", "fixes are released in later versions of the same channel"},
	}
}

// compareLifecycles reports versions whose support ends, and versions that do not support the OpenShift
// version, according to the lifecycle documents of catalogs. It checks new and upgraded operators, and all
// operators if the OpenShift version changes. It ignores unchanged versions whose support ended in the
// meantime, and versions without a lifecycle document.
func compareLifecycles(c *comparison) {
	if c.opt.Lifecycle == nil {
		return
	}
	unchecked := 0
	for _, p := range sortedPins(c.after.Pins) {
		old, had := c.before.pin(p.Key())
		if !had && len(c.before.Pins) == 0 && len(c.before.order) > 0 {
			continue // the state has no lock
		}
		isUpgraded := !had || old.Version != p.Version
		if !isUpgraded && c.before.OpenShiftVersion == c.after.OpenShiftVersion {
			continue
		}
		d := lifecycleDiff{pinDiff: pinDiff{c, old, p}, now: c.opt.Lifecycle(p)}
		if d.now == nil {
			continue
		}
		if had {
			d.old = c.opt.Lifecycle(old)
		}
		d.compareSupport()
		if versions, _ := d.now.SupportsPlatform(catalog.OpenShift, ""); len(versions) == 0 {
			continue
		}
		if c.after.OpenShiftVersion != "" {
			d.comparePlatform()
		} else if isUpgraded {
			unchecked++
		}
	}
	if unchecked > 0 {
		c.note("support for the OpenShift version was not checked for %s: openshiftVersion is not set", pluralize(unchecked, "operator is", "operators are"))
	}
}

// lifecycleDiff compares the support periods of an operator before and after the change. old is nil if they are
// unknown.
type lifecycleDiff struct {
	pinDiff
	old, now *catalog.SupportedVersion
}

// compareSupport reports that support has ended, ends soon, or has been restored. If the previous
// version was unsupported, too, the severity is lower, because a stepwise upgrade may pass through
// unsupported versions.
func (d lifecycleDiff) compareSupport() {
	was, is := d.old.SupportOn(d.c.opt.Today), d.now.SupportOn(d.c.opt.Today)
	if is == nil || d.pinDiff.old.Version == d.pinDiff.now.Version && was != nil && *was == *is {
		return
	}
	f := Finding{Field: "support", Before: was.String(), After: is.String()}
	ended := was != nil && was.State == catalog.Ended
	operator := d.pinDiff.now.Package + " " + d.now.Name
	switch {
	case is.State == catalog.Ended:
		f.Message = fmt.Sprintf("support of %s ended on %s", operator, is.Until)
		limit := High
		if ended {
			limit = Medium
			f.Message += fmt.Sprintf("; support of %s had ended before", d.old.Name)
		}
		d.add("lifecycle.end-of-life", f, limit)
	case d.now.EndsWithin(d.c.opt.Today, soonDays):
		f.Message = fmt.Sprintf("support of %s ends on %s", operator, is.Until)
		d.add("lifecycle.ends-soon", f)
	case ended && is.State == catalog.Supported:
		f.Message = fmt.Sprintf("%s is supported until %s; support of %s has ended", operator, is.Until, d.old.Name)
		d.add("lifecycle.supported", f)
	}
}

// comparePlatform reports a version that does not support the OpenShift version of the workspace. If the
// previous version did not support the previous OpenShift version either, the severity is lower.
func (d lifecycleDiff) comparePlatform() {
	is, target := d.now, d.c.after.OpenShiftVersion
	supported, ok := is.SupportsPlatform(catalog.OpenShift, target)
	before, wasOK := d.old.SupportsPlatform(catalog.OpenShift, d.c.before.OpenShiftVersion)
	if ok || d.pinDiff.old.Version == d.pinDiff.now.Version && !wasOK {
		return
	}
	limit := High
	if !wasOK {
		limit = Medium
	}
	d.add("lifecycle.platform", Finding{
		Field: "openshift", Before: strings.Join(before, ", "), After: strings.Join(supported, ", "),
		Message: fmt.Sprintf("%s %s supports only OpenShift %s, but openshiftVersion is %s", d.pinDiff.now.Package, is.Name, diag.Some(supported, 10), target),
	}, limit)
}
