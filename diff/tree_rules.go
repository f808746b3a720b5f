package diff

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
)

// TreeJudge evaluates the policy rules about rendered objects.
type TreeJudge struct {
	rules     []compiledRule
	waiverSet *waiverSet
	shared    map[uintptr]map[string]any // contents of shared objects by address; the references keep the addresses valid
	results   map[evaluationKey]bool     // cached results for shared objects
	refusals  itemGroups[refusal]
	clusters  []string
}

// evaluationKey is the key of TreeJudge.results: one rule, object and cluster.
type evaluationKey struct {
	rule    int
	content uintptr // address of the content of the object
	cluster string  // empty if the rule does not use the cluster
}

// refusal is an object that a rule refuses.
type refusal struct {
	finding Finding
	rule    CELRule
}

// OnTree returns a TreeJudge for the rules of p. Objects of base, which all clusters share, are
// evaluated only once. today is the current day, such as "2026-11-21". The error lists all rules
// with invalid CEL.
func (p Policy) OnTree(base State, today string) (*TreeJudge, error) {
	rules, err := p.compile(true)
	if err != nil {
		return nil, err
	}
	j := &TreeJudge{rules: rules, shared: map[uintptr]map[string]any{}, results: map[evaluationKey]bool{}}
	j.waiverSet = p.selectWaivers(today, func(w diag.Waiver) bool { return p.isOwnRule(w, true) })
	for i := range base.Objects {
		j.shared[objectAddress(&base.Objects[i])] = base.Objects[i].Content
	}
	return j, nil
}

// objectAddress returns the memory address of the content of an object.
func objectAddress(o *Object) uintptr { return reflect.ValueOf(o.Content).Pointer() }

// TreeRules reports whether the policy has rules about rendered objects.
func (p Policy) TreeRules() bool {
	return slices.ContainsFunc(p.Rules, func(r CELRule) bool { return r.Tree })
}

// Add evaluates the rules for the objects of some clusters. clusters is empty for a tree without
// clusters, and for objects that belong to no cluster.
func (j *TreeJudge) Add(clusters []string, s State) error {
	j.clusters = append(j.clusters, clusters...)
	if len(clusters) == 0 {
		clusters = []string{""}
	}
	for i := range s.Objects {
		o := &s.Objects[i]
		for at, rule := range j.rules {
			for _, cluster := range clusters {
				refused, err := j.refuses(at, o, cluster)
				if err != nil {
					return diag.Errorf(rule.Pos, "policy rule %q: %s: %w", rule.Name, o.Ref(), err)
				}
				if refused {
					f := Finding{Rule: rule.Name, Operator: o.Operator, Object: o.Ref(), Place: Region{Path: o.Path}}
					j.refusals.add(refusal{f, rule.CELRule}, []string{cluster}, rule.Name, o.Operator, o.Ref(), o.Path)
				}
			}
		}
	}
	return nil
}

// refuses reports whether a rule, given by its index, refuses an object in a cluster. Results for shared
// objects are cached.
func (j *TreeJudge) refuses(at int, o *Object, cluster string) (bool, error) {
	rule := j.rules[at]
	key := evaluationKey{rule: at, content: objectAddress(o)}
	if strings.Contains(rule.Expression, "cluster") {
		key.cluster = cluster
	}
	refused, known := j.results[key]
	if known {
		return refused, nil
	}
	refused, err := rule.program.Holds(map[string]any{"object": celObject(o), "operator": o.Operator, "cluster": cluster})
	if err == nil && j.shared[key.content] != nil {
		j.results[key] = refused
	}
	return refused, err
}

// Verdict returns an error for each refused object, at the position of its file. It also returns warnings about
// the waivers of these rules.
func (j *TreeJudge) Verdict() (refused []*diag.Error, waivers []diag.Warning) {
	j.waiverSet.clusters = j.clusters
	j.refusals.each(nil, func(h refusal, clusters []string) {
		if len(j.clusters) > 0 && len(clusters) < len(j.clusters) && clusters[0] != "" {
			h.finding.Clusters = clusters
		}
		for _, f := range j.waiverSet.waive(h.finding, h.finding.Rule) {
			if f.Waiver == "" {
				refused = append(refused, diag.Errorf(diag.Pos{File: f.Place.Path}, "refused by policy rule %q: %s%s: %s",
					f.Rule, clusterPrefix(f.Clusters), f.Object, cmp.Or(h.rule.Message, h.rule.Expression)))
			}
		}
	})
	return refused, diag.Review(j.waiverSet.waivers, j.waiverSet.used, j.waiverSet.objects, j.waiverSet.today)
}
