package gitrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Change is one file of a commit.
type Change struct {
	Path    string // from the top of the repository
	Data    []byte
	Removed bool
}

// Commit says what [Repo.Branch] commits.
type Commit struct {
	Message string
	Changes []Change
	Author  Author
	When    time.Time
	Force   bool // replace an existing branch
}

// Author is who commits.
type Author struct{ Name, Email string }

// Author returns who commits: GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL, else what
// Git is configured to.
func (r *Repo) Author(getenv func(string) string) (Author, error) {
	a := Author{getenv("GIT_AUTHOR_NAME"), getenv("GIT_AUTHOR_EMAIL")}
	if a.Name == "" || a.Email == "" {
		c, err := r.git.ConfigScoped(config.SystemScope)
		if err != nil {
			return a, fmt.Errorf("reading Git's configuration: %w", err)
		}
		a.Name = firstOf(a.Name, c.Author.Name, c.User.Name)
		a.Email = firstOf(a.Email, c.Author.Email, c.User.Email)
	}
	if a.Name == "" || a.Email == "" {
		return a, errors.New("no author to commit as: set user.name and user.email with 'git config', or GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL")
	}
	return a, nil
}

func firstOf(values ...string) string {
	i := slices.IndexFunc(values, func(s string) bool { return s != "" })
	if i < 0 {
		return ""
	}
	return values[i]
}

// Branch makes a branch with one commit on top of parent, and nothing else: the
// work tree, the index and HEAD stay as they are.
func (r *Repo) Branch(name string, parent *Revision, c Commit) (*Revision, error) {
	ref := plumbing.NewBranchReferenceName(name)
	if err := ref.Validate(); err != nil {
		return nil, fmt.Errorf("branch %q: %w", name, err)
	}
	if err := r.vacant(ref, name, c.Force); err != nil {
		return nil, err
	}
	tree, err := r.apply(parent.commit.TreeHash, sortedChanges(c.Changes))
	if err != nil {
		return nil, fmt.Errorf("branch %q: %w", name, err)
	}
	if tree == plumbing.ZeroHash { // everything was removed
		if tree, err = r.store(&object.Tree{}); err != nil {
			return nil, err
		}
	}
	who := object.Signature{Name: c.Author.Name, Email: c.Author.Email, When: c.When}
	hash, err := r.store(&object.Commit{Author: who, Committer: who, Message: c.Message, TreeHash: tree, ParentHashes: []plumbing.Hash{parent.commit.Hash}})
	if err != nil {
		return nil, fmt.Errorf("branch %q: %w", name, err)
	}
	if err := r.git.Storer.SetReference(plumbing.NewHashReference(ref, hash)); err != nil {
		return nil, fmt.Errorf("branch %q: %w", name, err)
	}
	return r.revision(name, hash)
}

// vacant reports why a branch cannot be made, nil where it can.
func (r *Repo) vacant(ref plumbing.ReferenceName, name string, force bool) error {
	if head, err := r.git.Reference(plumbing.HEAD, false); err == nil && head.Target() == ref {
		return fmt.Errorf("branch %q is checked out: choose another name", name)
	}
	_, err := r.git.Reference(ref, false)
	switch {
	case errors.Is(err, plumbing.ErrReferenceNotFound):
		return nil
	case err != nil:
		return err
	case !force:
		return fmt.Errorf("branch %q exists already: choose another name, or replace it with --force", name)
	}
	return nil
}

func sortedChanges(in []Change) []Change {
	out := slices.Clone(in)
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// apply returns the tree that changes make of base; zero where nothing is left.
func (r *Repo) apply(base plumbing.Hash, changes []Change) (plumbing.Hash, error) {
	entries := map[string]object.TreeEntry{}
	if base != plumbing.ZeroHash {
		tree, err := r.git.TreeObject(base)
		if err != nil {
			return base, err
		}
		for _, e := range tree.Entries {
			entries[e.Name] = e
		}
	}
	below := map[string][]Change{}
	for _, c := range changes {
		if !fs.ValidPath(c.Path) || c.Path == "." {
			return base, fmt.Errorf("%q is no path", c.Path)
		}
		first, rest, deeper := strings.Cut(c.Path, "/")
		switch {
		case deeper:
			below[first] = append(below[first], Change{rest, c.Data, c.Removed})
		case c.Removed:
			delete(entries, first)
		default:
			e := object.TreeEntry{Name: first, Mode: filemode.Regular}
			if old, ok := entries[first]; ok && old.Mode.IsFile() && old.Mode != filemode.Symlink {
				e.Mode = old.Mode
			}
			var err error
			if e.Hash, err = r.blob(c.Data); err != nil {
				return base, err
			}
			entries[first] = e
		}
	}
	for dir, list := range below {
		was := plumbing.ZeroHash
		if old, ok := entries[dir]; ok && old.Mode == filemode.Dir {
			was = old.Hash
		}
		hash, err := r.apply(was, list)
		if err != nil {
			return base, err
		}
		if delete(entries, dir); hash != plumbing.ZeroHash {
			entries[dir] = object.TreeEntry{Name: dir, Mode: filemode.Dir, Hash: hash}
		}
	}
	return r.tree(entries)
}

func (r *Repo) tree(entries map[string]object.TreeEntry) (plumbing.Hash, error) {
	if len(entries) == 0 {
		return plumbing.ZeroHash, nil
	}
	t := &object.Tree{}
	for _, e := range entries {
		t.Entries = append(t.Entries, e)
	}
	sort.Sort(object.TreeEntrySorter(t.Entries))
	return r.store(t)
}

func (r *Repo) blob(data []byte) (plumbing.Hash, error) {
	o := r.git.Storer.NewEncodedObject()
	o.SetType(plumbing.BlobObject)
	w, err := o.Writer()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if _, err := w.Write(data); err != nil {
		return plumbing.ZeroHash, errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return plumbing.ZeroHash, err
	}
	return r.git.Storer.SetEncodedObject(o)
}

// encoder is a commit or a tree.
type encoder interface {
	Encode(o plumbing.EncodedObject) error
}

func (r *Repo) store(what encoder) (plumbing.Hash, error) {
	o := r.git.Storer.NewEncodedObject()
	if err := what.Encode(o); err != nil {
		return plumbing.ZeroHash, err
	}
	return r.git.Storer.SetEncodedObject(o)
}
