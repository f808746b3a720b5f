// Package gitrepo is what quayside needs of Git, and no more: the repository
// around a directory, the files of a revision, the merge base of two, a branch
// with one commit, a push.
//
// Reading never changes a repository and takes no lock. What a revision holds is
// untrusted: paths are checked, and sizes and counts are capped. The work tree,
// the index and HEAD are never written, not even by [Repo.Branch]. Git itself is
// run for what it alone does, where that is set up.
//
// Start from [Open], [Repo.Revision] and [Revision.List].
package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5"
)

// ErrNone says that a directory lies in no repository.
var ErrNone = errors.New("not in a Git repository")

// Repo is an opened repository.
type Repo struct {
	git  *git.Repository
	root string // of the work tree, absolute, symbolic links resolved; empty where the repository is bare

	// Tell, where it is not nil, is told what Git would heed and nobody does,
	// for it is not installed.
	Tell func(format string, args ...any)
}

// program returns Git where something needs it; nil where nothing does, or where
// it is not installed, of which Tell is told: "the commit is made" without it.
func (r *Repo) program(needs []string, what string) *program {
	if len(needs) == 0 {
		return nil
	}
	git := newProgram(r.home())
	if git == nil && r.Tell != nil {
		r.Tell("git is not installed: %s without %s", what, strings.Join(needs, ", "))
	}
	return git
}

// home returns a directory in which Git finds the repository.
func (r *Repo) home() string {
	if r.root != "" {
		return r.root
	}
	own, _ := r.dirs()
	return own
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
// bare repository, shallow or not. Where there is none the error is ErrNone.
func Open(dir string) (*Repo, error) {
	// A bare repository has no .git to be detected by, and may lie in another.
	r, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		r, err = git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	}
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNone)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the Git repository of %s: %w", dir, err)
	}
	repo := &Repo{git: r}
	w, err := r.Worktree()
	if errors.Is(err, git.ErrIsBareRepository) {
		return repo, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the Git repository of %s: %w", dir, err)
	}
	if repo.root, err = real(w.Filesystem.Root()); err != nil {
		return nil, err
	}
	return repo, nil
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
