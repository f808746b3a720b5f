package compare

import (
	"context"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/lockfile"
)

// groupState is the state of a group of clusters that get the same objects.
type groupState struct {
	clusters []string
	state    diff.State
}

// presentSide returns a side for inspection by itself: the tree in the workspace if it is
// up to date with the lock, or else the rendered lock.
func presentSide(ctx context.Context, p *workspace.Project, lock *lockfile.File) (*Comparison, *Side, error) {
	c, err := newComparison(p, Auto)
	if err != nil {
		return nil, nil, err
	}
	lies, err := readTree("", c.disk())
	if err != nil {
		return nil, nil, err
	}
	s := &Side{Name: workspace.LockFile, project: p, lock: c.withRepoPaths(lock), tree: lies}
	if !s.isUpToDate() {
		s, err = c.render(ctx, s, lock, true)
	}
	return c, s, err
}

// base returns the state of a side before overlays.
func (s *Side) base() (diff.State, error) {
	base := diff.State{Name: s.Name, Pins: s.pins()}
	var err error
	base.Objects, err = diff.Objects(s.manifests, base.Pins)
	return base, err
}

// forEachGroup calls each once for each group of clusters that get the same objects, with the state
// of these clusters on one side. It builds one state at a time, because there may be thousands.
func (c *Comparison) forEachGroup(s *Side, names []string, base diff.State, each func(groupState) error) error {
	index := map[string]int{}
	var shares []share
	var clusters [][]string
	for _, name := range names {
		x, err := s.share(name)
		if err != nil {
			return err
		}
		key := x.key()
		i, known := index[key]
		if !known {
			i = len(shares)
			index[key], shares, clusters = i, append(shares, x), append(clusters, nil)
		}
		clusters[i] = append(clusters[i], name)
	}
	g := s.ground(base)
	for i, x := range shares {
		got, err := c.state(g, x)
		if err != nil {
			return err
		}
		if err := each(groupState{clusters[i], got}); err != nil {
			return err
		}
	}
	return nil
}
