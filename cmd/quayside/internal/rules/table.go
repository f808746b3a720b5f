package rules

// Part is the part of a state that a rule is about. A command evaluates the rules of the parts that
// it has.
type Part string

// The parts of a state.
const (
	Settings     Part = "settings"     // settings
	Operators    Part = "operators"    // settings and lock
	Requests     Part = "requests"     // declarations and lock
	Declarations Part = "declarations" // declarations with their namespaces
	Waivers      Part = "waivers"      // waivers and lock
	Repo         Part = "repository"   // lock and repository
	Outputs      Part = "outputs"      // rendered trees in the repository
	Needs        Part = "needs"        // rendered objects, observations
	Selectors    Part = "selectors"    // rendered objects, overlays
	Clusters     Part = "clusters"     // objects of the clusters
	Policy       Part = "policy"       // objects of the clusters, rules of the policy
)

// rule is a rule about a part of a state.
type rule struct {
	id    string
	about Part
	check func(*State) (Findings, error)
}

// table returns all rules.
func table() []rule {
	return []rule{
		{"policy-expressions", Settings, checkExpressions},
		{"cluster-names", Settings, checkClusterNames},
		{"followed-environment", Settings, checkFollows},
		{"cluster-operators", Operators, checkClusterOperators},
		{"waiver-operators", Operators, checkWaiverOperators},
		{"unused-waivers", Waivers, checkUnusedWaivers},
		{"misspelled-apis", Requests, checkMisspelled},
		{"dropped-paths", Requests, checkDroppedPaths},
		{"declared-twice", Declarations, checkDuplicates},
		{"still-applied", Repo, checkStillApplied},
		{"abandoned-trees", Outputs, checkAbandonedTrees},
		{"ignored-observations", Needs, checkObservations},
		{"unmet-needs", Needs, checkNeeds},
		{"selectors", Selectors, checkSelectors},
		{"overlays", Clusters, checkOverlays},
		{"policy-rules", Policy, checkPolicy},
	}
}

// Evaluate returns the findings of the rules about a part. The error is that of a rule that cannot
// be evaluated.
func Evaluate(s *State, about Part) (Findings, error) {
	var out Findings
	for _, r := range table() {
		if r.about != about {
			continue
		}
		found, err := r.check(s)
		if err != nil {
			return nil, err
		}
		for i := range found {
			found[i].Rule = r.id
		}
		out = append(out, found...)
	}
	return out, nil
}

// Check evaluates the rules about a part that have no warnings.
func Check(s *State, about Part) error {
	found, err := Evaluate(s, about)
	if err != nil {
		return err
	}
	return found.Err()
}
