package diff

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
)

// rolledBack is the rule about operators that return to an earlier version.
const rolledBack = "upgrade.rolled-back"

func upgradeRules() []RuleInfo {
	return []RuleInfo{
		{"upgrade.installed", Info, "operator installed", "a new operator runs in the cluster"},
		{"upgrade.removed", Medium, "operator removed", "the objects of the operator are pruned; the deletion of custom resources hangs if their finalizers need the operator"},
		{"upgrade.left-behind", High, "operator left behind", "it keeps running without upgrades: its Application or Kustomization is deleted without deleting the objects it applied, as after a revert of the commit that added it"},
		{"upgrade.followed", Info, "operator replaced by a successor", "the successor manages the CRDs and custom resources; other objects are kept, without running pods, until the successor is observed ready"},
		{"upgrade.leftovers-removed", Low, "leftover objects removed", "leftover objects of a replaced operator are pruned: workloads that still use them break"},
		{"upgrade.version", Info, "operator upgraded", "see the other findings for its changes"},
		{"upgrade.downgrade", High, "operator downgraded", "operators are seldom tested with data written by a newer version; a CRD without a stored version is refused"},
		{rolledBack, Medium, "operator rolled back", "the clusters had this version before, but values of fields and versions that only the newer version had are not brought back"},
		{"upgrade.hops-skipped", Medium, "versions of the upgrade path skipped", "migrations that the skipped versions perform never run"},
		{"upgrade.no-edge", Medium, "no declared upgrade from the previous version", "the operator's author did not declare an upgrade from the previous version to this one"},
		{"upgrade.same-version-other-content", High, "same version, different content", "the bundle image was rebuilt or replaced: the reviewed content is not the content that will run"},
		{"upgrade.channel", Low, "channel changed", "later upgrades come from another channel"},
		{"upgrade.catalog", Medium, "catalog changed", "the operator has another publisher"},
		{"upgrade.install-mode", Medium, "install mode changed", "the operator watches different namespaces, with matching permissions"},
		{"upgrade.watch-widened", Medium, "watches more namespaces", "objects there are now managed by this operator"},
		{"upgrade.watch-narrowed", Medium, "watches fewer namespaces", "custom resources in the other namespaces are no longer managed; deleting them hangs if they have finalizers"},
		{"upgrade.approval", Low, "approval changed to Automatic", "the operator is upgraded by every resolve --upgrade"},
		{"upgrade.hold-lifted", Low, "hold lifted", "the operator was held for a reason"},
		{"upgrade.config", Info, "configuration changed", "the operator's pods start with different settings"},
		{"upgrade.storage", Low, "waits for the migration of stored objects", "the next bundle drops a version in which objects may be stored, which the API server refuses: the storage version is changed first and existing objects are rewritten"},
	}
}

// compareUpgrades compares the pins of the two locks.
func compareUpgrades(c *comparison) {
	for _, p := range sortedPins(c.after.Pins) {
		old, ok := c.before.pin(p.Key())
		d := pinDiff{c, old, p}
		if !ok {
			if len(c.before.Pins) > 0 || len(c.before.order) == 0 {
				d.add("upgrade.installed", Finding{After: p.VersionText(), Message: fmt.Sprintf("%s %s is installed%s", p.Package, p.VersionText(), installReason(p, sortedPins(c.after.Pins)))})
			}
			continue
		}
		d.compareVersion()
		d.compareSettings()
	}
	for _, p := range sortedPins(c.before.Pins) {
		l, replaced := c.after.replacedOperator(p.Key())
		if replaced {
			c.reportReplaced(p, l.ReplacedBy)
		} else if slices.Contains(c.after.Dropped, p.Key()) {
			outcome := "is removed from this cluster"
			if isLeftBehind(c.before, c.after, p.Key()) {
				outcome = "remains in this cluster, unmanaged"
			}
			pinDiff{c, p, p}.add("clusters.operator-dropped", Finding{Before: p.VersionText(), Message: fmt.Sprintf("%s %s %s, but remains pinned for other clusters", p.Package, p.VersionText(), outcome)})
		} else if _, ok := c.after.pin(p.Key()); !ok && (len(c.after.Pins) > 0 || len(c.after.order) == 0) {
			c.reportRemoved(p)
		}
	}
}

