package diff

import (
	"cmp"
	"slices"
	"strings"
)

// Finding is one change that a reviewer should know about.
type Finding struct {
	Rule      string   // stable: "crd.field-removed"
	Severity  Severity // "high"
	Operator  string   // "namespace/package"; empty if the object belongs to no pin
	Object    Ref      // zero for a finding about the pin itself
	Field     string   // "v1 spec.storage.size", "spec.selector", "secrets, pods"
	Container string   // of the object; empty if the finding is not about a container
	Also      []string // more fields of the same object with the same change, in order
	Before    string   // empty: absent
	After     string   // empty: absent
	Message   string   // one line, without the object's name
	Why       string   // why it matters
	Place     Place    // location of the change
	Link      string   // the page of Place on the forge; empty if there is none
	Waiver    string   // the reason of the waiver; empty without one
	Clusters  []string // the affected clusters, sorted; nil: all

	Vulnerabilities []Vulnerability // the worst first; limited to maxListed
	Counts          map[string]int  // by the scanners' severity, of a finding about many vulnerabilities; nil otherwise
	BytesBefore     int64           // compressed size of the image Before; 0: unknown
	BytesAfter      int64           // likewise

	where   *Object // its file is the file of Place
	was, is *Object // the object on both sides; nil where it is absent
	steps   []step  // path to Field in the file

	covers [][]step // the fields of where that the finding explains; nil: those at steps

	spots  []spot  // all places with the same change, including the first; nil: only this one
	clause *clause // the permissions of the finding; nil: none
	partly bool    // some images were not scanned
}

// spot is one of several places of a finding.
type spot struct {
	Object           Ref
	Field, Container string
	Place            Place
	where            *Object
	was, is          *Object
	steps            []step
	covers           [][]step
}

func (f Finding) spot() spot {
	return spot{f.Object, f.Field, f.Container, f.Place, f.where, f.was, f.is, f.steps, f.covers}
}

// Place is a region of a file of one of the two states.
type Place struct {
	Path    string `json:"path"`
	Removed bool   `json:"removed,omitempty"` // the file is one of the state before
	Line    int    `json:"line,omitempty"`    // 1-based; 0: the whole file
	Column  int    `json:"column,omitempty"`
	EndLine int    `json:"endLine,omitempty"`
	EndCol  int    `json:"endColumn,omitempty"`
}

// compareFindings orders by severity (worst first), operator, rule, object, field, values.
func compareFindings(a, b Finding) int {
	return cmp.Or(cmp.Compare(b.Severity, a.Severity), strings.Compare(a.Operator, b.Operator),
		strings.Compare(a.Rule, b.Rule), a.Object.Compare(b.Object), strings.Compare(a.Field, b.Field),
		strings.Compare(a.Before, b.Before), strings.Compare(a.After, b.After), strings.Compare(a.Message, b.Message), slices.Compare(a.Clusters, b.Clusters))
}

// Family returns the part of the rule ID before the dot: "crd".
func (f Finding) Family() string {
	family, _, _ := strings.Cut(f.Rule, ".")
	return family
}

// Rule describes one kind of finding.
type Rule struct {
	ID       string
	Severity Severity // default; Options.Severity changes it, and single findings may be milder
	Title    string   // "field removed from a custom resource definition"
	Why      string
}

// rulesByID returns every rule by its ID.
func rulesByID() map[string]Rule {
	out := map[string]Rule{}
	for _, r := range Rules() {
		out[r.ID] = r
	}
	return out
}

// family is a group of rules with their checks. The checks of other families may report
// findings of these rules, too.
type family struct {
	rules  func() []Rule
	checks []check
}

// check adds the findings of some rules to a comparison.
type check func(*comparison)

// ruleFamilies returns all rules, in the order of their checks.
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
		{upgradeRules, []check{compareUpgrades, compareLeftovers}},
		{lifecycleRules, []check{compareLifecycles}},
		{vulnerabilityRules, []check{compareScans}},
		{objectRules, []check{compareObjects}},
		{clusterRules, nil},
		{settingRules, nil},
	}
}

// Rules returns every rule, sorted by ID.
func Rules() []Rule {
	var all []Rule
	for _, f := range ruleFamilies() {
		all = append(all, f.rules()...)
	}
	slices.SortFunc(all, func(a, b Rule) int { return strings.Compare(a.ID, b.ID) })
	return all
}
