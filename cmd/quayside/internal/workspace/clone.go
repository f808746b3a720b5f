package workspace

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// Clone is a workspace with its Git repository.
type Clone struct {
	Project *Project
	Repo    *gitrepo.Repo // nil if there is no repository
	Prefix  string        // path of the workspace in the repository, such as "." or "envs/prod"
}

// Clone opens the Git repository of the workspace. Without a repository, the error is
// gitrepo.ErrNone; the returned Clone is still valid, with paths relative to the workspace.
func (p *Project) Clone() (*Clone, error) {
	c := &Clone{Project: p}
	var err error
	c.Repo, c.Prefix, err = p.OpenRepo()
	return c, err
}

// OpenRepo opens the Git repository of the workspace, and returns the path of the workspace in it.
// Without a repository, the error is gitrepo.ErrNone, and the path is ".".
func (r Root) OpenRepo() (*gitrepo.Repo, string, error) {
	if !r.OnDisk() {
		return nil, ".", gitrepo.ErrNone
	}
	repo, err := gitrepo.Open(r.Name())
	if err != nil {
		return nil, ".", err
	}
	prefix, err := repo.Path(r.Name())
	return repo, prefix, err
}

// Disk returns the files of the repository. If there is no repository, it returns the files of the workspace.
func (p *Opened) Disk() (fleet.Disk, error) {
	repo, prefix, err := p.OpenRepo()
	if err != nil && !errors.Is(err, gitrepo.ErrNone) {
		return fleet.Disk{}, err
	}
	d := fleet.Disk{FS: p.FS(), Name: p.Name(), Out: path.Join(prefix, p.Settings.OutputDir()), Pool: fleet.NewPool()}
	if repo != nil && repo.Root() != "" {
		d.Name = repo.Root()
		d.FS = filetree.OpenDir(d.Name, "directory").FS()
	}
	return d, nil
}

// Fleet returns the clusters of a rendered lock. Their overlays are the user's files on disk.
func (p *Opened) Fleet(lock *lockfile.File, res *render.Result) (fleet.Fleet, error) {
	disk, err := p.Disk()
	if err != nil {
		return fleet.Fleet{}, err
	}
	empty, err := fleet.EmptyTree(disk)
	if err != nil {
		return fleet.Fleet{}, err
	}
	t, err := empty.WithRendered(res)
	return fleet.New(LockFile, p.Settings, lock, t), err
}

// Path converts a path in the workspace to a path in the repository.
func (c *Clone) Path(name string) string { return path.Join(c.Prefix, name) }

// At returns the workspace at a revision.
func (c *Clone) At(rev *gitrepo.Revision) (*Project, error) {
	return Open(Revision(rev, c.Prefix), c.Project.Env)
}

// CheckClean returns an error if the lock, the tree, or an input of either has uncommitted changes,
// because a commit would not contain them. In a sparse checkout, rendered files may be missing, but
// no other files.
func (c *Clone) CheckClean(ctx context.Context) error {
	output := c.Path(c.Project.Settings.OutputDir())
	inputs := []string{c.Path(settings.FileName), c.Path(LockFile), output, c.Path(c.Project.Settings.OverlaysDir())}
	for _, name := range c.Project.Settings.Extended {
		inputs = append(inputs, c.Path(name))
	}
	files, dir := c.Project.Repository()
	for _, d := range c.Project.Settings.Declarations {
		inputs = append(inputs, d.Expand(files, dir, c.Project.repositoryCharts(c.Project.Settings), c.Project.results)...)
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
