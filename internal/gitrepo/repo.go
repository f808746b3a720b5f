// Package gitrepo provides the Git operations of quayside: find the repository of a directory, read
// the files of a revision, find a merge base, create a branch with one commit, and push.
//
// Reading uses go-git. It never changes a repository, takes no lock and runs no program. The
// content of a revision is untrusted: paths are checked, and sizes and counts are limited.
//
// Comparing the work tree, committing and pushing use the git command, so that the user's hooks, filters,
// signatures and credentials apply. The git command runs only in work trees, never in a bare repository. The
// user's work tree, index and HEAD are never written, not even by [Repo.Branch].
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
	"slices"
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

// ErrNone means that a directory is not in a Git repository.
var ErrNone = errors.New("not in a Git repository")

// Repo is an opened repository.
type Repo struct {
	git     *git.Repository
	objects *filesystem.Storage // storage of the repository, for reading objects
	root    string              // top of the work tree, absolute and without symbolic links; empty for a bare repository
	gitDir  string              // Git directory of the work tree
	common  string              // Git directory that all work trees share
}

// Open opens the repository that contains dir: a clone, which may be shallow, a linked work tree, or a bare
// repository. If there is none, the error wraps ErrNone.
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

// find looks for the repository that contains dir. state is the path of its .git, and root is the top of
// its work tree: dir or its nearest parent with a .git. If dir is a bare repository, or if there is no
// repository, it returns dir and an empty root.
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

// open opens the repository whose Git directory is state. state may also be a file that contains
// the path of the Git directory.
func open(state, root string) (*Repo, error) {
	state, err := resolveState(state, root)
	if err != nil {
		return nil, err
	}
	common := state // directory with objects and branches, which all work trees share
	if data, err := os.ReadFile(filepath.Join(state, "commondir")); err == nil {
		if common = strings.TrimSpace(string(data)); !filepath.IsAbs(common) {
			common = filepath.Join(state, common)
		}
	}
	files := filesystem.NewStorageWithOptions(dotgit.NewRepositoryFilesystem(osfs.New(state), osfs.New(common)), cache.NewObjectLRUDefault(),
		filesystem.Options{
			AlternatesFS:         osfs.New("/"), // a shared clone reads the objects of another repository
			LargeObjectThreshold: maxFile,       // larger objects are not read to learn their size
		})
	opened, err := git.Open(tolerantStorage{files}, nil)
	return &Repo{git: opened, objects: files, root: root, gitDir: state, common: common}, err
}

