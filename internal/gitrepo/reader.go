package gitrepo

import (
	"errors"
	"io"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// commit is what is read of a commit: names of objects in hexadecimal digits.
type commit struct {
	hash, tree string
	time       time.Time
	parents    []string
}

// entry is one line of a tree.
type entry struct {
	name string
	mode filemode.FileMode
	hash string
}

// reader reads the objects and references of a repository: by go-git, or by Git
// itself where go-git cannot. What is not there is plumbing.ErrReferenceNotFound
// or plumbing.ErrObjectNotFound.
type reader interface {
	// commit returns what a user calls a commit.
	commit(name string) (commit, error)
	// tree returns the entries of a tree, in Git's order.
	tree(hash string) ([]entry, error)
	// size returns the number of bytes of a file.
	size(hash string) (int64, error)
	// blob returns the content of a file of that size.
	blob(hash string, size int64) ([]byte, error)
	// base returns the hash of the best common ancestor of two commits, empty
	// where there is none.
	base(a, b string) (string, error)
	// references returns which of the references stand for something, each with
	// the reference that it stands for, which is empty for most.
	references(names ...plumbing.ReferenceName) (map[plumbing.ReferenceName]plumbing.ReferenceName, error)
}

// library reads by go-git.
type library struct{ git *git.Repository }

func (l library) commit(name string) (commit, error) {
	hash, err := l.git.ResolveRevision(plumbing.Revision(name))
	if err != nil {
		return commit{}, err
	}
	c, err := l.git.CommitObject(*hash)
	if err != nil {
		return commit{}, err
	}
	out := commit{hash: c.Hash.String(), tree: c.TreeHash.String(), time: c.Committer.When}
	for _, p := range c.ParentHashes {
		out.parents = append(out.parents, p.String())
	}
	return out, nil
}

func (l library) tree(hash string) ([]entry, error) {
	tree, err := l.git.TreeObject(plumbing.NewHash(hash))
	if err != nil {
		return nil, err
	}
	out := make([]entry, len(tree.Entries))
	for i, e := range tree.Entries {
		out[i] = entry{e.Name, e.Mode, e.Hash.String()}
	}
	return out, nil
}

func (l library) size(hash string) (int64, error) {
	return l.git.Storer.EncodedObjectSize(plumbing.NewHash(hash))
}

func (l library) blob(hash string, size int64) ([]byte, error) {
	blob, err := l.git.BlobObject(plumbing.NewHash(hash))
	if err != nil {
		return nil, err
	}
	r, err := blob.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, size+1))
}

// base looks no further back than it has to. The history ends where a shallow
// clone ends.
func (l library) base(a, b string) (string, error) {
	w := walk{git: l.git, marks: map[plumbing.Hash]mark{}, ends: map[plumbing.Hash]bool{}}
	ends, err := l.git.Storer.Shallow()
	if err != nil {
		return "", err
	}
	for _, h := range ends {
		w.ends[h] = true
	}
	var from [2]*object.Commit
	for i, hash := range []string{a, b} {
		if from[i], err = l.git.CommitObject(plumbing.NewHash(hash)); err != nil {
			return "", err
		}
	}
	best, err := w.base(from[0], from[1])
	if err != nil || best == nil {
		return "", err
	}
	return best.Hash.String(), nil
}

func (l library) references(names ...plumbing.ReferenceName) (map[plumbing.ReferenceName]plumbing.ReferenceName, error) {
	out := map[plumbing.ReferenceName]plumbing.ReferenceName{}
	for _, name := range names {
		ref, err := l.git.Reference(name, false)
		if err == nil {
			_, err = l.git.Reference(name, true)
		}
		if errors.Is(err, plumbing.ErrReferenceNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[name] = ref.Target()
	}
	return out, nil
}
