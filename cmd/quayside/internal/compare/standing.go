package compare

import (
	"context"
	"fmt"
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
)

// ForEachGroup calls visit for every group of clusters that get the same objects, with the state of
// the group, which includes the user's custom resources. names selects the clusters; without names,
// all clusters are selected. An unknown name is an error. If the tree has no clusters, ForEachGroup
// calls visit once, with no clusters and the base state. It uses the tree on disk if that is up to
// date with the lock, or else the rendered lock, and writes nothing.
func ForEachGroup(ctx context.Context, p *workspace.Project, lock *lockfile.File, names []string, visit func(clusters []string, s diff.State) error) error {
	have := p.Clusters()
	for _, name := range names {
		if !slices.Contains(have, name) {
			return fmt.Errorf("no cluster %q in quayside.yaml%s", name, diag.DidYouMean(name, slices.Sorted(slices.Values(have))))
		}
	}
	c, s, err := currentSide(ctx, p, lock)
	if err != nil {
		return err
	}
	whole := *s
	if whole.userManifests, err = c.readUserManifests(); err != nil {
		return err
	}
	var groups []group
	clusters := s.clusters()
	for _, name := range clusters {
		x, err := s.clusterInputs(name)
		if err != nil {
			return err
		}
		groups = append(groups, group{names: []string{name}, after: x})
	}
	_, base, err := diff.Read(diff.Source{}, whole.source(groups))
	if err != nil {
		return err
	}
	if len(clusters) == 0 {
		return visit(nil, base)
	}
	if len(names) > 0 {
		clusters = slices.DeleteFunc(clusters, func(name string) bool { return !slices.Contains(names, name) })
	}
	return c.forEachGroup(s, clusters, base, func(got groupState) error { return visit(got.clusters, got.state) })
}

// RenderBase renders a lock, and returns its state without overlays. It ignores the tree on
// disk.
func RenderBase(ctx context.Context, p *workspace.Project, lock *lockfile.File) (diff.State, error) {
	res, err := p.RenderPlain(ctx, lock)
	if err != nil {
		return diff.State{}, err
	}
	_, s, err := renderLock(p, lock, res)
	if err != nil {
		return diff.State{}, err
	}
	return s.baseState()
}