// resolveState returns the Git directory of a work tree: .git itself or, if .git is a file, the directory named
// in the file.
func resolveState(state, root string) (string, error) {
	data, err := os.ReadFile(state)
	if err != nil {
		return state, nil //nolint:nilerr // .git is a directory
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

// StateDir returns the Git directory of the work tree at top. Each linked work tree has its own.
func StateDir(top string) (string, error) {
	state := filepath.Join(top, ".git")
	if _, err := os.Stat(state); err != nil {
		return "", ErrNone
	}
	return resolveState(state, top)
}

// tolerantStorage hides from go-git the repository extensions that do not matter for reading:
// worktreeConfig, relativeWorktrees, preciousObjects and partialClone. If a partial clone lacks an object,
// reading the object is an error.
type tolerantStorage struct{ *filesystem.Storage }

// Config returns the configuration of the repository without the extensions that t hides.
func (t tolerantStorage) Config() (*config.Config, error) {
	c, err := t.Storage.Config()
	if err == nil && c.Raw.HasSection("extensions") {
		for _, name := range []string{"worktreeConfig", "relativeWorktrees", "preciousObjects", "partialClone"} {
			c.Raw.Section("extensions").RemoveOption(name)
		}
	}
	return c, err
}

// EncodedObjectSize returns the size of an object in bytes. Unlike go-git's method, it also finds an object
// that a shared clone reads from another repository, and it closes the file of a loose object.
func (t tolerantStorage) EncodedObjectSize(hash plumbing.Hash) (int64, error) {
	o, err := t.EncodedObject(plumbing.AnyObject, hash)
	if err != nil {
		return 0, err
	}
	return o.Size(), nil
}

// Root returns the top of the work tree, as an absolute path without symbolic links. It returns ""
// for a bare repository.
func (r *Repo) Root() string { return r.root }

// Path returns the path of dir from the top of the repository, slash-separated, or "." for the top.
// In a bare repository it returns "." for every directory.
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

// Shallow reports whether the repository is a shallow clone, whose history is incomplete.
func (r *Repo) Shallow() bool {
	ends, err := r.git.Storer.Shallow()
	return err == nil && len(ends) > 0
}

// realPath returns the absolute path of a directory without symbolic links. The directory need not
// exist.
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

// HeadBranch returns the name of the current branch. It returns "" if HEAD is detached or cannot be
// read.
func (r *Repo) HeadBranch() string {
	head, err := r.git.Reference(plumbing.HEAD, false)
	if err != nil || !head.Target().IsBranch() {
		return ""
	}
	return head.Target().Short()
}

// Branches returns the commits of branches by name. If below is "up", these are the branches "up" and "up/…".
// If tracking is true, the result includes remote-tracking branches, so that a name may have several commits.
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

// Remotes contains the remotes of a repository.
type Remotes struct {
	URLs  []string        // without secrets, sorted
	Names map[string]bool // tracked branches of the remotes, and tags
}

// Remotes returns the remotes. Names is nil if the clone tracks no branch. It is also nil for a shallow clone,
// because a shallow clone usually tracks only one branch.
func (r *Repo) Remotes() (*Remotes, error) {
	out := &Remotes{}
	remotes, err := r.git.Remotes()
	if err != nil {
		return nil, err
	}
	for _, remote := range remotes {
		for _, u := range remote.Config().URLs {
			out.URLs = append(out.URLs, WithoutSecrets(u))
		}
	}
	slices.Sort(out.URLs)
	refs, err := r.git.References()
	if err != nil || r.Shallow() {
		return out, err
	}
	defer refs.Close()
	names, tracked := map[string]bool{}, false
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if rest, is := strings.CutPrefix(string(ref.Name()), "refs/remotes/"); is {
			_, branch, _ := strings.Cut(rest, "/")
			names[branch], tracked = true, true
		}
		if tag, is := strings.CutPrefix(string(ref.Name()), "refs/tags/"); is {
			names[tag] = true
		}
		return nil
	})
	if tracked {
		out.Names = names
	}
	return out, err
}

// DefaultBranch returns the commit of the default branch. This is the branch that origin/HEAD refers to or,
// without a remote "origin", main or master. It does not guess the default branch of origin by the name,
// because others may push a branch with this name.
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

// localDefaults returns the usual names of default branches.
func localDefaults() []plumbing.ReferenceName {
	return []plumbing.ReferenceName{plumbing.NewBranchReferenceName("main"), plumbing.NewBranchReferenceName("master")}
}

// Address returns the URL of a remote. remote is the name of a remote, or itself a URL or path.
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

// remoteURL returns the URL of a remote, or "" if there is no such remote.
func (r *Repo) remoteURL(name string) string {
	found, err := r.git.Remote(name)
	if err != nil || len(found.Config().URLs) == 0 {
		return ""
	}
	return found.Config().URLs[len(found.Config().URLs)-1]
}

// Origin returns the URL of the remote "origin" without secrets. It returns "" if there is no such
// remote, or if it is not on another machine.
func (r *Repo) Origin() string { return WithoutSecrets(r.remoteURL("origin")) }

// WithoutSecrets returns the URL of a repository without password, query and fragment. For http and
// https it also removes the user, which may be a token. It returns "" if the repository is not on
// another machine.
func WithoutSecrets(remote string) string {
	u, err := url.Parse(remote)
	switch {
	case !strings.Contains(remote, "://"): // "user@host:path", or a path
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
