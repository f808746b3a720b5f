package diff

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/lockfile"
)

func upgradeRules() []Rule {
	return []Rule{
		{"upgrade.installed", Info, "operator installed", "a new operator runs in the cluster"},
		{"upgrade.removed", Medium, "operator goes", "its objects are pruned; custom resources whose finalizers it serves hang once it is gone"},
		{"upgrade.left-behind", High, "operator is left behind", "it is not uninstalled, and runs on without upgrades: its Application or Kustomization goes without deleting what it applied, as where the commit that added it is reverted"},
		{"upgrade.followed", Info, "operator is followed by another", "custom resource definitions and custom resources stay, and another operator looks after them; what only the operator before has stays too, without a running program, until the other was seen to run"},
		{"upgrade.leftovers-removed", Low, "what was left of an operator goes", "objects of an operator that another one follows are pruned: whatever still uses them goes on without"},
		{"upgrade.version", Info, "operator moves to another version", "what the upgrade changes is in the other findings"},
		{"upgrade.downgrade", High, "operator goes back to an older version", "operators are seldom tested against data that a newer version has written; a stored version that the old definition does not know is refused"},
		{"upgrade.hops-skipped", Medium, "versions of the upgrade path passed over", "migrations that an operator does in a version in between never run"},
		{"upgrade.no-edge", Medium, "no declared upgrade from the version before", "the operator's author did not declare that this version takes the place of the one before"},
		{"upgrade.same-version-other-content", High, "same version, other content", "what was reviewed under this version is not what will run: the image was rebuilt, or replaced"},
		{"upgrade.channel", Low, "channel changed", "later upgrades follow another line of releases"},
		{"upgrade.catalog", Medium, "comes from another catalog", "somebody else publishes what is installed"},
		{"upgrade.install-mode", Medium, "install mode changed", "the operator watches other namespaces, with permissions to match"},
		{"upgrade.watch-widened", Medium, "watches more namespaces", "objects there are taken over by this operator"},
		{"upgrade.watch-narrowed", Medium, "watches fewer namespaces", "objects in the others are no longer looked after; their finalizers hang"},
		{"upgrade.approval", Low, "upgrades without being named", "the operator moves with every resolve --upgrade"},
		{"upgrade.hold-lifted", Low, "hold lifted", "somebody held the operator for a reason"},
		{"upgrade.config", Info, "configuration changed", "the operator's pods start with other settings"},
		{"upgrade.storage", Low, "waits for objects to leave a version", "the next bundle drops a version in which objects may be stored, which the API server would refuse: they are stored in another version first, and those of before rewritten"},
	}
}

// compareUpgrades compares the pins.
func compareUpgrades(c *comparison) {
	for _, p := range sortedPins(c.after.Pins) {
		old, ok := c.before.pin(p.Key())
		d := pinDiff{c, old, p}
		if !ok {
			if len(c.before.Pins) > 0 || len(c.before.order) == 0 {
				d.add("upgrade.installed", Finding{After: p.VersionText(), Message: fmt.Sprintf("%s %s is installed%s", p.Package, p.VersionText(), becauseOf(p, sortedPins(c.after.Pins)))})
			}
			continue
		}
		d.moved()
		d.settings()
	}
	for _, p := range sortedPins(c.before.Pins) {
		l, leaves := c.after.leaves(p.Key())
		if leaves {
			c.followed(p, l.ReplacedBy)
		} else if slices.Contains(c.after.Dropped, p.Key()) {
			goes := "goes from here"
			if leftBehind(c.before, c.after, p.Key()) {
				goes = "is left here, where nothing manages it"
			}
			pinDiff{c, p, p}.add("clusters.operator-dropped", Finding{Before: p.VersionText(), Message: fmt.Sprintf("%s %s %s, and stays pinned for others", p.Package, p.VersionText(), goes)})
		} else if _, ok := c.after.pin(p.Key()); !ok && (len(c.after.Pins) > 0 || len(c.after.order) == 0) {
			c.removed(p)
		}
	}
}

