// Package gitrepo is what quayside needs of Git, and no more: the repository
// around a directory, the files of a revision, the merge base of two, a branch
// with one commit, a push.
//
// Reading never changes a repository and takes no lock. What a revision holds is
// untrusted: paths are checked, and sizes and counts are capped. The work tree,
// the index and HEAD are never written, not even by [Repo.Branch]. Git itself is
// run for what it alone does, where that is set up, and for repositories that it
// alone can read.
//
// Start from [Open], [Repo.Revision] and [Revision.List].
package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// ErrNone says that a directory lies in no repository.
var ErrNone = errors.New("not in a Git repository")

// Repo is an opened repository.
type Repo struct {
	git     *git.Repository
	objects reader
	only    *program // Git, where it alone can read the repository: git then is good for settings

	root string // of the work tree, absolute, symbolic links resolved; empty where the repository is bare

	own    string // directory of the work tree's own state
	common string // directory that all work trees share, with objects and branches; own where there is one

	// Tell, where it is not nil, is told what Git would heed and nobody does,
	// for it is not installed.
	Tell func(format string, args ...any)
}

// program returns Git where something or the repository needs it; nil where
// nothing does, or where it is not installed, of which Tell is told: "the commit
// is made" without it.
func (r *Repo) program(needs []string, what string) *program {
	if len(needs) == 0 || r.only != nil {
		return r.only
	}
	git := newProgram(r.home())
	if git == nil && r.Tell != nil {
		r.Tell("git is not installed: %s without %s", what, strings.Join(needs, ", "))
	}
	return git
}

// home returns a directory in which Git finds the repository.
func (r *Repo) home() string {
	return cmp.Or(r.root, r.own)
}

// Unclean returns the files in and below paths, which are relative to the work
// tree, that are not as HEAD has them, and whether Git was there to say so:
// seen through its filters, and without those that a sparse work tree leaves out.
func (r *Repo) Unclean(ctx context.Context, paths []string) (names []string, known bool, err error) {
	git := newProgram(r.home())
	if git == nil {
		return nil, false, nil
	}
	names, err = git.unclean(ctx, paths)
	return names, err == nil, err
}

// Open opens the repository that holds dir: a clone, a linked work tree, or a
// bare repository, shallow or not. What go-git cannot read, Git reads where it is
// installed: SHA-256, branches in a reftable. Where there is none the error is
// ErrNone.
func Open(dir string) (*Repo, error) {
	abs, err := real(dir)
	if err != nil {
		return nil, err
	}
	repo, err := open(find(abs))
	switch {
	case errors.Is(err, git.ErrRepositoryNotExists):
		return nil, fmt.Errorf("%s: %w", dir, ErrNone)
	case errors.Is(err, git.ErrUnknownExtension):
		return nil, fmt.Errorf("opening the Git repository of %s: %w: without git, which is not installed, only SHA-1 objects and branches in files can be read", dir, err)
	case err != nil:
		return nil, fmt.Errorf("opening the Git repository of %s: %w", dir, err)
	}
	return repo, nil
}

// find returns the state of the repository that holds dir, and the top of its
// work tree: the nearest directory upwards with a .git. There is none where dir
// is a bare repository itself.
func find(dir string) (state, root string) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return filepath.Join(at, ".git"), at
		}
		if _, err := os.Stat(filepath.Join(dir, "objects")); err == nil && at == dir {
			if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil {
				return dir, ""
			}
		}
		if at == filepath.Dir(at) {
			return dir, ""
		}
	}
}

// open opens the repository with its state in a directory, or in the one that a
// file names.
func open(state, root string) (*Repo, error) {
	if data, err := os.ReadFile(state); err == nil {
		linked, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
		if !ok {
			return nil, fmt.Errorf("%s names no directory", state)
		}
		if state = linked; !filepath.IsAbs(linked) {
			state = filepath.Join(root, linked)
		}
	}
	own := osfs.New(state)
	r := &Repo{root: root, own: state, common: commonOf(state)}
	files := filesystem.NewStorage(dotgit.NewRepositoryFilesystem(own, osfs.New(r.common)), cache.NewObjectLRUDefault())
	var err error
	r.git, err = git.Open(tolerant{files, []string{"worktreeConfig", "relativeWorktrees", "preciousObjects", "partialClone"}}, nil)
	r.objects = library{r.git}
	if !errors.Is(err, git.ErrUnknownExtension) {
		return r, err
	}
	if r.only = newProgram(r.home()); r.only == nil {
		return nil, err
	}
	if _, err := r.only.line(context.Background(), "rev-parse", "--git-dir"); err != nil {
		return nil, err
	}
	r.objects = newBatch(r.only)
	r.git, err = git.Open(tolerant{files, nil}, nil)
	return r, err
}

// commonOf returns the directory that all work trees share.
func commonOf(own string) string {
	data, err := os.ReadFile(filepath.Join(own, "commondir"))
	if err != nil {
		return own
	}
	if common := strings.TrimSpace(string(data)); filepath.IsAbs(common) {
		return common
	}
	return filepath.Join(own, strings.TrimSpace(string(data)))
}

// tolerant is a storage of which go-git is not told the extensions that are of
// no matter to what is done here: settings of a work tree, where it lies, what
// may not be removed, and that objects may be missing, which is found out; or any
// at all where Git reads the objects.
type tolerant struct {
	*filesystem.Storage
	fine []string // extensions, nil for all
}

// Config returns the repository's configuration.
func (t tolerant) Config() (*config.Config, error) {
	c, err := t.Storage.Config()
	if err == nil && t.fine == nil {
		c.Raw.RemoveSection("extensions")
	}
	if err == nil && c.Raw.HasSection("extensions") {
		for _, name := range t.fine {
			c.Raw.Section("extensions").RemoveOption(name)
		}
	}
	return c, err
}

// Root returns the top of the work tree, as an absolute path without symbolic
// links; empty where the repository is bare.
func (r *Repo) Root() string { return r.root }

// Path returns dir as seen from the top of the repository, with slashes: "."
// for the top. In a bare repository every directory is the top.
func (r *Repo) Path(dir string) (string, error) {
	if r.root == "" {
		return ".", nil
	}
	abs, err := real(dir)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(r.root, abs)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", fmt.Errorf("%s does not lie in %s", dir, r.root)
	}
	return filepath.ToSlash(rel), nil
}

// Shallow reports whether the history ends before its beginning.
func (r *Repo) Shallow() bool {
	ends, err := r.git.Storer.Shallow()
	return err == nil && len(ends) > 0
}

func real(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}
