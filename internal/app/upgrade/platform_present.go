package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/diff"
	comparing "github.com/quayside/quayside/internal/app/compare"
	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/internal/model"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// platformChecker judges locks of one workspace.
type platformChecker struct {
	p        *workspace.Project
	in       *workspace.Inputs
	target   Platform
	clusters []string
	lock     *lockfile.File
}

// judge fills in the result for a lock, without operators that none of the checked clusters
// gets. It returns the pins with incomplete data.
func (c *platformChecker) judge(ctx context.Context, lock *lockfile.File, j *Judgement) ([]string, error) {
	there := map[string]bool{}
	var seen []PlatformFinding
	err := comparing.ForEachGroup(ctx, c.p, lock, c.clusters, func(clusters []string, s diff.State) error {
		for _, p := range s.Pins {
			there[p.Key()] = true
		}
		found, err := diff.Unserved(s, c.target.Kubernetes)
		seen = append(seen, PlatformFinding{clusters, found})
		return err
	})
	if err != nil {
		return nil, err
	}
	c.addConversions(ctx, lock, seen)
	here := lock.With(slices.DeleteFunc(slices.Clone(lock.Pins), func(p lockfile.Pin) bool { return !there[p.Key()] }))
	misfits, unknown := resolve.FindIncompatible(c.in.Index, here, c.target.Kubernetes, c.target.OpenShift)
	*j = JudgePlatform(here.Pins, func(p lockfile.Pin) *model.SupportedVersion { return resolve.LifecycleOf(c.in.Index, p) }, c.target, misfits, seen)
	return unknown, nil
}

// addConversions lowers the severity of findings on removed APIs if rendering for the
// target converts the object to a served API.
func (c *platformChecker) addConversions(ctx context.Context, lock *lockfile.File, seen []PlatformFinding) {
	stays := map[string]map[diff.Ref]bool{} // by operator: objects still at a removed API; nil if rendering fails
	for _, s := range seen {
		for i := range s.Found {
			f := &s.Found[i]
			if f.Rule != "api.removed" || f.Operator == "" {
				continue
			}
			rest, known := stays[f.Operator]
			if !known {
				rest = c.removedObjects(ctx, lock, f.Operator)
				stays[f.Operator] = rest
			}
			if rest != nil && !rest[f.Object] {
				f.Severity = diff.Low
				f.Message += fmt.Sprintf("; render converts it once kubernetesVersion in quayside.yaml is %s", c.target.Kubernetes)
			}
		}
	}
}

// removedObjects returns the objects of an operator that are at an API not served by the
// target, although rendered for it; nil if rendering fails.
func (c *platformChecker) removedObjects(ctx context.Context, lock *lockfile.File, operator string) map[diff.Ref]bool {
	namespace, pkg, _ := strings.Cut(operator, "/")
	pin, ok := lock.Pin(namespace, pkg)
	if !ok {
		return nil
	}
	there, settings := *c.p, *c.p.Settings
	settings.KubernetesVersion, settings.Clusters = c.target.Kubernetes, nil
	there.Settings = &settings
	s, err := comparing.Plain(ctx, &there, lock.With([]lockfile.Pin{pin}))
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
