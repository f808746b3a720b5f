package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"strings"
	"time"

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
	set, err := r.settings()
	if err != nil {
		return Author{}, err
	}
	a := Author{
		Name:  cmp.Or(getenv("GIT_AUTHOR_NAME"), set["author.name"], set["user.name"]),
		Email: cmp.Or(getenv("GIT_AUTHOR_EMAIL"), set["author.email"], set["user.email"]),
	}
	if a.Name == "" || a.Email == "" {
		return a, errors.New("no author to commit as: set user.name and user.email with 'git config', or GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL")
	}
	return a, nil
}

// Branch makes a branch with one commit on top of parent, and nothing else: the
// work tree, the index and HEAD stay as they are. Whatever interrupts it, the
// branch is the old one or the new one. A branch that is this commit already is
// left alone. A branch that is checked out anywhere is refused. Where hooks,
// filters, signatures or the like are set up, Git itself makes the commit if it
// is installed; if not, Tell is told.
func (r *Repo) Branch(ctx context.Context, name string, parent *Revision, c Commit) (*Revision, error) {
	made, err := r.branch(ctx, name, parent, c)
	if err != nil {
		return nil, fmt.Errorf("branch %q: %w", name, err)
	}
	return made, nil
}

func (r *Repo) branch(ctx context.Context, name string, parent *Revision, c Commit) (*Revision, error) {
	ref, err := branchName(name)
	if err != nil {
		return nil, err
	}
	if err := r.vacant(ref); err != nil {
		return nil, err
	}
	for _, change := range c.Changes {
		if !fs.ValidPath(change.Path) || change.Path == "." {
			return nil, fmt.Errorf("%q is no path", change.Path)
		}
	}
	needs, err := r.commitNeeds(parent, c.Changes)
	if err != nil {
		return nil, err
	}
	if git := r.program(needs, "the commit is made"); git != nil {
		made, err := git.commit(ctx, ref, parent.Hash(), c)
		if err != nil {
			return nil, err
		}
		return r.called(name, made)
	}
	tree, err := r.apply(plumbing.NewHash(parent.tree), c.Changes)
	if err != nil {
		return nil, err
	}
	if tree == plumbing.ZeroHash { // everything was removed
		if tree, err = r.store(&object.Tree{}); err != nil {
			return nil, err
		}
	}
	who := object.Signature{Name: c.Author.Name, Email: c.Author.Email, When: c.When}
	hash, err := r.store(&object.Commit{Author: who, Committer: who, Message: c.Message, TreeHash: tree, ParentHashes: []plumbing.Hash{plumbing.NewHash(parent.hash)}})
	if err != nil {
		return nil, err
	}
	if err := r.point(ref, hash, who, c); err != nil {
		return nil, err
	}
	return r.called(name, hash.String())
}

// point makes ref stand for a commit.
func (r *Repo) point(ref plumbing.ReferenceName, hash plumbing.Hash, who object.Signature, c Commit) error {
	u := refUpdate{ref: ref, hash: hash, who: who}
	u.old = func() (plumbing.Hash, error) { return r.replaced(ref, hash, c.Force) }
	if old, err := u.old(); err != nil || old == hash {
		return err
	}
	set, err := r.settings()
	if err != nil {
		return err
	}
	u.common = r.common
	u.logged, u.who.When = set.logsBranches(), time.Now()
	subject, _, _ := strings.Cut(c.Message, "\n")
	u.why = "quayside: " + subject
	return u.run()
}

// replaced returns what ref stands for before it stands for hash, zero where it
// is new. What may not be replaced is an error.
func (r *Repo) replaced(ref plumbing.ReferenceName, hash plumbing.Hash, force bool) (plumbing.Hash, error) {
	is, err := r.git.Storer.Reference(ref)
	switch {
	case errors.Is(err, plumbing.ErrReferenceNotFound):
		return plumbing.ZeroHash, nil
	case err != nil:
		return plumbing.ZeroHash, err
	case is.Type() == plumbing.SymbolicReference:
		return plumbing.ZeroHash, standsFor(is.Target())
	case !force && is.Hash() != hash:
		return plumbing.ZeroHash, errExists
	}
	return is.Hash(), nil
}

var (
	errExists = errors.New("it exists already: choose another name, or replace it with --force")
	errOther  = errors.New("it holds another branch of this name: choose another, or replace it with --force")
)

// standsFor is the error of a branch that is another name for a reference.
func standsFor[T ~string](target T) error {
	return fmt.Errorf("it stands for %s: choose another name", target)
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
	o := &plumbing.MemoryObject{}
	o.SetType(plumbing.BlobObject)
	if _, err := o.Write(data); err != nil {
		return plumbing.ZeroHash, err
	}
	return r.put(o)
}

// encoder is a commit or a tree.
type encoder interface {
	Encode(o plumbing.EncodedObject) error
}

func (r *Repo) store(what encoder) (plumbing.Hash, error) {
	o := &plumbing.MemoryObject{}
	if err := what.Encode(o); err != nil {
		return plumbing.ZeroHash, err
	}
	return r.put(o)
}
