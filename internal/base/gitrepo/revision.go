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

// Name returns the name of the revision as given by the user: "main".
func (v *Revision) Name() string { return v.name }

// Hash returns the full hash of the commit in hexadecimal digits.
func (v *Revision) Hash() string { return v.commit.Hash.String() }

// Time returns the committer's time of the commit.
func (v *Revision) Time() time.Time { return v.commit.Committer.When }

// Revision resolves name to a commit. name is a branch, a tag, an expression such as
// "HEAD~1", or the first digits of a hash.
func (r *Repo) Revision(name string) (*Revision, error) {
	if name == "" || strings.HasPrefix(name, "-") || strings.Contains(name, ":") || strings.Contains(name, "^{") {
		return nil, fmt.Errorf("%q is not a commit", name)
	}
	return r.called(name, name)
}

// called resolves commit and returns it as a Revision called name. Errors include name and
// a hint for shallow clones.
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

// lookUp is like called, but returns the errors of go-git.
func (r *Repo) lookUp(name, commit string) (*Revision, error) {
	hash, err := r.git.ResolveRevision(plumbing.Revision(commit))
	if err != nil {
		return nil, err
	}
	c, err := r.git.CommitObject(*hash)
	return &Revision{repo: r, name: name, commit: c}, err
}

// fetchHint returns advice for a missing object or name in a shallow clone.
func (r *Repo) fetchHint() string {
	if r.Shallow() {
		return " (the clone is shallow: run 'git fetch --unshallow')"
	}
	return ""
}

// ErrNoBase reports that two revisions have no common ancestor in this clone.
var ErrNoBase = errors.New("no common ancestor")

// MergeBase returns the best common ancestor of two revisions, the youngest of several
// equally good ones. A shallow clone limits the history. The error wraps ErrNoBase if
// there is none.
func (r *Repo) MergeBase(a, b *Revision) (*Revision, error) {
	base, err := r.base(a.commit, b.commit)
	if err != nil {
		return nil, fmt.Errorf("merge base of %s and %s: %w", a.name, b.name, err)
	}
	if base == nil {
		return nil, fmt.Errorf("%s and %s: %w%s", a.name, b.name, ErrNoBase, r.fetchHint())
	}
	return &Revision{repo: r, name: shortHash(base.Hash.String()), commit: base}, nil
}

// shortHash returns the first 12 digits of a hash.
func shortHash(hash string) string {
	return hash[:min(len(hash), 12)]
}
