package compare

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// sensitiveSetting is a setting of quayside.yaml with the change that makes it less strict. Package compare
// reports such a change as a finding.
type sensitiveSetting struct {
	path, rule string
	isLooser   func(before, after effectiveSetting) bool
	message    string        // finding, with the placeholders {key}, {after}, {note} and {items} (the added items of a set)
	severity   diff.Severity // 0: the default severity of rule
}

// sensitiveSettings returns the settings for which a change to a less strict value is reported.
func sensitiveSettings() []sensitiveSetting {
	const catalogs, promotion, automerge, requirements = "settings.catalogs", "settings.promotion", "settings.automerge", "settings.requirements"
	const lessHealth = "versions are promoted with less observed health"
	return []sensitiveSetting{
		{"spec.allowNames", "settings.names", isLower, "bundles may contain {key}", 0},
		{"spec.extends", "settings.extends", isChanged, "settings are inherited from other files", 0},
		{"spec.output", "settings.output", isChanged, "the tree has another place", 0},
		{"spec.requirements", requirements, isLower, "versions that do not support the platform may be installed", 0},
		{"spec.allowOverlap", requirements, isLower, "two operators with the same API may watch the same namespace", 0},
		{"spec.sharedDependencies", requirements, isLower, "dependencies are satisfied by operators in other namespaces", 0},

		{"spec.follows", promotion, isReplaced, "versions are promoted from another environment", 0},
		{"spec.promotion", promotion, isLower, "versions are promoted without observed health", 0},
		{"spec.promotion.healthy", promotion, isLowerValue, lessHealth, 0},
		{"spec.promotion.soak", promotion, isLowerValue, lessHealth, 0},
		{"spec.promotion.clusters", promotion, isLowerValue, lessHealth, 0},
		{"spec.promotion.observedWithin", promotion, isLowerValue, lessHealth, 0},
		{"spec.promotion.signed", promotion, isLowerValue, lessHealth, 0},
		{"spec.windows", promotion, isReplaced, "operators may change at other times", 0},
		{"spec.freeze", promotion, isReplaced, "operators may change at other times", 0},
		{"spec.propose.automerge", automerge, isLower, "pull requests are merged automatically", 0},
		{"spec.propose.automerge.maxSeverity", automerge, isLowerValue, "pull requests with worse findings are merged automatically", 0},
		{"spec.propose.automerge.after", automerge, isLowerValue, "pull requests are merged automatically after a shorter time", 0},

		{"spec.propose.reviewers", automerge, isLower, "{key} is no longer asked to review pull requests", 0},
		{"spec.propose.labels", automerge, isLower, "pull requests get the label {key}, which may let a bot merge them", 0},
		{"spec.propose.draft", automerge, isLowerValue, "pull requests are no longer drafts", diff.Medium},
		{"spec.kubernetesVersion", requirements, isLower, "checks are for an older Kubernetes, or none", 0},
		{"spec.openshiftVersion", requirements, isLower, "checks are for an older OpenShift, or none", 0},

		{"spec.globalCatalogNamespaces", catalogs, isLower, "catalogs of the namespace serve all namespaces", 0},
		{"catalog", catalogs, isLower, "catalog added", diff.Low},
		{"catalog", catalogs, isOtherImage, "catalog is read at another tag or digest", diff.Low},
		{"catalog", catalogs, isOtherVariant, "catalog has another source under the same name", 0},
		{"catalog priority", catalogs, isChanged, "dependencies are preferred from another catalog", 0},
		{"spec.mirrors", catalogs, hasAddedItems, "images of {key} come from another mirror", 0},

		{"spec.trust", diff.SettingsTrust, isLower, "{key} need no signature", 0},
		{"spec.trust", diff.SettingsTrust, isExtended, "{key} may be signed by {items}", 0},
		{"spec.policy.failOn", diff.SettingsPolicy, isLower, "more findings are accepted", 0},
		{"spec.policy.clusters", diff.SettingsPolicy, isLowerLevel, "more findings are accepted for cluster {key}", 0},
		{"spec.policy.severity", diff.SettingsPolicy, isLower, "findings of {key} are less severe", 0},
		{"spec.policy.vulnerabilities.added", diff.SettingsPolicy, isLower, "new vulnerabilities rated {key} are accepted", 0},
		{"spec.policy.rules", diff.SettingsPolicy, isLower, "rule {key} removed", 0},
		{"spec.policy.rules", diff.SettingsPolicy, isChanged, "rule {key} changed", 0},
		{"spec.policy.waivers", diff.SettingsWaiver, isLower, "{key} is waived until {after}: {note}", 0},
	}
}

// isLower reports whether a setting is less strict on the new side. A missing setting has rank 0.
func isLower(before, after effectiveSetting) bool { return after.rank < before.rank }

// isLowerValue reports whether both sides have a setting, and the new value is less strict.
func isLowerValue(before, after effectiveSetting) bool {
	return !before.isMissing() && !after.isMissing() && isLower(before, after)
}

// isLowerLevel is isLower for the level of a cluster. It returns false if the cluster uses the default level on
// both sides. A change of the default level is a finding of its own.
func isLowerLevel(before, after effectiveSetting) bool {
	return isLower(before, after) && before.variant+after.variant != "defaultdefault"
}

// isReplaced reports whether the old side has a setting that the new side does not have, or has with another
// value.
func isReplaced(before, after effectiveSetting) bool {
	return !before.isMissing() && (before.text != after.text || before.variant != after.variant)
}

