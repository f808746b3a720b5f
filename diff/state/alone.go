package state

import (
	"context"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
)

// gets is what some clusters get, all of them the same.
type gets struct {
	clusters []string
	state    diff.State
}

// standing returns a side that is compared with nothing: the tree in the
// workspace where that is what a lock says, else what the lock renders to.
func standing(ctx context.Context, p *project.Project, lock *lockfile.File) (*Comparison, *Side, error) {
	c, err := newComparison(p, Auto)
	if err != nil {
		return nil, nil, err
	}
	s := &c.After
	s.project, s.lock = p, lock
	s.beside(c, c.InRepo(p.Settings.Output), c.files)
	if err := c.manifests(c.files, s); err != nil || s.inStep() {
		return c, s, err
	}
	return c, s, c.render(ctx, s, lock, true)
}

// base returns the base of a side that is compared with nothing.
func (s *Side) base() (diff.State, error) {
	base := diff.State{Name: s.Name, Pins: s.pins()}
	var err error
	base.Objects, err = diff.Objects(s.tree, base.Pins)
	return base, err
}

// alone calls each with what the clusters of a side get: where several get the
// same, once. One is held at a time, for there may be thousands.
func (c *Comparison) alone(s *Side, base diff.State, each func(gets) error) error {
	index := map[string]int{}
	var shares []share
	var clusters [][]string
	for _, name := range s.clusters {
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
		if err := each(gets{clusters[i], got}); err != nil {
			return err
		}
	}
	return nil
}
