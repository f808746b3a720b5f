package compare

import (
	"context"
	"fmt"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
)

// ForEachGroup calls visit for every group of clusters that get the same objects. The state of the group
// includes the user's custom resources. names selects the clusters. If names is empty, all clusters are
// selected. An unknown name is an error. If the workspace has no clusters, ForEachGroup calls visit once with
// the tree before overlays. It uses the tree on disk if the tree is up to date with the lock. Otherwise it
// renders the lock. It writes no files.
func ForEachGroup(ctx context.Context, p *workspace.Project, lock *lockfile.File, names []string, visit func(clusters []string, s diff.State) error) ([]Message, error) {
	have := p.Settings.ClusterNames()
	for _, name := range names {
		if !slices.Contains(have, name) {
			return nil, fmt.Errorf("no cluster %q in quayside.yaml%s", name, diag.DidYouMean(name, slices.Sorted(slices.Values(have))))
		}
	}
	c, s, err := currentSide(ctx, p, lock)
	if err != nil {
		return c.TakeMessages(), err
	}
	whole := *s
	if whole.userManifests, err = c.readUserManifests(); err != nil {
		return c.TakeMessages(), err
	}
	var groups []group
	clusters := s.Clusters()
	for _, name := range clusters {
		x, err := s.Inputs(name)
		if err != nil {
			return c.TakeMessages(), err
		}
		groups = append(groups, group{names: []string{name}, after: x})
	}
	_, base, err := diff.Read(diff.Input{}, whole.source(groups))
	if err != nil {
		return c.TakeMessages(), err
	}
	if len(clusters) == 0 {
		return c.TakeMessages(), visit(nil, base)
	}
	if len(names) > 0 {
		clusters = slices.DeleteFunc(clusters, func(name string) bool { return !slices.Contains(names, name) })
	}
	return c.TakeMessages(), s.ForEachGroup(clusters, base, func(got fleet.Group) error { return visit(got.Clusters, got.State) })
}

// RenderBase renders a lock and returns the state before overlays. It does not use the tree on
// disk.
func RenderBase(ctx context.Context, p *workspace.Project, lock *lockfile.File) (diff.State, error) {
	res, err := p.RenderPlain(ctx, lock)
	if err != nil {
		return diff.State{}, err
	}
	f, err := p.Fleet(lock, res)
	if err != nil {
		return diff.State{}, err
	}
	return f.BaseState()
}