// removed reports that an operator is uninstalled, or left behind.
func (c *comparison) removed(p lockfile.Pin) {
	rule, message := "upgrade.removed", fmt.Sprintf("%s %s goes", p.Package, p.VersionText())
	if leftBehind(c.before, c.after, p.Key()) {
		rule = "upgrade.left-behind"
		message = fmt.Sprintf("%s %s stays in the clusters, where nothing manages it: to uninstall it, use 'quayside remove' and 'quayside resolve'", p.Package, p.VersionText())
	}
	pinDiff{c, p, p}.add(rule, Finding{Before: p.VersionText(), Message: message})
}

// followed reports that another operator takes the place of one.
func (c *comparison) followed(old lockfile.Pin, by string) {
	f := Finding{Before: old.VersionText(), Message: fmt.Sprintf("%s %s is followed by %s", old.Key(), old.VersionText(), by)}
	if now, ok := c.after.pin(by); ok {
		f.After, f.Message = now.VersionText(), f.Message+" "+now.VersionText()
	}
	handed, left := 0, 0
	for _, o := range c.before.order {
		if o.Operator != old.Key() {
			continue
		}
		switch now := c.after.byKey[o.Key()]; {
		case now != nil && now.Operator != old.Key():
			handed++
		case now != nil:
			left++
		}
	}
	f.Message += fmt.Sprintf("; %s handed over, %s left until that was seen to run", plural(handed, "object is", "objects are"), plural(left, "is", "are"))
	pinDiff{c, old, old}.add("upgrade.followed", f)
}

// compareLeftovers reports what was left of operators and goes.
func compareLeftovers(c *comparison) {
	for _, l := range c.before.Leaving {
		if l.ReplacedBy == "" {
			continue // its removal was reported when it began
		}
		_, stays := c.after.leaves(l.Key())
		if _, again := c.after.pin(l.Key()); stays || again {
			continue
		}
		n := 0
		for _, o := range c.before.order {
			if o.Operator == l.Key() && c.after.byKey[o.Key()] == nil {
				n++
			}
		}
		pinDiff{c, l.Pin, l.Pin}.add("upgrade.leftovers-removed", Finding{
			Before: l.VersionText(), Message: fmt.Sprintf("%s that %s had left: %s follows it", plural(n, "object goes", "objects go"), l.Key(), l.ReplacedBy),
		})
	}
}

func sortedPins(pins []lockfile.Pin) []lockfile.Pin {
	out := slices.Clone(pins)
	slices.SortFunc(out, func(a, b lockfile.Pin) int { return strings.Compare(a.Key(), b.Key()) })
	return out
}

// becauseOf returns why a dependency among pins is installed; "" for what a declaration
// asks for.
func becauseOf(p lockfile.Pin, pins []lockfile.Pin) string {
	if !p.Generated() {
		return ""
	}
	for _, r := range (&lockfile.File{Pins: pins}).RequiredBy(p) {
		return ", because " + r.Pin + " needs " + r.Requirement
	}
	return ""
}

// pinDiff is one operator on both sides.
type pinDiff struct {
	c        *comparison
	old, now lockfile.Pin
}

func (d pinDiff) add(rule string, f Finding, capped ...Severity) {
	f.Operator, f.Place = d.now.Key(), d.place()
	d.c.add(rule, nil, f, capped...)
}

// place returns where the pin stands.
func (d pinDiff) place() Place {
	p := Place{Path: d.now.Pos.File, Line: d.now.Pos.Line, Column: d.now.Pos.Col}
	if p.Line > 0 {
		p.EndLine, p.EndCol = p.Line, p.Column+1
	}
	return p
}

