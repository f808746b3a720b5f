package state

import (
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Rules judges what each cluster gets of what a lock renders to by the rules of the
// policy that are about objects. The error holds a *project.PolicyError for each object
// that is refused; the warnings are about the waivers of these rules.
func Rules(p *project.Project, lock *lockfile.File, res *render.Result) ([]diag.Warning, error) {
	c, s, err := beside(p, res)
	if err != nil {
		return nil, err
	}
	s.Name, s.lock = project.LockFile, lock
	policy, err := s.policy()
	if err != nil {
		return nil, err
	}
	if !policy.TreeRules() {
		return nil, nil
	}
	base, err := s.base()
	if err != nil {
		return nil, err
	}
	judge, err := policy.OnTree(base, p.Today)
	if err != nil {
		return nil, err
	}
	if len(s.clusters) == 0 {
		err = judge.Add(nil, base)
	} else {
		err = c.alone(s, base, func(got gets) error { return judge.Add(got.clusters, got.state) })
	}
	if err != nil {
		return nil, err
	}
	refused, waivers := judge.Verdict()
	var faults diag.List
	for _, f := range refused {
		faults.Add(f.Pos, &project.PolicyError{Msg: f.Msg})
	}
	return waivers, faults.Err()
}
