// Package gitrepo provides the Git operations of quayside: find the repository of a
// directory, read the files of a revision, find a merge base, create a branch with one
// commit, and push.
//
// The package reads with go-git. Reading never changes a repository, takes no lock and runs
// no program. The content of a revision is untrusted: the package checks paths and limits
// sizes and counts. It compares the work tree, commits and pushes with the git program, to
// apply the user's hooks, filters, signatures and credentials. The git program runs only in
// work trees, never in a bare repository. The package never writes the user's work tree,
// index or HEAD, not even in [Repo.Branch].
//
// Start from [Open], [Repo.Revision] and [Revision.List].
package gitrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/quayside/quayside/internal/diag"
)

// ErrNone reports that a directory is in no Git repository.
var ErrNone = errors.New("not in a Git repository")

// Repo is an opened repository.
type Repo struct {
	git     *git.Repository
	objects *filesystem.Storage // of git
	root    string              // of the work tree, absolute, symbolic links resolved; empty for a bare repository
	gitDir  string              // Git's directory of the work tree
}

// Open opens the repository that contains dir: a clone, a linked work tree or a bare
// repository, shallow or not. The error wraps ErrNone if there is none.
func Open(dir string) (*Repo, error) {
	abs, err := realPath(dir)
	if err != nil {
		return nil, err
	}
	repo, err := open(find(abs))
	switch {
	case errors.Is(err, git.ErrRepositoryNotExists):
		return nil, fmt.Errorf("%s: %w", dir, ErrNone)
	case errors.Is(err, git.ErrUnknownExtension):
		return nil, fmt.Errorf("opening the Git repository of %s: %w: only repositories with SHA-1 objects and branches in files are supported", dir, err)
	case err != nil:
		return nil, fmt.Errorf("opening the Git repository of %s: %w", dir, err)
	}
	return repo, nil
}

// find returns the path of .git for the repository that contains dir, and the top of its
// work tree: dir or its nearest parent with a .git. If dir itself is a bare repository, or
// if there is no repository, find returns dir and no root.
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

// open opens the repository at state: Git's directory, or a file with the path of that
// directory.
func open(state, root string) (*Repo, error) {
	state, err := resolveState(state, root)
	if err != nil {
		return nil, err
	}
	common := state // shared by all work trees, with objects and branches
	if data, err := os.ReadFile(filepath.Join(state, "commondir")); err == nil {
		if common = strings.TrimSpace(string(data)); !filepath.IsAbs(common) {
			common = filepath.Join(state, common)
		}
	}
	files := filesystem.NewStorage(dotgit.NewRepositoryFilesystem(osfs.New(state), osfs.New(common)), cache.NewObjectLRUDefault())
	opened, err := git.Open(tolerantStorage{files}, nil)
	return &Repo{git: opened, objects: files, root: root, gitDir: state}, err
}

// resolveState returns Git's directory of a work tree: .git, or the directory in that file.
func resolveState(state, root string) (string, error) {
	data, err := os.ReadFile(state)
	if err != nil {
		return state, nil //nolint:nilerr // a directory
	}
	linked, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if !ok {
		return "", fmt.Errorf("%s is not a directory", state)
	}
	if !filepath.IsAbs(linked) {
		linked = filepath.Join(root, linked)
	}
	return linked, nil
}

// StateDir returns Git's directory of the work tree at top. Linked work trees have one each.
func StateDir(top string) (string, error) {
	state := filepath.Join(top, ".git")
	if _, err := os.Stat(state); err != nil {
		return "", ErrNone
	}
	return resolveState(state, top)
}

// tolerantStorage is a storage that hides irrelevant repository extensions from go-git:
// worktreeConfig, relativeWorktrees, preciousObjects and partialClone. Missing objects of
// a partial clone result in an error on reading.
type tolerantStorage struct{ *filesystem.Storage }

// Config returns the repository's configuration without the irrelevant extensions.
func (t tolerantStorage) Config() (*config.Config, error) {
	c, err := t.Storage.Config()
	if err == nil && c.Raw.HasSection("extensions") {
		for _, name := range []string{"worktreeConfig", "relativeWorktrees", "preciousObjects", "partialClone"} {
			c.Raw.Section("extensions").RemoveOption(name)
		}
	}
	return c, err
}

// Root returns the top of the work tree, as an absolute path without symbolic
// links; empty for a bare repository.
func (r *Repo) Root() string { return r.root }

// Path returns the slash-separated path of dir from the top of the repository, "." for the
// top. In a bare repository it returns "." for every directory.
func (r *Repo) Path(dir string) (string, error) {
	if r.root == "" {
		return ".", nil
	}
	abs, err := realPath(dir)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(r.root, abs)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", fmt.Errorf("%s is outside of the repository %s", dir, r.root)
	}
	return filepath.ToSlash(rel), nil
}

