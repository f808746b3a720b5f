package gitrepo

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Revision is a commit.
type Revision struct {
	repo   *Repo
	name   string
	commit *object.Commit
	recent recent
}

// Name returns what the user called it: "main".
func (v *Revision) Name() string { return v.name }

// Hash returns the commit's name in full, in hexadecimal digits.
func (v *Revision) Hash() string { return v.commit.Hash.String() }

// Time returns when it was committed.
func (v *Revision) Time() time.Time { return v.commit.Committer.When }

// Revision returns the commit that name means: a branch, a tag, "HEAD~1", the
// first digits of a commit.
func (r *Repo) Revision(name string) (*Revision, error) {
	if name == "" || strings.HasPrefix(name, "-") || strings.Contains(name, ":") || strings.Contains(name, "^{") {
		return nil, fmt.Errorf("%q is no commit", name)
	}
	return r.called(name, name)
}

// called returns a commit, as name calls it.
func (r *Repo) called(name, commit string) (*Revision, error) {
	v, err := r.lookUp(name, commit)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return nil, fmt.Errorf("no revision %q in this repository%s", name, r.fetchHint())
	}
	if err != nil {
		return nil, fmt.Errorf("revision %q: %w%s", name, err, r.fetchHint())
	}
	return v, nil
}

// lookUp is called with go-git's errors.
func (r *Repo) lookUp(name, commit string) (*Revision, error) {
	hash, err := r.git.ResolveRevision(plumbing.Revision(commit))
	if err != nil {
		return nil, err
	}
	c, err := r.git.CommitObject(*hash)
	return &Revision{repo: r, name: name, commit: c}, err
}

// fetchHint returns advice for an object or a name that is not found.
func (r *Repo) fetchHint() string {
	if r.Shallow() {
		return " (the clone is shallow: fetch more of it, as with 'git fetch --unshallow')"
	}
	return ""
}

// ErrNoBase reports that two revisions have no common ancestor in this clone.
var ErrNoBase = errors.New("no common ancestor")

// MergeBase returns the best common ancestor of two revisions; of several that
// are equally good the youngest. The history ends where a shallow clone ends.
// The error is ErrNoBase where there is none.
func (r *Repo) MergeBase(a, b *Revision) (*Revision, error) {
	base, err := r.base(a.commit, b.commit)
	if err != nil {
		return nil, fmt.Errorf("merge base of %s and %s: %w", a.name, b.name, err)
	}
	if base == nil {
		return nil, fmt.Errorf("%s and %s: %w%s", a.name, b.name, ErrNoBase, r.fetchHint())
	}
	return &Revision{repo: r, name: short(base.Hash.String()), commit: base}, nil
}

// short cuts a hash to what a person compares.
func short(hash string) string {
	return hash[:min(len(hash), 12)]
}
