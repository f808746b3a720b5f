package rules

import (
	"maps"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/diff"
)

// PolicyError is a violation of a policy.
type PolicyError struct{ Msg string }

// Error returns the message.
func (e *PolicyError) Error() string { return e.Msg }

// checkPolicy applies the policy rules about objects to the objects of each cluster. It returns a
// [*PolicyError] for each violation, and warnings about the waivers of these rules.
func checkPolicy(s *State) (Findings, error) {
	policy, err := PolicyOf(s.Settings)
	if err != nil || !policy.TreeRules() {
		return nil, err
	}
	f, err := s.Fleet()
	if err != nil {
		return nil, err
	}
	base, err := f.BaseState()
	if err != nil {
		return nil, err
	}
	judge, err := policy.OnTree(base, s.Today)
	if err != nil {
		return nil, err
	}
	if len(f.Clusters()) == 0 {
		err = judge.Add(nil, base)
	} else {
		err = f.ForEachGroup(f.Clusters(), base, func(g fleet.Group) error { return judge.Add(g.Clusters, g.State) })
	}
	if err == nil {
		err = judgeEngine(judge, f.Tree)
	}
	if err != nil {
		return nil, err
	}
	refused, waivers := judge.Verdict()
	out := warningsOf(waivers)
	for _, r := range refused {
		out = append(out, Finding{Severity: Error, Pos: r.Pos, Err: &PolicyError{Msg: r.Msg}})
	}
	return out, nil
}

// judgeEngine applies the rules to the objects for GitOps engines.
func judgeEngine(judge *diff.TreeJudge, t *fleet.Tree) error {
	dirs := t.EngineFiles()
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		objects, err := diff.EngineObjects(dirs[dir], "")
		if err != nil {
			return err
		}
		objects = slices.DeleteFunc(objects, func(o diff.Object) bool { return o.Key().Is("File.quayside.dev") })
		if err := judge.Add(nil, diff.State{Objects: objects}); err != nil {
			return err
		}
	}
	return nil
}
