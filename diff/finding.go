package diff

import (
	"cmp"
	"slices"
	"strings"
)

// Finding is a change that a reviewer should see.
type Finding struct {
	Rule      string   // stable ID, such as "crd.field-removed"
	Severity  Severity // "high"
	Operator  string   // "namespace/package"; empty if the object belongs to no operator
	Object    Ref      // zero for a finding about a pin
	Field     string   // such as "v1 spec.storage.size", "spec.selector" or "secrets, pods"
	Container string   // name of the container; empty for other findings
	Also      []string // further fields of the object with the same change, in order
	Before    string   // empty: absent
	After     string   // empty: absent
	Message   string   // one line without the name of the object
	Why       string   // risk of the change
	Place     Region   // location of the change in a file
	Link      string   // URL of Place on the forge; empty if unknown
	Waiver    string   // reason of the waiver; empty if there is none
	Clusters  []string // affected clusters, sorted; nil means all

	Vulnerabilities []Vulnerability // most severe first; at most maxListed
	Counts          map[string]int  // number of vulnerabilities by scanner severity; nil for other rules
	BytesBefore     int64           // compressed size of the image in Before; 0 means unknown
	BytesAfter      int64           // compressed size of the image in After; 0 means unknown

	where   *Object // object in the file of Place
	was, is *Object // the object on both sides; nil if absent
	steps   []step  // path to Field in the file

	covers [][]step // paths of the fields, in the object where, that the finding explains; nil means steps

	locations     []location // all locations of the same change, including the first; nil if there is only one
	clause        *clause    // permissions in the finding, or nil
	partlyScanned bool       // whether some images were not scanned
}

// location is one of several locations of a finding.
type location struct {
	Object           Ref
	Field, Container string
	Place            Region
	where            *Object
	was, is          *Object
	steps            []step
	covers           [][]step
}

func (f Finding) location() location {
	return location{f.Object, f.Field, f.Container, f.Place, f.where, f.was, f.is, f.steps, f.covers}
}

// Region is a region in a file of one of the two states.
type Region struct {
	Path    string `json:"path"`
	Removed bool   `json:"removed,omitempty"` // the file belongs to the state before
	Line    int    `json:"line,omitempty"`    // first line, from 1; 0 means the whole file
	Column  int    `json:"column,omitempty"`
	EndLine int    `json:"endLine,omitempty"`
	EndCol  int    `json:"endColumn,omitempty"`
}

// compareFindings orders findings by severity (highest first), operator, rule, object, field and
// values.
func compareFindings(a, b Finding) int {
	return cmp.Or(cmp.Compare(b.Severity, a.Severity), strings.Compare(a.Operator, b.Operator),
		strings.Compare(a.Rule, b.Rule), a.Object.Compare(b.Object), strings.Compare(a.Field, b.Field),
		strings.Compare(a.Before, b.Before), strings.Compare(a.After, b.After), strings.Compare(a.Message, b.Message), slices.Compare(a.Clusters, b.Clusters))
}

// Family returns the prefix of the rule ID, such as "crd".
func (f Finding) Family() string {
	family, _, _ := strings.Cut(f.Rule, ".")
	return family
}

// Rule is a kind of finding.
type Rule struct {
	ID       string
	Severity Severity // default severity; options may override it, and single findings may have a lower one
	Title    string   // short description, such as "field removed"
	Why      string
}

// rulesByID returns all rules by ID.
func rulesByID() map[string]Rule {
	out := map[string]Rule{}
	for _, r := range Rules() {
		out[r.ID] = r
	}
	return out
}

// family is a group of rules with their checks. Checks of other families may also report findings
// of these rules.
type family struct {
	rules  func() []Rule
	checks []check
}

// check adds findings to a comparison.
type check func(*comparison)

// ruleFamilies returns all families in the order of their checks.
func ruleFamilies() []family {
	return []family{
		{crdRules, []check{compareCRDs}},
		{resourceRules, []check{compareResources}},
		{rbacRules, []check{comparePermissions}},
		{imageRules, []check{compareImages}},
		{webhookRules, []check{compareWebhooks}},
		{apiRules, []check{compareAPIs}},
		{podRules, []check{comparePods, compareSecurityLevels, compareNamespaces, comparePriorities}},
		{dataRules, []check{compareDeletions, compareImmutable}},
		{upgradeRules, []check{compareUpgrades, compareTreeVersions, compareLeftovers}},
		{lifecycleRules, []check{compareLifecycles}},
		{vulnerabilityRules, []check{compareScans}},
		{objectRules, []check{compareObjects}},
		{clusterRules, nil},
		{settingRules, nil},
	}
}

// Rules returns all rules, sorted by ID.
func Rules() []Rule {
	var all []Rule
	for _, f := range ruleFamilies() {
		all = append(all, f.rules()...)
	}
	slices.SortFunc(all, func(a, b Rule) int { return strings.Compare(a.ID, b.ID) })
	return all
}
