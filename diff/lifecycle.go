package diff

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/model"
)

// soon is the period before the end of support, in days, that counts as ending soon:
// enough for an upgrade through several environments.
const soon = 90

func lifecycleRules() []Rule {
	return []Rule{
		{"lifecycle.end-of-life", High, "version is end of life", "no fixes are released for this version"},
		{"lifecycle.ends-soon", Low, fmt.Sprintf("version reaches end of life within %d days", soon), "upgrade by that day"},
		{"lifecycle.platform", High, "version does not support this OpenShift", "the vendor's list of supported OpenShift versions does not contain the one in quayside.yaml"},
		{"lifecycle.supported", Info, "supported again", "fixes are released in later versions of the same channel"},
	}
}

// compareLifecycles compares the support of versions and their supported platforms, from
// the catalogs: of operators that are new or have another version, and of all operators if
// the OpenShift version changes. The passing of time is not a change between two states. A
// version without a lifecycle has no finding.
func compareLifecycles(c *comparison) {
	if c.opt.Lifecycle == nil {
		return
	}
	unchecked := 0
	for _, p := range sortedPins(c.after.Pins) {
		old, had := c.before.pin(p.Key())
		if !had && len(c.before.Pins) == 0 && len(c.before.order) > 0 {
			continue // a tree without a lock
		}
		moved := !had || old.Version != p.Version
		if !moved && c.before.OpenShiftVersion == c.after.OpenShiftVersion {
			continue
		}
		d := lifecycleDiff{pinDiff: pinDiff{c, old, p}, now: c.opt.Lifecycle(p)}
		if d.now == nil {
			continue
		}
		if had {
			d.old = c.opt.Lifecycle(old)
		}
		d.support()
		if versions, _ := d.now.SupportsPlatform(model.OpenShift, ""); len(versions) == 0 {
			continue
		}
		if c.after.OpenShiftVersion != "" {
			d.platform()
		} else if moved {
			unchecked++
		}
	}
	if unchecked > 0 {
		c.note("support for the OpenShift version was not checked for %s: openshiftVersion is not set", pluralize(unchecked, "operator is", "operators are"))
	}
}

// lifecycleDiff is one operator on both sides with its lifecycles; old is nil if unknown.
type lifecycleDiff struct {
	pinDiff
	old, now *model.SupportedVersion
}

// support reports that support has ended, ends soon, or exists again. A change from one
// unsupported version to another is milder, because an upgrade in many steps may include
// some of them.
func (d lifecycleDiff) support() {
	was, is := d.old.On(d.c.opt.Today), d.now.On(d.c.opt.Today)
	if is == nil || d.pinDiff.old.Version == d.pinDiff.now.Version && was != nil && *was == *is {
		return
	}
	f := Finding{Field: "support", Before: was.String(), After: is.String()}
	ended := was != nil && was.State == model.Ended
	of := d.pinDiff.now.Package + " " + d.now.Name
	switch {
	case is.State == model.Ended:
		f.Message = fmt.Sprintf("support of %s ended on %s", of, is.Until)
		worst := High
		if ended {
			worst = Medium
			f.Message += fmt.Sprintf("; support of %s had ended before", d.old.Name)
		}
		d.add("lifecycle.end-of-life", f, worst)
	case d.now.EndsWithin(d.c.opt.Today, soon):
		f.Message = fmt.Sprintf("support of %s ends on %s", of, is.Until)
		d.add("lifecycle.ends-soon", f)
	case ended && is.State == model.Supported:
		f.Message = fmt.Sprintf("%s is supported until %s; support of %s has ended", of, is.Until, d.old.Name)
		d.add("lifecycle.supported", f)
	}
}

// platform reports a version that does not support the OpenShift version. The finding is
// milder if the previous version did not support the previous OpenShift version either.
func (d lifecycleDiff) platform() {
	is, target := d.now, d.c.after.OpenShiftVersion
	said, fits := is.SupportsPlatform(model.OpenShift, target)
	before, fitted := d.old.SupportsPlatform(model.OpenShift, d.c.before.OpenShiftVersion)
	if fits || d.pinDiff.old.Version == d.pinDiff.now.Version && !fitted {
		return
	}
	worst := High
	if !fitted {
		worst = Medium
	}
	d.add("lifecycle.platform", Finding{
		Field: "openshift", Before: strings.Join(before, ", "), After: strings.Join(said, ", "),
		Message: fmt.Sprintf("%s %s supports OpenShift %s: openshiftVersion is %s", d.pinDiff.now.Package, is.Name, diag.Some(said, 10), target),
	}, worst)
}