// Shallow reports whether the repository is a shallow clone, with truncated history.
func (r *Repo) Shallow() bool {
	ends, err := r.git.Storer.Shallow()
	return err == nil && len(ends) > 0
}

// realPath returns the absolute path of a directory, which need not exist, without symbolic
// links.
func realPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) && abs != filepath.Dir(abs) {
		real, err = realPath(filepath.Dir(abs))
		real = filepath.Join(real, filepath.Base(abs))
	}
	return real, err
}

// HeadBranch returns the current branch; empty if HEAD is detached or unreadable.
func (r *Repo) HeadBranch() string {
	head, err := r.git.Reference(plumbing.HEAD, false)
	if err != nil || !head.Target().IsBranch() {
		return ""
	}
	return head.Target().Short()
}

// Branches returns the tips of the branch below and of those below it ("up", "up/…"), by branch.
// With tracking, it includes remote-tracking branches, so that a branch can have several tips.
func (r *Repo) Branches(below string, tracking bool) (map[string][]*Revision, error) {
	refs, err := r.git.References()
	if err != nil {
		return nil, err
	}
	defer refs.Close()
	out := map[string][]*Revision{}
	return out, refs.ForEach(func(ref *plumbing.Reference) error {
		name, found := strings.CutPrefix(string(ref.Name()), "refs/heads/")
		if rest, remote := strings.CutPrefix(name, "refs/remotes/"); remote && tracking {
			_, name, found = strings.Cut(rest, "/")
		}
		if !found || name != below && !strings.HasPrefix(name, below+"/") {
			return nil
		}
		tip, err := r.resolveRevision(name, string(ref.Name()))
		if err == nil {
			out[name] = append(out[name], tip)
		}
		return err
	})
}

// DefaultBranch returns the tip of the default branch: the target of origin/HEAD, or in a
// repository without a remote "origin" the branch main or master. It never guesses a branch of
// origin by its name, because others may push one of that name.
func (r *Repo) DefaultBranch() (*Revision, error) {
	head, err := r.git.Reference(plumbing.NewRemoteHEADReferenceName("origin"), false)
	if err == nil && strings.HasPrefix(string(head.Target()), "refs/remotes/origin/") {
		return r.resolveRevision(head.Target().Short(), string(head.Target()))
	}
	if _, err := r.git.Remote("origin"); err == nil {
		return nil, errors.New("the default branch of origin is unknown: run 'git remote set-head origin --auto', or specify the branch with --base")
	}
	for _, name := range localDefaults() {
		if _, err := r.git.Reference(name, true); err == nil {
			return r.resolveRevision(name.Short(), string(name))
		} else if !errors.Is(err, plumbing.ErrReferenceNotFound) {
			return nil, err
		}
	}
	return nil, errors.New("no default branch found (tried main and master): specify the branch with --base, or a revision")
}

// localDefaults returns the usual names of the default branch.
func localDefaults() []plumbing.ReferenceName {
	return []plumbing.ReferenceName{plumbing.NewBranchReferenceName("main"), plumbing.NewBranchReferenceName("master")}
}

// Address returns the address of a remote. remote is its name, a URL or a path.
func (r *Repo) Address(remote string) (string, error) {
	if to := r.remoteURL(remote); to != "" {
		return to, nil
	}
	if info, err := os.Stat(remote); err == nil && info.IsDir() {
		return filepath.Abs(remote)
	}
	if e, err := transport.NewEndpoint(remote); err != nil || e.Host == "" && (e.Protocol != "file" || !strings.HasPrefix(remote, "file://")) {
		return "", fmt.Errorf("no remote %q in this repository", diag.Redact(remote))
	}
	return remote, nil
}

// remoteURL returns the URL of a remote; empty if there is no such remote.
func (r *Repo) remoteURL(name string) string {
	found, err := r.git.Remote(name)
	if err != nil || len(found.Config().URLs) == 0 {
		return ""
	}
	return found.Config().URLs[len(found.Config().URLs)-1]
}

// Origin returns the URL of the remote "origin" without secrets; empty if there is none, or
// if it names no other machine.
func (r *Repo) Origin() string { return WithoutSecrets(r.remoteURL("origin")) }

// WithoutSecrets returns the URL of a repository without its password, query and fragment.
// It also removes the user from http and https URLs, because it may be a token. The result
// is empty if the URL names no other machine.
func WithoutSecrets(remote string) string {
	u, err := url.Parse(remote)
	switch {
	case !strings.Contains(remote, "://"): // user@host:path or a path
		if host, _, ok := strings.Cut(remote, ":"); !ok || strings.ContainsAny(host, `/\`) || len(host) < 2 {
			return ""
		}
		return remote
	case err != nil || u.Host == "":
		return ""
	case u.Scheme == "http" || u.Scheme == "https" || u.User == nil:
		u.User = nil
	default:
		u.User = url.User(u.User.Username())
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}
