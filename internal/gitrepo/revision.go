package gitrepo

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Revision is a commit.
type Revision struct {
	repo *Repo
	name string
	commit
	recent *recent
}

// Name returns what the user called it: "main".
func (v *Revision) Name() string { return v.name }

// Hash returns the commit's name in full, in hexadecimal digits.
func (v *Revision) Hash() string { return v.hash }

// Time returns when it was committed.
func (v *Revision) Time() time.Time { return v.time }

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
	found, err := r.objects.commit(commit)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return nil, fmt.Errorf("no revision %q in this repository%s", name, r.fetchHint())
	}
	if err != nil {
		return nil, fmt.Errorf("revision %q: %w%s", name, err, r.fetchHint())
	}
	return &Revision{r, name, found, &recent{trees: map[string][]entry{}}}, nil
}

// fetchHint says what may help where something is not found.
func (r *Repo) fetchHint() string {
	if r.Shallow() {
		return " (the clone is shallow: fetch more of it, as with 'git fetch --unshallow')"
	}
	return ""
}

// DefaultBranch returns the name of the branch that work is merged into: what
// origin/HEAD stands for, else the first there is of origin/main,
// origin/master, main and master.
func (r *Repo) DefaultBranch() (string, error) {
	head := plumbing.NewRemoteHEADReferenceName("origin")
	names := []plumbing.ReferenceName{
		plumbing.NewRemoteReferenceName("origin", "main"), plumbing.NewRemoteReferenceName("origin", "master"),
		plumbing.NewBranchReferenceName("main"), plumbing.NewBranchReferenceName("master"),
	}
	there, err := r.objects.references(append(names, head)...)
	if err != nil {
		return "", err
	}
	if target := there[head]; target != "" {
		return target.Short(), nil
	}
	for _, name := range names {
		if _, ok := there[name]; ok {
			return name.Short(), nil
		}
	}
	return "", errors.New("there is no origin/HEAD, main or master to compare with: name the branch with --base, or a revision")
}

// ErrNoBase says that two revisions have no common ancestor in this clone.
var ErrNoBase = errors.New("no common ancestor")

// MergeBase returns the best common ancestor of two revisions; of several that
// are equally good the youngest. The history ends where a shallow clone ends.
// The error is ErrNoBase where there is none.
func (r *Repo) MergeBase(a, b *Revision) (*Revision, error) {
	hash, err := r.objects.base(a.hash, b.hash)
	if err != nil {
		return nil, fmt.Errorf("merge base of %s and %s: %w", a.name, b.name, err)
	}
	if hash == "" {
		return nil, fmt.Errorf("%s and %s: %w%s", a.name, b.name, ErrNoBase, r.fetchHint())
	}
	return r.called(short(hash), hash)
}

// short cuts a hash to what a person compares.
func short(hash string) string {
	return hash[:min(len(hash), 12)]
}
