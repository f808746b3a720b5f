// Package gitrepo is what quayside needs of Git, and no more: the repository
// around a directory, the files of a revision, the merge base of two, a branch
// with one commit, a push.
//
// Reading never changes a repository, takes no lock and runs no program. What
// a revision holds is untrusted: paths are checked, and sizes and counts are
// capped. The work tree, the index and HEAD are never written, not even by
// [Repo.Branch].
//
// Start from [Open], [Repo.Revision] and [Revision.List].
package gitrepo

import (
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
