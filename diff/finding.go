package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Finding is a change that a reviewer should see.
type Finding struct {
	Rule      string   // stable ID, such as "crd.field-removed"
	Severity  Severity // "high"
	Operator  string   // "namespace/package"; empty if the object belongs to no operator
	Object    Ref      // zero for a finding about a block of the lock
	Field     string   // such as "v1 spec.storage.size", "spec.selector" or "secrets, pods"
	Container string   // name of the container; empty for other findings
	Before    string   // value before; empty if absent
	After     string   // value after; empty if absent
	Message   string   // one line; does not repeat the name of the object
	Why       string   // risk of the change
	Place     Region   // location of the change in a file
	Link      string   // URL of Place on the forge; empty if unknown
	Waiver    string   // reason of the waiver; empty if there is none
	Clusters  []string // affected clusters, sorted; nil means all

	where    *Object     // the object in the file of Place
	objects  pair        // the object before and after
	path     fieldPath   // path of Field in the document
	explains []fieldPath // covered fields of the object in where (see claims); nil means path
	detail   detail      // additional data of some rules; nil for most findings
}

// detail is additional data of a finding that only some rules have.
type detail interface {
	// parts splits a finding into the smallest parts that a waiver can select. whole is the finding
	// as a single part.
	parts(whole part) []part
	// selectParts returns a finding reduced to the parts with the given indexes.
	selectParts(f Finding, indexes []int) Finding
	// addTo adds the detail to the JSON form of the finding.
	addTo(*findingObject)
}

// Region is a range of lines in a file before or after the change.
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

// family returns the prefix of the rule ID, such as "crd".
func (f Finding) family() string {
	family, _, _ := strings.Cut(f.Rule, ".")
	return family
}

// RuleInfo describes a rule: a kind of finding.
type RuleInfo struct {
	ID       string
	Severity Severity // default severity; options override it, and a single finding may be less severe
	Title    string   // short description, such as "field removed"
	Why      string
}

func rulesByID() map[string]RuleInfo {
	out := map[string]RuleInfo{}
	for _, r := range Rules() {
		out[r.ID] = r
	}
	return out
}

// family is a group of rules and the checks that report them. A check may also report findings of
// another family.
type family struct {
	rules  func() []RuleInfo
	checks []check
}

// check runs one comparison and adds its findings.
type check func(*comparison)

// ruleFamilies returns all families. Their checks run in this order.
func ruleFamilies() []family {
	return []family{
		{crdRules, []check{compareCRDs}},
		{resourceRules, []check{compareResources}},
		{rbacRules, []check{comparePermissions}},
		{imageRules, []check{compareImages}},
		{webhookRules, []check{compareWebhooks}},
		{networkPolicyRules, []check{compareNetworkPolicies, compareSelected}},
		{certificateRules, []check{compareCertificates}},
		{apiRules, []check{compareAPIs}},
		{podRules, []check{comparePods, compareSecrets, compareSecurityLevels, compareNamespaces, comparePriorities}},
		{dataRules, []check{compareDeletions, compareImmutable}},
		{upgradeRules, []check{compareUpgrades, compareTreeVersions, compareLeftovers}},
		{metadataRules, []check{compareMetadata}},
		{lifecycleRules, []check{compareLifecycles}},
		{vulnerabilityRules, []check{compareScans}},
		{objectRules, []check{compareObjects}},
		{clusterRules, nil},
		{settingRules, nil},
		{stateRules, nil},
	}
}

// Rules returns all rules, sorted by ID.
func Rules() []RuleInfo {
	var all []RuleInfo
	for _, f := range ruleFamilies() {
		all = append(all, f.rules()...)
	}
	slices.SortFunc(all, func(a, b RuleInfo) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Severity is the risk of a finding.
type Severity int

// The severities, in ascending order. Findings of severity Off are not reported.
const (
	Off      Severity = iota
	Info              // for information: nothing breaks
	Low               // a change of behaviour that is usual in an upgrade
	Medium            // a reviewer should look at it
	High              // breaks something, or grants dangerous permissions
	Critical          // loses data, is refused by the API server, or grants control of the cluster
)

// severities returns the severities of findings, highest first.
func severities() []Severity { return []Severity{Critical, High, Medium, Low, Info} }

// String returns "critical", "high", "medium", "low", "info" or "off".
func (s Severity) String() string {
	names := [...]string{"off", "info", "low", "medium", "high", "critical"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("severity(%d)", int(s))
	}
	return names[s]
}

// ParseSeverity parses the name of a severity, in upper or lower case.
func ParseSeverity(text string) (Severity, error) {
	for s := Off; s <= Critical; s++ {
		if strings.EqualFold(text, s.String()) {
			return s, nil
		}
	}
	return Off, fmt.Errorf("severity %q: must be one of critical, high, medium, low, info, off", text)
}
