package workspace

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/settings"
)

// Clone is a workspace with its Git repository.
type Clone struct {
	Project *Project
	Repo    *gitrepo.Repo // nil if there is no repository
	Prefix  string        // path of the workspace in the repository: ".", "envs/prod"
}

// Clone finds the Git repository of the workspace. Without a repository, the error is
// gitrepo.ErrNone, and the paths of the returned Clone are relative to the workspace.
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

// CheckClean returns an error if inputs of the lock have uncommitted changes, because a commit
// of the lock would not agree with them. A sparse checkout may omit rendered files, but no
// other inputs.
func (c *Clone) CheckClean(ctx context.Context) error {
	output := c.Path(c.Project.Settings.Output)
	inputs := []string{c.Path(settings.FileName), c.Path(LockFile), output, c.Path(c.Project.OverlaysDir())}
	for _, name := range c.Project.Settings.Extended {
		inputs = append(inputs, c.Path(name))
	}
	for _, d := range c.Project.Settings.Declarations {
		inputs = append(inputs, c.Path(d.Path))
	}
	changed, absent, err := c.Repo.DirtyFiles(ctx, inputs)
	if err != nil {
		return err
	}
	changed = append(changed, slices.DeleteFunc(absent, func(name string) bool { return strings.HasPrefix(name, output+"/") })...)
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	changed = slices.Compact(changed)
	return fmt.Errorf("uncommitted changes: %s: commit or undo them first", strings.Join(changed[:min(len(changed), 5)], ", "))
}
