package compare

import (
	"context"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/lockfile"
)

// groupState is the state of clusters that get the same objects.
type groupState struct {
	clusters []string
	state    diff.State
}

// currentSide returns the current state of the workspace without a comparison: the tree on disk
// if it is up to date with the lock, or else the rendered lock.
func currentSide(ctx context.Context, p *workspace.Project, lock *lockfile.File) (*Comparison, *Side, error) {
	c, err := newComparison(p, Auto)
	if err != nil {
		return nil, nil, err
	}
	t, err := readTree("", c.disk())
	if err != nil {
		return nil, nil, err
	}
	s := &Side{Name: workspace.LockFile, project: p, lock: c.withRepoPaths(lock), tree: t}
	if !s.isUpToDate() {
		s, err = c.render(ctx, s, lock, true)
	}
	return c, s, err
}

// baseState returns the state of a side before overlays.
func (s *Side) baseState() (diff.State, error) {
	base := diff.State{Name: s.Name, Pins: s.pins()}
	var err error
	base.Objects, err = diff.Objects(s.manifests, base.Pins)
	return base, err
}

// forEachGroup calls visit for every group of the named clusters that get the same objects, with the
// state of the group on side s. It builds one state at a time, because there may be thousands.
func (c *Comparison) forEachGroup(s *Side, names []string, base diff.State, visit func(groupState) error) error {
	index := map[string]int{}
	var inputs []clusterInputs
	var clusters [][]string
	for _, name := range names {
		x, err := s.clusterInputs(name)
		if err != nil {
			return err
		}
		key := x.key()
		i, known := index[key]
		if !known {
			i = len(inputs)
			index[key], inputs, clusters = i, append(inputs, x), append(clusters, nil)
		}
		clusters[i] = append(clusters[i], name)
	}
	cache := s.newBaseCache(base)
	for i, x := range inputs {
		got, err := c.state(cache, x)
		if err != nil {
			return err
		}
		if err := visit(groupState{clusters[i], got}); err != nil {
			return err
		}
	}
	return nil
}
