package checkup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog/lifecycle"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/diff/state"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// checker judges locks of one workspace.
type checker struct {
	p        *project.Project
	in       *project.Inputs
	target   Target
	clusters []string
	lock     *lockfile.File
}

// judge fills in what is said of a lock, without operators that no cluster which is
// looked at gets, and returns the pins of which not all is known.
func (c *checker) judge(ctx context.Context, lock *lockfile.File, j *Judgement) ([]string, error) {
	there := map[string]bool{}
	var seen []Seen
	err := state.Standing(ctx, c.p, lock, c.clusters, func(clusters []string, s diff.State) error {
		for _, p := range s.Pins {
			there[p.Key()] = true
		}
		found, err := diff.Unserved(s, c.target.Kubernetes)
		seen = append(seen, Seen{clusters, found})
		return err
	})
	if err != nil {
		return nil, err
	}
	c.converted(ctx, lock, seen)
	here := lock.With(slices.DeleteFunc(slices.Clone(lock.Pins), func(p lockfile.Pin) bool { return !there[p.Key()] }))
	misfits, unknown := resolve.Unfit(c.in.Index, here, c.target.Kubernetes, c.target.OpenShift)
	*j = Judge(here.Pins, func(p lockfile.Pin) *lifecycle.Version { return resolve.LifecycleOf(c.in.Index, p) }, c.target, misfits, seen)
	return unknown, nil
}

// converted makes milder what is found of objects at an API that goes and that
// rendering for the target turns into what is served there.
func (c *checker) converted(ctx context.Context, lock *lockfile.File, seen []Seen) {
	stays := map[string]map[diff.Ref]bool{} // by operator: what is in the way still; nil where it cannot be rendered
	for _, s := range seen {
		for i := range s.Found {
			f := &s.Found[i]
			if f.Rule != "api.removed" || f.Operator == "" {
				continue
			}
			rest, known := stays[f.Operator]
			if !known {
				rest = c.afterwards(ctx, lock, f.Operator)
				stays[f.Operator] = rest
			}
			if rest != nil && !rest[f.Object] {
				f.Severity = diff.Low
				f.Message += fmt.Sprintf("; rendering converts it once kubernetesVersion in quayside.yaml is %s", c.target.Kubernetes)
			}
		}
	}
}

// afterwards returns what of an operator is at an API that the target does not
// serve although it is rendered for it; nil where it cannot be rendered for it.
func (c *checker) afterwards(ctx context.Context, lock *lockfile.File, operator string) map[diff.Ref]bool {
	namespace, pkg, _ := strings.Cut(operator, "/")
	pin, ok := lock.Pin(namespace, pkg)
	if !ok {
		return nil
	}
	there, settings := *c.p, *c.p.Settings
	settings.KubernetesVersion, settings.Clusters = c.target.Kubernetes, nil
	there.Settings = &settings
	s, err := state.Plain(ctx, &there, lock.With([]lockfile.Pin{pin}))
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