// compareTreeVersions compares the versions of operators if the states have no locks.
func compareTreeVersions(c *comparison) {
	before, after := c.before.versions, c.after.versions
	for _, operator := range sortedKeys(after) {
		if before[operator] == "" {
			continue
		}
		namespace, pkg, _ := strings.Cut(operator, "/")
		pinDiff{
			c, lockfile.Pin{Namespace: namespace, Package: pkg, Version: before[operator]}, lockfile.Pin{Namespace: namespace, Package: pkg, Version: after[operator]},
		}.compareVersion()
	}
}

// treeVersions returns the version of each operator, from the annotations of its objects. It omits
// operators whose objects have different versions. If the state has pins, the result is empty.
func (v *view) treeVersions() map[string]string {
	out := map[string]string{}
	if len(v.Pins) > 0 {
		return out
	}
	several := map[string]bool{}
	for _, o := range v.order {
		version := k8s.Text(o.Content, "metadata", "annotations", k8s.LabelVersion)
		if version == "" || !strings.Contains(o.Operator, "/") {
			continue
		}
		several[o.Operator] = several[o.Operator] || out[o.Operator] != "" && out[o.Operator] != version
		out[o.Operator] = version
	}
	maps.DeleteFunc(out, func(operator, _ string) bool { return several[operator] })
	return out
}

// reportRemoved reports an operator that is uninstalled, or that stays in the clusters and is no longer managed.
func (c *comparison) reportRemoved(p lockfile.Pin) {
	rule, message := "upgrade.removed", fmt.Sprintf("%s %s removed", p.Package, p.VersionText())
	if isLeftBehind(c.before, c.after, p.Key()) {
		rule = "upgrade.left-behind"
		message = fmt.Sprintf("%s %s stays in the clusters, unmanaged: to uninstall it, run 'quayside remove' and 'quayside resolve'", p.Package, p.VersionText())
	}
	c.claimRemoved(p.Key())
	pinDiff{c, p, p}.add(rule, Finding{Before: p.VersionText(), Message: message})
}

// claimRemoved records the removed objects of an operator as covered, except for those whose
// removal has at least medium severity. It returns the number of removed objects.
func (c *comparison) claimRemoved(operator string) int {
	n := 0
	for _, o := range c.before.order {
		if o.Operator != operator || c.after.byKey[o.Key()] != nil {
			continue
		}
		if n++; c.removedSeverity(o) < Medium {
			c.claimed[o.Key()] = wholeObject()
		}
	}
	return n
}

// reportReplaced reports that a successor ("namespace/package") replaces the operator old.
func (c *comparison) reportReplaced(old lockfile.Pin, by string) {
	f := Finding{Before: old.VersionText(), Message: fmt.Sprintf("%s %s is replaced by %s", old.Key(), old.VersionText(), by)}
	if now, ok := c.after.pin(by); ok {
		f.After, f.Message = now.VersionText(), f.Message+" "+now.VersionText()
	}
	handedOver, leftOver := 0, 0
	for _, o := range c.before.order {
		if o.Operator != old.Key() {
			continue
		}
		switch now := c.after.byKey[o.Key()]; {
		case now != nil && now.Operator != old.Key():
			handedOver++
		case now != nil:
			leftOver++
		}
	}
	f.Message += fmt.Sprintf("; %s now managed by the successor, %s kept until the successor is observed ready", pluralize(handedOver, "object is", "objects are"), pluralize(leftOver, "is", "are"))
	pinDiff{c, old, old}.add("upgrade.followed", f)
}

