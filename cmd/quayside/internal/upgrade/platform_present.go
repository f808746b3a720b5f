package upgrade

import (
	"context"
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	comparing "github.com/quayside/quayside/cmd/quayside/internal/compare"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// platformChecker judges locks of one workspace for a target platform.
type platformChecker struct {
	p        *workspace.Project
	problem  *workspace.Problem
	target   Platform
	clusters []string
	lock     *lockfile.File
	messages []comparing.Message
}

// judge sets j to the verdicts and problems of a lock, and returns the pins whose requirements are unknown. It
// ignores operators that no checked cluster gets.
func (c *platformChecker) judge(ctx context.Context, lock *lockfile.File, j *Judgement) ([]string, error) {
	installed := map[string]bool{}
	var findings []PlatformFinding
	messages, err := comparing.ForEachGroup(ctx, c.p, lock, c.clusters, func(clusters []string, s diff.State) error {
		for _, p := range s.Pins {
			installed[p.Key()] = true
		}
		found, err := diff.Unserved(s, c.target.Kubernetes)
		findings = append(findings, PlatformFinding{clusters, found})
		return err
	})
	c.messages = append(c.messages, messages...)
	if err != nil {
		return nil, err
	}
	c.lowerConverted(ctx, lock, findings)
	checked := lock.With(slices.DeleteFunc(slices.Clone(lock.Pins), func(p lockfile.Pin) bool { return !installed[p.Key()] }))
	misfits, unknown := resolve.FindIncompatible(c.problem.Index, checked, c.target.Kubernetes, c.target.OpenShift)
	*j = JudgePlatform(checked.Pins, func(p lockfile.Pin) *catalog.SupportedVersion { return resolve.LifecycleOf(c.problem.Index, p) }, c.target, misfits, findings)
	return unknown, nil
}

// lowerConverted lowers the severity of each finding about a removed API that render will replace once
// quayside.yaml has the target version.
func (c *platformChecker) lowerConverted(ctx context.Context, lock *lockfile.File, seen []PlatformFinding) {
	removed := map[string]map[diff.Ref]bool{} // results of removedObjects, by operator
	for _, s := range seen {
		for i := range s.Findings {
			f := &s.Findings[i]
			if f.Rule != "api.removed" || f.Operator == "" {
				continue
			}
			rest, known := removed[f.Operator]
			if !known {
				rest = c.removedObjects(ctx, lock, f.Operator)
				removed[f.Operator] = rest
			}
			if rest != nil && !rest[f.Object] {
				f.Severity = diff.Low
				f.Message += fmt.Sprintf("; render converts it once kubernetesVersion in quayside.yaml is %s", c.target.Kubernetes)
			}
		}
	}
}

// removedObjects renders an operator for the target version. It returns the objects whose API is deprecated
// (value false) or no longer served (value true), or nil if rendering fails.
func (c *platformChecker) removedObjects(ctx context.Context, lock *lockfile.File, operator string) map[diff.Ref]bool {
	pin, ok := lock.Operator(operator)
	if !ok {
		return nil
	}
	project, settings := *c.p, *c.p.Settings
	settings.KubernetesVersion, settings.Clusters = c.target.Kubernetes, nil
	project.Settings = &settings
	s, err := comparing.RenderBase(ctx, &project, lock.With([]lockfile.Pin{pin}))
	if err != nil {
		return nil
	}
	found, err := diff.Unserved(s, c.target.Kubernetes)
	if err != nil {
		return nil
	}
	rest := map[diff.Ref]bool{}
	for _, f := range found {
		rest[f.Object] = f.Severity >= diff.High
	}
	return rest
}
