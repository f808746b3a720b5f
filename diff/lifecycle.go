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

// compareLifecycles compares what the catalogs say of how long the pinned versions
// are supported, and where: of what moves, and of what is now said otherwise. That
// time passes changes nothing between two states. Of a version that nothing is
// said of, nothing is found.
func compareLifecycles(c *comparison) {
	unchecked := 0
	for _, p := range sortedPins(c.after.Pins) {
		if p.Lifecycle == nil {
			continue
		}
		old, had := c.before.pin(p.Key())
		if !had && len(c.before.Pins) == 0 && len(c.before.order) > 0 {
			continue // a tree without a lock
		}
		d := pinDiff{c, old, p}
		d.support()
		if said, _ := p.Lifecycle.Fits(lifecycle.OpenShift, ""); len(said) == 0 {
			continue
		}
		if c.after.OpenShiftVersion != "" {
			d.platform()
		} else if old.Lifecycle == nil || old.Version != p.Version {
			unchecked++
		}
	}
	if unchecked > 0 {
		c.note("whether %s for the version of OpenShift was not checked: openshiftVersion is not set", plural(unchecked, "operator is", "operators are"))
	}
}

// support says that support has ended, that it soon will, or that it has begun
// again. To go from one version without it to another is milder: an upgrade of
// many steps leads through some.
func (d pinDiff) support() {
	was, is := d.old.Lifecycle.On(d.c.opt.Today), d.now.Lifecycle.On(d.c.opt.Today)
	if is == nil || d.old.Version == d.now.Version && was != nil && *was == *is {
		return
	}
	f := Finding{Field: "support", Before: was.String(), After: is.String()}
	ended := was != nil && was.State == lifecycle.Ended
	of := d.now.Package + " " + d.now.Lifecycle.Name
	switch {
	case is.State == lifecycle.Ended:
		f.Message = fmt.Sprintf("support of %s ended on %s", of, is.Until)
		worst := High
		if ended {
			worst = Medium
			f.Message += fmt.Sprintf("; that of %s had ended, too", d.old.Lifecycle.Name)
		}
		d.add("lifecycle.end-of-life", f, worst)
	case d.now.Lifecycle.EndsWithin(d.c.opt.Today, soon):
		f.Message = fmt.Sprintf("support of %s ends on %s", of, is.Until)
		d.add("lifecycle.ends-soon", f)
	case ended && is.State == lifecycle.Supported:
		f.Message = fmt.Sprintf("%s is supported until %s; support of %s has ended", of, is.Until, d.old.Lifecycle.Name)
		d.add("lifecycle.supported", f)
	}
}

// platform says that a version is not for the version of OpenShift that there is.
// It is milder where the version before was not for the one that there was.
func (d pinDiff) platform() {
	is, target := d.now.Lifecycle, d.c.after.OpenShiftVersion
	said, fits := is.Fits(lifecycle.OpenShift, target)
	before, fitted := d.old.Lifecycle.Fits(lifecycle.OpenShift, d.c.before.OpenShiftVersion)
	if fits || d.old.Version == d.now.Version && !fitted {
		return
	}
	worst := High
	if !fitted {
		worst = Medium
	}
	d.add("lifecycle.platform", Finding{
		Field: "openshift", Before: strings.Join(before, ", "), After: strings.Join(said, ", "),
		Message: fmt.Sprintf("%s %s is for OpenShift %s: openshiftVersion is %s", d.now.Package, is.Name, some(said, 10), target),
	}, worst)
}