// compareLeftovers reports that leftover objects of replaced operators are removed.
func compareLeftovers(c *comparison) {
	for _, l := range c.before.Leaving {
		if l.ReplacedBy == "" {
			continue // being uninstalled: already reported when it began
		}
		_, stays := c.after.replacedOperator(l.Key())
		if _, installed := c.after.pin(l.Key()); stays || installed {
			continue
		}
		n := c.claimRemoved(l.Key())
		pinDiff{c, l.Pin, l.Pin}.add("upgrade.leftovers-removed", Finding{
			Before: l.VersionText(), Message: fmt.Sprintf("%s of %s removed (replaced by %s)", pluralize(n, "leftover object", "leftover objects"), l.Key(), l.ReplacedBy),
		})
	}
}

// sortedPins returns the pins sorted by namespace and package.
func sortedPins(pins []lockfile.Pin) []lockfile.Pin {
	out := slices.Clone(pins)
	slices.SortFunc(out, func(a, b lockfile.Pin) int { return strings.Compare(a.Key(), b.Key()) })
	return out
}

// installReason returns a message suffix with the reason why a dependency is installed. It returns
// "" for a declared operator.
func installReason(p lockfile.Pin, pins []lockfile.Pin) string {
	if !p.Generated() {
		return ""
	}
	for _, r := range (&lockfile.File{Pins: pins}).RequiredBy(p) {
		return ", because " + r.Pin + " needs " + r.Requirement
	}
	return ""
}

// pinDiff compares the pins of an operator before and after the change.
type pinDiff struct {
	c        *comparison
	old, now lockfile.Pin
}

func (d pinDiff) add(rule string, f Finding, capped ...Severity) {
	f.Operator, f.Place = d.now.Key(), d.region()
	d.c.add(rule, nil, f, capped...)
}

// region returns the position of the pin in the lock.
func (d pinDiff) region() Region {
	p := Region{Path: d.now.Pos.File, Line: d.now.Pos.Line, Column: d.now.Pos.Col}
	if p.Line > 0 {
		p.EndLine, p.EndCol = p.Line, p.Column+1
	}
	return p
}

// compareVersion reports an upgrade, a downgrade, or changed content of the same version.
func (d pinDiff) compareVersion() {
	a, b := d.old, d.now
	f := Finding{Before: a.VersionText(), After: b.VersionText()}
	if a.Version == b.Version && a.Bundle == b.Bundle {
		if a.Image != b.Image || a.ContentDigest != b.ContentDigest {
			f.Before, f.After = cmp.Or(a.Image, string(a.ContentDigest)), cmp.Or(b.Image, string(b.ContentDigest))
			f.Message = fmt.Sprintf("content of %s %s changed", b.Package, b.VersionText())
			d.add("upgrade.same-version-other-content", f)
		}
		return
	}
	if isOlder(b, a) && slices.Contains(d.c.opt.RolledBack, b.Key()) {
		f.Message = fmt.Sprintf("%s rolled back from %s to %s, which was merged before", b.Package, a.VersionText(), b.VersionText())
		d.add(rolledBack, f)
		return
	}
	if isOlder(b, a) {
		f.Message = fmt.Sprintf("%s downgraded from %s to %s", b.Package, a.VersionText(), b.VersionText())
		d.add("upgrade.downgrade", f)
		return
	}
	f.Message = fmt.Sprintf("%s upgraded from %s to %s", b.Package, a.VersionText(), b.VersionText())
	d.add("upgrade.version", f)
	switch {
	case len(b.Skipped) > 0:
		f.Message = fmt.Sprintf("skips %s", diag.Some(b.Skipped, 8))
		d.add("upgrade.hops-skipped", f)
	case b.Replaces != a.Bundle:
		f.Message = fmt.Sprintf("%s does not declare that it replaces %s", b.Bundle, a.Bundle)
		d.add("upgrade.no-edge", f)
	}
}

