package diff

import (
	"cmp"
	"slices"
	"strings"
)

// Finding is one thing that a reviewer should know.
type Finding struct {
	Rule      string   // stable: "crd.field-removed"
	Severity  Severity // "high"
	Operator  string   // "namespace/package"; empty where no pin is to blame
	Object    Ref      // zero where the finding is about the pin itself
	Field     string   // "v1 spec.storage.size", "spec.selector", "secrets, pods"
	Container string   // of the object; empty where the finding is not about one
	Also      []string // more fields of the same object with the same change, in order
	Before    string   // empty: absent
	After     string   // empty: absent
	Message   string   // one line, without the object's name
	Why       string   // why it matters
	Place     Place    // where to look
	Link      string   // the page of the forge that shows Place; empty where none does
	Waiver    string   // the reason, where the policy waives it
	Clusters  []string // that it holds for, sorted; nil: all

	Vulnerabilities []Vulnerability // that it is about, the worst first; of very many, some
	Counts          map[string]int  // how many there are, by the scanners' severity; nil where it is about one
	BytesBefore     int64           // of the image that Before is, as registries keep it; 0 where that is not known
	BytesAfter      int64           // likewise

	where *Object // holds the file that Place names
	steps []step  // to Field, in the file

	spots  []spot  // where the same change is, the first one included; nil: only where the finding is
	clause *clause // the permissions that it is about; nil: none
	partly bool    // not all images were scanned
}

// spot is a place of a finding that several have in common.
type spot struct {
	Object           Ref
	Field, Container string
	Place            Place
	where            *Object
	steps            []step
}

func (f Finding) spot() spot { return spot{f.Object, f.Field, f.Container, f.Place, f.where, f.steps} }

// Place is a region of a file of one of the two states.
type Place struct {
	Path    string `json:"path"`
	Removed bool   `json:"removed,omitempty"` // the file is of the state before
	Line    int    `json:"line,omitempty"`    // from 1; 0 means the file as a whole
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

// Family returns the part of the rule before the dot: "crd".
func (f Finding) Family() string {
	family, _, _ := strings.Cut(f.Rule, ".")
	return family
}

// Rule describes one kind of finding.
type Rule struct {
	ID       string
	Severity Severity // unless Options.Severity says otherwise; a single finding may be milder
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

// Rules returns every rule, by ID.
func Rules() []Rule {
	all := slices.Concat(crdRules(), resourceRules(), rbacRules(), imageRules(), webhookRules(),
		apiRules(), podRules(), dataRules(), objectRules(), upgradeRules(), lifecycleRules(), clusterRules(), vulnerabilityRules())
	slices.SortFunc(all, func(a, b Rule) int { return strings.Compare(a.ID, b.ID) })
	return all
}
