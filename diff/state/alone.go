package state

import (
	"context"
	"slices"

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

// alone returns the base of a side, and what its clusters get: where several get
// the same, once.
func (c *Comparison) alone(s *Side) (diff.State, []gets, error) {
	base := diff.State{Name: s.Name, Pins: s.pins()}
	var err error
	if base.Objects, err = diff.Objects(s.tree, base.Pins); err != nil {
		return base, nil, err
	}
	var shares []share
	var out []gets
	for _, name := range s.clusters {
		x, err := s.share(name)
		if err != nil {
			return base, nil, err
		}
		i := slices.IndexFunc(shares, x.is)
		if i < 0 {
			i = len(shares)
			shares, out = append(shares, x), append(out, gets{})
		}
		out[i].clusters = append(out[i].clusters, name)
	}
	for i, x := range shares {
		if out[i].state, err = c.state(s, base, x); err != nil {
			return base, nil, err
		}
	}
	return base, out, nil
}