// isChanged reports whether both sides have a setting, with different values.
func isChanged(before, after effectiveSetting) bool {
	return !after.isMissing() && isReplaced(before, after)
}

// isOtherVariant reports whether both sides have a catalog, but in different repositories.
func isOtherVariant(before, after effectiveSetting) bool {
	return isChanged(before, after) && before.variant != after.variant
}

// isOtherImage reports whether both sides have a catalog in the same repository, with a different
// tag or digest.
func isOtherImage(before, after effectiveSetting) bool {
	return isChanged(before, after) && before.variant == after.variant
}

// isExtended reports whether both sides have a set, and the new set has additional items.
func isExtended(before, after effectiveSetting) bool {
	return !before.isMissing() && hasAddedItems(before, after)
}

// hasAddedItems reports whether the new side has a set with additional items, or a set that the old side lacks.
func hasAddedItems(before, after effectiveSetting) bool { return len(addedItems(before, after)) > 0 }

// addedItems returns the sorted texts of the items that only the new set has.
func addedItems(before, after effectiveSetting) []string {
	added := maps.Clone(after.items)
	maps.DeleteFunc(added, func(id, _ string) bool { return before.items[id] != "" })
	return slices.Sorted(maps.Values(added))
}

// compareSettings returns a finding for each setting that is less strict on the new side. It returns none if
// policyBase returns nil.
func (c *Comparison) compareSettings() ([]diff.Finding, error) {
	if c.policyBase() == nil {
		return nil, nil
	}
	names := c.comparedNames()
	before, err := c.effectiveSettings(c.Before, names)
	if err != nil {
		return nil, c.Before.wrapName(err)
	}
	after, err := c.effectiveSettings(c.After, names)
	if err != nil {
		return nil, c.After.wrapName(err)
	}
	var found []diff.Finding
	for _, setting := range sensitiveSettings() {
		for _, b := range after {
			if b.path == setting.path {
				found = append(found, c.loosenedSetting(setting, before.find(b.path, b.key), *b)...)
			}
		}
		for _, a := range before {
			if a.path == setting.path && after.find(a.path, a.key).isMissing() {
				found = append(found, c.loosenedSetting(setting, *a, effectiveSetting{})...)
			}
		}
	}
	return found, nil
}

// comparedNames returns the names in the settings of both sides, sorted.
func (c *Comparison) comparedNames() comparedNames {
	var out comparedNames
	for _, s := range []*Side{c.Before, c.After} {
		for _, t := range s.project.Settings.Trust {
			out.patterns = append(out.patterns, t.Match)
		}
		out.clusters = append(out.clusters, s.project.Settings.ClusterNames()...)
		_, isSet := s.project.Settings.Fields["spec.policy.vulnerabilities.added"]
		out.vulnerabilities = out.vulnerabilities || isSet
	}
	for _, list := range []*[]string{&out.patterns, &out.clusters} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return out
}

// loosenedSetting returns findings if a setting became less strict. For mirrors, these are one finding for each
// added mirror. For any other setting, it is a single finding. Positions are in the settings of the new side.
func (c *Comparison) loosenedSetting(setting sensitiveSetting, before, after effectiveSetting) []diff.Finding {
	if !setting.isLooser(before, after) {
		return nil
	}
	field, items := cmp.Or(after.field, setting.path), addedItems(before, after)
	words := strings.NewReplacer("{key}", cmp.Or(after.key, before.key), "{after}", after.text, "{note}", after.note, "{items}", strings.Join(items, ", "))
	f := diff.Finding{Rule: setting.rule, Severity: setting.severity, Field: field, Before: before.text, After: after.text, Message: words.Replace(setting.message)}
	f.Place.Path = c.InRepo(settings.FileName)
	w := c.After.project.Settings
	if p := w.At(field); p.Line > 0 && p.File == w.File {
		f.Place.Line, f.Place.Column, f.Place.EndLine, f.Place.EndCol = p.Line, p.Col, p.Line, p.Col+1
	}
	if setting.path != "spec.mirrors" {
		return []diff.Finding{f}
	}
	var out []diff.Finding
	for _, f.After = range items {
		out = append(out, f)
	}
	return out
}

// changesOnlyPolicy reports whether the sides differ only in spec.policy and spec.trust. Other
// settings, the lock and the tree must be equal.
func (c *Comparison) changesOnlyPolicy(found []diff.Finding) bool {
	if c.Before.Lock == nil || c.After.Lock == nil {
		return false
	}
	return !slices.ContainsFunc(found, func(f diff.Finding) bool {
		return f.Rule != diff.SettingsTrust && f.Rule != diff.SettingsPolicy && f.Rule != diff.SettingsWaiver
	}) &&
		bytes.Equal(otherSettings(c.Before.project.Settings), otherSettings(c.After.project.Settings)) &&
		maps.EqualFunc(c.Before.Contents, c.After.Contents, bytes.Equal) && // before the locks: faster
		bytes.Equal(lockfile.Format(c.Before.Lock), lockfile.Format(c.After.Lock))
}

// otherSettings returns the effective settings except for the policy and trust.
func otherSettings(w *settings.Workspace) []byte {
	other := *w
	other.Policy, other.Trust, other.Fields = settings.Default().Policy, nil, maps.Clone(w.Fields)
	maps.DeleteFunc(other.Fields, func(field string, _ diag.Pos) bool {
		return strings.HasPrefix(field, "spec.policy") || strings.HasPrefix(field, "spec.trust")
	})
	return other.EffectiveJSON()
}
