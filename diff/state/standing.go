package state

import (
	"context"
	"fmt"
	"slices"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
)

// Standing calls each with what a lock comes to in clusters, with the user's own
// custom resources beside it: for those that get the same, once. Without names it
// is called for all clusters, and in a workspace without clusters once, with nil,
// for the tree as it is. The tree is the one in the workspace where that is what
// the lock says, else what the lock renders to; nothing is written. A name that
// no cluster has is an error.
func Standing(ctx context.Context, p *project.Project, lock *lockfile.File, names []string, each func(clusters []string, s diff.State) error) error {
	have := p.Clusters()
	for _, name := range names {
		if !slices.Contains(have, name) {
			return fmt.Errorf("no cluster %q in quayside.yaml%s", name, diag.DidYouMean(name, slices.Sorted(slices.Values(have))))
		}
	}
	c, s, err := standing(ctx, p, lock)
	if err != nil {
		return err
	}
	s.Name, s.lock = project.LockFile, c.placed(lock)
	if s.own, err = c.ownFiles(); err != nil {
		return err
	}
	var groups []group
	for _, name := range s.clusters {
		x, err := s.share(name)
		if err != nil {
			return err
		}
		groups = append(groups, group{names: []string{name}, after: x})
	}
	_, base, err := diff.Read(diff.Source{}, s.source(groups))
	if err != nil {
		return err
	}
	if len(s.clusters) == 0 {
		return each(nil, base)
	}
	if len(names) > 0 {
		s.clusters = slices.DeleteFunc(slices.Clone(s.clusters), func(name string) bool { return !slices.Contains(names, name) })
	}
	return c.alone(s, base, func(got gets) error { return each(got.clusters, got.state) })
}

// Plain returns what a lock renders to before any overlay, whatever lies in the
// workspace.
func Plain(ctx context.Context, p *project.Project, lock *lockfile.File) (diff.State, error) {
	res, err := p.RenderPlain(ctx, lock)
	if err != nil {
		return diff.State{}, err
	}
	_, s, err := beside(p, res)
	if err != nil {
		return diff.State{}, err
	}
	s.Name, s.lock = project.LockFile, lock
	return s.base()
}