func (d pinDiff) moved() {
	a, b := d.old, d.now
	f := Finding{Before: a.VersionText(), After: b.VersionText()}
	if a.Version == b.Version && a.Bundle == b.Bundle {
		if a.Image != b.Image || a.ContentDigest != b.ContentDigest {
			f.Before, f.After = cmp.Or(a.Image, string(a.ContentDigest)), cmp.Or(b.Image, string(b.ContentDigest))
			f.Message = fmt.Sprintf("%s %s is not what it was", b.Package, b.VersionText())
			d.add("upgrade.same-version-other-content", f)
		}
		return
	}
	if older(b, a) {
		f.Message = fmt.Sprintf("%s goes back from %s to %s", b.Package, a.VersionText(), b.VersionText())
		d.add("upgrade.downgrade", f)
		return
	}
	f.Message = fmt.Sprintf("%s moves from %s to %s", b.Package, a.VersionText(), b.VersionText())
	d.add("upgrade.version", f)
	switch {
	case len(b.Skipped) > 0:
		f.Message = fmt.Sprintf("passes over %s", some(b.Skipped, 8))
		d.add("upgrade.hops-skipped", f)
	case b.Replaces != a.Bundle:
		f.Message = fmt.Sprintf("%s does not say that it replaces %s", b.Bundle, a.Bundle)
		d.add("upgrade.no-edge", f)
	}
}

// older reports whether a is of a lower version than b, or of a lower release of the
// same one; false where either has no version.
func older(a, b lockfile.Pin) bool {
	_, err1 := olm.ParseVersion(a.Version)
	_, err2 := olm.ParseVersion(b.Version)
	return err1 == nil && err2 == nil && olm.CompareBundles(a.Version, olm.ReleaseOf(a.Properties), b.Version, olm.ReleaseOf(b.Properties)) < 0
}

func (d pinDiff) settings() {
	a, b := d.old, d.now
	differs := func(rule, field, was, is, message string) {
		if was != is {
			d.add(rule, Finding{Field: field, Before: was, After: is, Message: message})
		}
	}
	differs("upgrade.channel", "channel", a.Channel, b.Channel, fmt.Sprintf("channel is %q, was %q", b.Channel, a.Channel))
	differs("upgrade.catalog", "catalog", a.Catalog.ID.String(), b.Catalog.ID.String(), fmt.Sprintf("comes from catalog %s, came from %s", b.Catalog, a.Catalog))
	differs("upgrade.install-mode", "installMode", string(a.InstallMode), string(b.InstallMode), fmt.Sprintf("install mode is %s, was %s", b.InstallMode, a.InstallMode))
	if a.Approval == "Manual" && b.Approval != "Manual" {
		differs("upgrade.approval", "approval", a.Approval, "Automatic", "is no longer upgraded only when it is named")
	}
	if a.Hold != "" && b.Hold == "" {
		differs("upgrade.hold-lifted", "hold", a.Hold, "", "is no longer held")
	}
	if !bytes.Equal(a.Config, b.Config) {
		d.add("upgrade.config", Finding{Field: "config", Before: show(string(a.Config)), After: show(string(b.Config)), Message: "configuration of the operator's pods changed"})
	}
	if a.Bundle == b.Bundle {
		differs("upgrade.storage", "storage", storageText(a), storageText(b), "is at another stage of migrating objects out of versions that its next bundle drops")
	}
	d.watched()
}

// storageText returns how a pin waits for objects to leave versions, "" where it
// does not.
func storageText(p lockfile.Pin) string {
	if p.Storage == nil {
		return ""
	}
	return p.Storage.String()
}

func (d pinDiff) watched() {
	a, b := d.old.WatchNamespaces, d.now.WatchNamespaces
	f := Finding{Field: "watchNamespaces", Before: watchWords(a), After: watchWords(b)}
	uncovered := func(by, of []string) bool {
		if len(of) == 0 {
			return len(by) > 0
		}
		return len(by) > 0 && slices.ContainsFunc(of, func(ns string) bool { return !slices.Contains(by, ns) })
	}
	if uncovered(a, b) {
		f.Message = "watches " + f.After + ", watched " + f.Before
		d.add("upgrade.watch-widened", f)
	}
	if uncovered(b, a) {
		f.Message = "watches " + f.After + ", watched " + f.Before
		d.add("upgrade.watch-narrowed", f)
	}
}

func watchWords(list []string) string {
	if len(list) == 0 {
		return "all namespaces"
	}
	return some(list, 10)
}
