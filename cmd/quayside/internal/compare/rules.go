package compare

import (
	"maps"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// CheckRules applies the policy rules about objects to the rendered lock in each cluster. The
// error has a *workspace.PolicyError for each violation. The warnings are about the waivers of
// these rules.
func CheckRules(p *workspace.Project, lock *lockfile.File, res *render.Result) ([]diag.Warning, error) {
	c, s, err := renderLock(p, lock, res)
	if err != nil {
		return nil, err
	}
	policy, err := policyOf(s.project)
	if err != nil {
		return nil, err
	}
	if !policy.TreeRules() {
		return nil, nil
	}
	base, err := s.baseState()
	if err != nil {
		return nil, err
	}
	judge, err := policy.OnTree(base, p.Today)
	if err != nil {
		return nil, err
	}
	if len(s.clusters()) == 0 {
		err = judge.Add(nil, base)
	} else {
		err = c.forEachGroup(s, s.clusters(), base, func(got groupState) error { return judge.Add(got.clusters, got.state) })
	}
	if err == nil {
		err = s.judgeEngine(judge)
	}
	if err != nil {
		return nil, err
	}
	refused, waivers := judge.Verdict()
	var faults diag.List
	for _, f := range refused {
		faults.Add(f.Pos, &workspace.PolicyError{Msg: f.Msg})
	}
	return waivers, faults.Err()
}

// judgeEngine applies the rules to the objects for GitOps engines.
func (s *Side) judgeEngine(judge *diff.TreeJudge) error {
	dirs := s.engineFiles()
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		objects, err := diff.EngineObjects(dirs[dir])
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