// addRollbackLosses adds the data that a rollback does not restore to the message of its finding.
func (c *comparison) addRollbackLosses() {
	for i, f := range c.found {
		if f.Rule != rolledBack {
			continue
		}
		var lost []string
		for _, l := range c.found {
			if l.Operator == f.Operator && slices.Contains(lossRules(), l.Rule) {
				lost = append(lost, strings.TrimSpace(l.Object.Name+" "+l.Field))
			}
		}
		slices.Sort(lost)
		if lost = slices.Compact(lost); len(lost) > 0 {
			c.found[i].Message += "; not brought back: " + diag.Some(lost, 8)
		}
	}
}

// lossRules returns the rules about stored values and versions that the older CRDs lack.
func lossRules() []string {
	return []string{"crd.field-removed", "crd.map-removed", "crd.unknown-fields-pruned", "crd.served-version-removed", "crd.stored-version-removed", "data.crd-removed"}
}

// isOlder reports whether a has a lower version than b, or the same version with a lower release.
// It returns false if a version is invalid.
func isOlder(a, b lockfile.Pin) bool {
	_, err1 := catalog.ParseVersion(a.Version)
	_, err2 := catalog.ParseVersion(b.Version)
	return err1 == nil && err2 == nil && catalog.CompareBundles(a.Version, catalog.ReleaseOf(a.Properties), b.Version, catalog.ReleaseOf(b.Properties)) < 0
}

// compareSettings compares the fields of the pins other than the version.
func (d pinDiff) compareSettings() {
	a, b := d.old, d.now
	report := func(rule, field, was, is, message string) {
		if was != is {
			d.add(rule, Finding{Field: field, Before: was, After: is, Message: message})
		}
	}
	report("upgrade.channel", "channel", a.Channel, b.Channel, fmt.Sprintf("channel is %q, was %q", b.Channel, a.Channel))
	report("upgrade.catalog", "catalog", a.Catalog.ID.String(), b.Catalog.ID.String(), fmt.Sprintf("catalog changed from %s to %s", a.Catalog, b.Catalog))
	report("upgrade.install-mode", "installMode", string(a.InstallMode), string(b.InstallMode), fmt.Sprintf("install mode is %s, was %s", b.InstallMode, a.InstallMode))
	if a.Approval == "Manual" && b.Approval != "Manual" {
		report("upgrade.approval", "approval", a.Approval, "Automatic", "approval changed from Manual to Automatic")
	}
	if a.Hold != "" && b.Hold == "" {
		report("upgrade.hold-lifted", "hold", a.Hold, "", "hold removed")
	}
	if !bytes.Equal(a.Config, b.Config) {
		d.add("upgrade.config", Finding{Field: "config", Before: formatValue(string(a.Config)), After: formatValue(string(b.Config)), Message: "configuration of the operator's pods changed"})
	}
	if a.Bundle == b.Bundle {
		report("upgrade.storage", "storage", formatStorage(a), formatStorage(b), "stage of the storage migration changed")
	}
	d.compareWatched()
}

// formatStorage formats the storage migration of a pin, or "" if there is none.
func formatStorage(p lockfile.Pin) string {
	if p.Storage == nil {
		return ""
	}
	return p.Storage.String()
}

// compareWatched reports that the operator watches more or fewer namespaces.
func (d pinDiff) compareWatched() {
	a, b := d.old.WatchNamespaces, d.now.WatchNamespaces
	f := Finding{Field: "watchNamespaces", Before: describeWatchedNamespaces(a), After: describeWatchedNamespaces(b)}
	uncovered := func(by, of []string) bool {
		if len(of) == 0 {
			return len(by) > 0
		}
		return len(by) > 0 && slices.ContainsFunc(of, func(ns string) bool { return !slices.Contains(by, ns) })
	}
	if uncovered(a, b) {
		f.Message = "watches " + f.After + ", previously " + f.Before
		d.add("upgrade.watch-widened", f)
	}
	if uncovered(b, a) {
		f.Message = "watches " + f.After + ", previously " + f.Before
		d.add("upgrade.watch-narrowed", f)
	}
}

// describeWatchedNamespaces formats a list of watched namespaces for display.
func describeWatchedNamespaces(list []string) string {
	if len(list) == 0 {
		return "all namespaces"
	}
	return diag.Some(list, 10)
}
