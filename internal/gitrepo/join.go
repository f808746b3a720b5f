package gitrepo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Join is the place where a work tree joins lines of history.
type Join struct {
	Base  *Revision   // that the sides started from; nil where there is none in this clone
	Sides []*Revision // at least one
	Open  bool        // a merge, rebase, cherry-pick or revert that is not committed yet
}

// Joins returns the joins whose outcome the work tree holds. An open one is the only
// one. Otherwise they are the parents of HEAD, where it is a merge commit; the branch
// before its last rebase and the branch that it was rebased onto; and HEAD by itself,
// without a base. There are none before the first commit.
func (r *Repo) Joins() ([]Join, error) {
	head, err := r.named("HEAD")
	if head == nil || err != nil {
		return nil, err
	}
	open, err := r.openJoin(head)
	if err != nil {
		return nil, err
	}
	if open != nil {
		return []Join{*open}, nil
	}
	out := []Join{{Sides: []*Revision{head}}}
	done, err := r.doneJoin(head)
	if done != nil && done.Base != nil {
		out = append([]Join{*done}, out...)
	}
	return out, err
}

// openJoin returns the join that Git waits for; nil where there is none.
func (r *Repo) openJoin(head *Revision) (*Join, error) {
	theirs, err := r.named("MERGE_HEAD")
	if theirs == nil && err == nil {
		theirs, err = r.squashed()
	}
	if theirs != nil && err == nil {
		return r.join(true, head, theirs)
	}
	for _, name := range []string{"REBASE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"} {
		if name == "REBASE_HEAD" && !r.has("rebase-merge") && !r.has("rebase-apply") {
			continue // Git may leave it behind
		}
		picked, err := r.named(name)
		if err != nil {
			return nil, err
		}
		if picked == nil {
			continue
		}
		var parent *Revision
		if picked.commit.NumParents() > 0 {
			if parent, err = r.called(name+"^", picked.commit.ParentHashes[0].String()); err != nil {
				return &Join{Sides: []*Revision{head, picked}, Open: true}, nil //nolint:nilerror // the clone ends there
			}
		}
		if name == "REVERT_HEAD" && parent != nil {
			picked, parent = parent, picked
		}
		return &Join{Base: parent, Sides: []*Revision{head, picked}, Open: true}, nil
	}
	return nil, err
}

// doneJoin returns the join that HEAD is the outcome of; nil where there is none, or
// where the clone does not hold it.
func (r *Repo) doneJoin(head *Revision) (*Join, error) {
	if head.commit.NumParents() == 2 {
		ours, err := r.called("HEAD^1", head.commit.ParentHashes[0].String())
		if err != nil {
			return nil, nil //nolint:nilerror // the clone ends there
		}
		theirs, err := r.called("HEAD^2", head.commit.ParentHashes[1].String())
		if err != nil {
			return nil, nil //nolint:nilerror // likewise
		}
		return r.join(false, ours, theirs)
	}
	before, err := r.named("ORIG_HEAD")
	if before == nil || err != nil || r.contains(head, before) {
		return nil, err
	}
	for _, name := range r.upstreams() {
		onto, err := r.named(name)
		if err == nil && onto != nil && onto.Hash() != head.Hash() && r.contains(head, onto) {
			return r.join(false, before, onto)
		}
	}
	return nil, nil
}

// join returns the join of two revisions.
func (r *Repo) join(open bool, ours, theirs *Revision) (*Join, error) {
	base, err := r.MergeBase(ours, theirs)
	if errors.Is(err, ErrNoBase) || errors.Is(err, plumbing.ErrObjectNotFound) {
		err = nil
	}
	return &Join{Base: base, Sides: []*Revision{ours, theirs}, Open: open}, err
}

// contains reports whether one revision is another or a descendant of it.
func (r *Repo) contains(v, ancestor *Revision) bool {
	base, err := r.base(v.commit, ancestor.commit)
	return err == nil && base != nil && base.Hash == ancestor.commit.Hash
}

// squashed returns the commit that a squash merge takes; nil where none waits.
func (r *Repo) squashed() (*Revision, error) {
	data, err := os.ReadFile(filepath.Join(r.own, "SQUASH_MSG"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	first := regexp.MustCompile(`(?m)^commit ([0-9a-f]{40,64})$`).FindSubmatch(data)
	if err != nil || first == nil {
		return nil, err
	}
	return r.called(short(string(first[1])), string(first[1]))
}

// upstreams returns the branches that the one that is checked out may have been rebased
// onto: its upstream, and the default branch.
func (r *Repo) upstreams() []string {
	var out []string
	if set, err := r.git.Config(); err == nil {
		if branch := set.Branches[r.HeadBranch()]; branch == nil || branch.Remote == "" {
			// has no upstream
		} else if branch.Remote == "." {
			out = append(out, branch.Merge.Short())
		} else {
			out = append(out, branch.Remote+"/"+branch.Merge.Short())
		}
	}
	if branch, err := r.DefaultBranch(); err == nil {
		out = append(out, branch)
	}
	return out
}

// named returns the commit that Git has a name for; nil where that stands for none.
func (r *Repo) named(name string) (*Revision, error) {
	if name == strings.ToUpper(name) && !r.has(name) {
		return nil, nil
	}
	v, err := r.lookUp(name, name)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("revision %q: %w", name, err)
	}
	return v, nil
}

// has reports whether there is a file or a directory in the state of the work tree.
func (r *Repo) has(name string) bool {
	_, err := os.Stat(filepath.Join(r.own, name))
	return err == nil
}
