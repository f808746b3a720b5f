package workspace

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/base/gitrepo"
	"github.com/quayside/quayside/internal/settings"
)

// Clone is a workspace with its Git repository.
type Clone struct {
	Project *Project
	Repo    *gitrepo.Repo // nil if there is none
	Prefix  string        // path of the workspace in the repository: "."
}

// Clone finds the repository of the workspace. If there is none, the error is
// gitrepo.ErrNone, and the returned Clone has the workspace as its top.
func (p *Project) Clone() (*Clone, error) {
	c := &Clone{Project: p, Prefix: "."}
	if !p.OnDisk() {
		return c, gitrepo.ErrNone
	}
	repo, err := gitrepo.Open(p.Name())
	if err != nil {
		return c, err
	}
	c.Repo = repo
	c.Prefix, err = repo.Path(p.Name())
	return c, err
}

// Path returns a path of the workspace relative to the repository.
func (c *Clone) Path(name string) string { return path.Join(c.Prefix, name) }

// At returns the workspace at a revision.
func (c *Clone) At(rev *gitrepo.Revision) (*Project, error) {
	return Open(Revision(rev, c.Prefix), c.Project.Env)
}

// Clean returns an error if inputs of the lock have uncommitted changes, because a commit of
// the lock would not agree with them. A sparse work tree may omit rendered files, but no
// other inputs.
func (c *Clone) Clean(ctx context.Context) error {
	output := c.Path(c.Project.Settings.Output)
	watched := []string{c.Path(settings.FileName), c.Path(LockFile), output, c.Path(c.Project.OverlaysDir())}
	for _, name := range c.Project.Settings.Extended {
		watched = append(watched, c.Path(name))
	}
	for _, d := range c.Project.Settings.Declarations {
		watched = append(watched, c.Path(d.Path))
	}
	differ, absent, err := c.Repo.Unclean(ctx, watched)
	if err != nil {
		return err
	}
	differ = append(differ, slices.DeleteFunc(absent, func(name string) bool { return strings.HasPrefix(name, output+"/") })...)
	if len(differ) == 0 {
		return nil
	}
	slices.Sort(differ)
	differ = slices.Compact(differ)
	return fmt.Errorf("uncommitted changes: %s: commit or undo them first", strings.Join(differ[:min(len(differ), 5)], ", "))
}
