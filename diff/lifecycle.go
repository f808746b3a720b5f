package diff

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/catalog/lifecycle"
)

// soon is how many days before its end support is said to end: long enough for an
// upgrade that goes through several environments.
const soon = 90

func lifecycleRules() []Rule {
	return []Rule{
		{"lifecycle.end-of-life", High, "version whose support has ended", "nobody mends it any more: a fix for what is found in it comes in another version"},
		{"lifecycle.ends-soon", Low, fmt.Sprintf("version whose support ends within %d days", soon), "the next upgrade has to be done by that day"},
		{"lifecycle.platform", High, "version that is not for this OpenShift", "the vendor names the versions of OpenShift that it is for, and the one in quayside.yaml is not among them"},
		{"lifecycle.supported", Info, "supported again", "fixes for what is found in this version come in the next one of the same line"},
	}
}

// compareLifecycles compares what the catalogs state about the support of versions, and
// of the platforms that they are for: of operators that are new or have another version,
// and of all where the version of OpenShift is another. That time passes changes nothing
// between two states. A version without a lifecycle has no finding.
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
		if versions, _ := d.now.Fits(lifecycle.OpenShift, ""); len(versions) == 0 {
			continue
		}
		if c.after.OpenShiftVersion != "" {
			d.platform()
		} else if moved {
			unchecked++
		}
	}
	if unchecked > 0 {
		c.note("whether %s for the version of OpenShift was not checked: openshiftVersion is not set", plural(unchecked, "operator is", "operators are"))
	}
}

// lifecycleDiff is one operator on both sides with its lifecycles; old is nil where
// nothing is known of it.
type lifecycleDiff struct {
	pinDiff
	old, now *lifecycle.Version
}

// support says that support has ended, that it soon will, or that it has begun
// again. To go from one version without it to another is milder: an upgrade of
// many steps leads through some.
func (d lifecycleDiff) support() {
	was, is := d.old.On(d.c.opt.Today), d.now.On(d.c.opt.Today)
	if is == nil || d.pinDiff.old.Version == d.pinDiff.now.Version && was != nil && *was == *is {
		return
	}
	f := Finding{Field: "support", Before: was.String(), After: is.String()}
	ended := was != nil && was.State == lifecycle.Ended
	of := d.pinDiff.now.Package + " " + d.now.Name
	switch {
	case is.State == lifecycle.Ended:
		f.Message = fmt.Sprintf("support of %s ended on %s", of, is.Until)
		worst := High
		if ended {
			worst = Medium
			f.Message += fmt.Sprintf("; that of %s had ended, too", d.old.Name)
		}
		d.add("lifecycle.end-of-life", f, worst)
	case d.now.EndsWithin(d.c.opt.Today, soon):
		f.Message = fmt.Sprintf("support of %s ends on %s", of, is.Until)
		d.add("lifecycle.ends-soon", f)
	case ended && is.State == lifecycle.Supported:
		f.Message = fmt.Sprintf("%s is supported until %s; support of %s has ended", of, is.Until, d.old.Name)
		d.add("lifecycle.supported", f)
	}
}

// platform says that a version is not for the version of OpenShift that there is.
// It is milder where the version before was not for the one that there was.
func (d lifecycleDiff) platform() {
	is, target := d.now, d.c.after.OpenShiftVersion
	said, fits := is.Fits(lifecycle.OpenShift, target)
	before, fitted := d.old.Fits(lifecycle.OpenShift, d.c.before.OpenShiftVersion)
	if fits || d.pinDiff.old.Version == d.pinDiff.now.Version && !fitted {
		return
	}
	worst := High
	if !fitted {
		worst = Medium
	}
	d.add("lifecycle.platform", Finding{
		Field: "openshift", Before: strings.Join(before, ", "), After: strings.Join(said, ", "),
		Message: fmt.Sprintf("%s %s is for OpenShift %s: openshiftVersion is %s", d.pinDiff.now.Package, is.Name, some(said, 10), target),
	}, worst)
}
