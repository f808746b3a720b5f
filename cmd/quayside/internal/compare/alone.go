package compare

import (
	"context"

	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/lockfile"
)

// currentSide returns the current state of the workspace as a side, in a Comparison without a second side. It
// uses the tree on disk if the tree is up to date with the lock. Otherwise it renders the lock. Even with an
// error, the Comparison is not nil and may contain messages for the user.
func currentSide(ctx context.Context, p *workspace.Project, lock *lockfile.File) (*Comparison, *Side, error) {
	c, err := newComparison(p, Auto)
	if err != nil {
		return c, nil, err
	}
	t, err := fleet.ReadTree("", c.disk)
	if err != nil {
		return c, nil, err
	}
	s := &Side{Fleet: fleet.New(workspace.LockFile, p.Settings, c.withRepoPaths(lock), t), project: p}
	if !s.isUpToDate(nil) {
		s, err = c.render(ctx, s, lock, true)
	}
	return c, s, err
}
