package diff

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/waiver"
)

// TreeJudge judges what clusters get by the rules of a policy that are about objects.
type TreeJudge struct {
	rules  []compiled
	waived *waiving
	shared map[uintptr]map[string]any // contents of the objects of the base by address; holding them keeps the addresses theirs
	known  map[answer]bool            // of these
	hits   alike[hit]
	all    []string
}

// answer is a question to a rule that was asked before.
type answer struct {
	rule    int
	content uintptr // of the object
	cluster string  // empty where the rule does not ask for it
}

// hit is an object that a rule refuses.
type hit struct {
	finding Finding
	rule    CELRule
}

// OnTree returns a judge of objects. Those of base, which clusters have in common, are
// judged once. today is a day such as "2026-11-21". Errors are about rules that are no
// CEL, all at once.
func (p Policy) OnTree(base State, today string) (*TreeJudge, error) {
	rules, err := p.compile(true)
	if err != nil {
		return nil, err
	}
	j := &TreeJudge{rules: rules, shared: map[uintptr]map[string]any{}, known: map[answer]bool{}}
	j.waived = p.waiving(today, func(w waiver.Waiver) bool { return p.own(w, true) })
	for i := range base.Objects {
		j.shared[address(&base.Objects[i])] = base.Objects[i].Content
	}
	return j, nil
}

func address(o *Object) uintptr { return reflect.ValueOf(o.Content).Pointer() }

// TreeRules reports whether the policy has rules about objects.
func (p Policy) TreeRules() bool {
	return slices.ContainsFunc(p.Rules, func(r CELRule) bool { return r.Tree })
}

// Add judges what some clusters get, all of them the same. No names stand for a tree
// without clusters.
func (j *TreeJudge) Add(clusters []string, s State) error {
	j.all = append(j.all, clusters...)
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
					f := Finding{Rule: rule.Name, Operator: o.Operator, Object: o.Ref(), Place: Place{Path: o.Path}}
					j.hits.add(hit{f, rule.CELRule}, []string{cluster}, rule.Name, o.Operator, o.Ref(), o.Path)
				}
			}
		}
	}
	return nil
}

// refuses reports whether a rule refuses an object in a cluster. An object of the base
// has one answer where the rule does not ask for the cluster.
func (j *TreeJudge) refuses(at int, o *Object, cluster string) (bool, error) {
	rule := j.rules[at]
	asked := answer{rule: at, content: address(o)}
	if strings.Contains(rule.Expression, "cluster") {
		asked.cluster = cluster
	}
	refused, known := j.known[asked]
	if known {
		return refused, nil
	}
	refused, err := rule.program.Holds(map[string]any{"object": o.Whole(), "operator": o.Operator, "cluster": cluster})
	if err == nil && j.shared[asked.content] != nil {
		j.known[asked] = refused
	}
	return refused, err
}

// Verdict returns the objects that are refused, each a fault at its file, and warnings
// about the waivers of the rules.
func (j *TreeJudge) Verdict() (refused []*diag.Error, waivers []diag.Warning) {
	j.waived.clusters = j.all
	j.hits.each(nil, func(h hit, clusters []string) {
		if len(j.all) > 0 && len(clusters) < len(j.all) {
			h.finding.Clusters = clusters
		}
		for _, f := range j.waived.waive(h.finding, h.finding.Rule) {
			if f.Waiver == "" {
				refused = append(refused, diag.Errorf(diag.Pos{File: f.Place.Path}, "refused by policy rule %q: %s%s: %s",
					f.Rule, onlyIn(f.Clusters), f.Object, cmp.Or(h.rule.Message, h.rule.Expression)))
			}
		}
	})
	return refused, waiver.Review(j.waived.waivers, j.waived.used, j.waived.today)
}
