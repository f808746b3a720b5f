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

// Merge describes branches that were merged in a work tree.
type Merge struct {
	Base  *Revision   // common ancestor of the sides; nil if the clone does not have one
	Sides []*Revision // merged commits; at least one
	Open  bool        // the merge, rebase, cherry-pick or revert is not committed yet
}

// Merges returns the merges that the work tree may result from. If there is an uncommitted merge, Merges
// returns only this merge. Otherwise, it returns first the completed merge that led to HEAD, if this merge
// has a base. The last element is then a Merge without a base, whose only side is HEAD. The sides of a
// completed merge are the parents of a merge commit at HEAD. After a rebase, the sides are the branch as it
// was before the rebase, and the target of the rebase. Before the first commit, Merges returns nil.
func (r *Repo) Merges() ([]Merge, error) {
	head, err := r.findRevision("HEAD", "HEAD")
	if head == nil || err != nil {
		return nil, err
	}
	open, err := r.uncommittedMerge(head)
	if err != nil {
		return nil, err
	}
	if open != nil {
		return []Merge{*open}, nil
	}
	out := []Merge{{Sides: []*Revision{head}}}
	done, err := r.completedMerge(head)
	if done != nil && done.Base != nil {
		out = append([]Merge{*done}, out...)
	}
	return out, err
}

// uncommittedMerge returns the uncommitted merge, or nil if there is none.
func (r *Repo) uncommittedMerge(head *Revision) (*Merge, error) {
	theirs, err := r.findRevision("MERGE_HEAD", "MERGE_HEAD")
	if theirs == nil && err == nil {
		theirs, err = r.squashedCommit()
	}
	if theirs != nil && err == nil {
		return r.newMerge(true, head, theirs)
	}
	for _, name := range []string{"REBASE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"} {
		if name == "REBASE_HEAD" && !r.hasStateFile("rebase-merge") && !r.hasStateFile("rebase-apply") {
			continue // Git may have left this file behind
		}
		picked, err := r.findRevision(name, name)
		if err != nil {
			return nil, err
		}
		if picked == nil {
			continue
		}
		var parent *Revision
		if picked.commit.NumParents() > 0 {
			if parent, err = r.resolveRevision(name+"^", picked.commit.ParentHashes[0].String()); err != nil {
				return &Merge{Sides: []*Revision{head, picked}, Open: true}, nil //nolint:nilerror // the clone does not have the parent
			}
		}
		if name == "REVERT_HEAD" && parent != nil {
			picked, parent = parent, picked
		}
		return &Merge{Base: parent, Sides: []*Revision{head, picked}, Open: true}, nil
	}
	return nil, err
}

// completedMerge returns the completed merge that led to HEAD. It returns nil if there is none, or if the clone
// lacks the merged commits.
func (r *Repo) completedMerge(head *Revision) (*Merge, error) {
	if head.commit.NumParents() == 2 {
		ours, err := r.resolveRevision("HEAD^1", head.commit.ParentHashes[0].String())
		if err != nil {
			return nil, nil //nolint:nilerror // the clone does not have the parent
		}
		theirs, err := r.resolveRevision("HEAD^2", head.commit.ParentHashes[1].String())
		if err != nil {
			return nil, nil //nolint:nilerror // the clone does not have the parent
		}
		return r.newMerge(false, ours, theirs)
	}
	before, err := r.findRevision("ORIG_HEAD", "ORIG_HEAD")
	if before == nil || err != nil || r.Contains(head, before) {
		return nil, err
	}
	for _, name := range r.rebaseTargets() {
		onto, err := r.findRevision(name.Short(), string(name))
		if err == nil && onto != nil && onto.Hash() != head.Hash() && r.Contains(head, onto) {
			return r.newMerge(false, before, onto)
		}
	}
	return nil, nil
}

// newMerge returns the merge of two revisions, with their merge base if the clone has one.
func (r *Repo) newMerge(open bool, ours, theirs *Revision) (*Merge, error) {
	base, err := r.MergeBase(ours, theirs)
	if errors.Is(err, ErrNoBase) || errors.Is(err, plumbing.ErrObjectNotFound) {
		err = nil
	}
	return &Merge{Base: base, Sides: []*Revision{ours, theirs}, Open: open}, err
}

// Contains reports whether ancestor is v or an ancestor of v.
func (r *Repo) Contains(v, ancestor *Revision) bool {
	base, err := r.base(v.commit, ancestor.commit)
	return err == nil && base != nil && base.Hash == ancestor.commit.Hash
}

// squashedCommit returns the commit that an uncommitted squash merge merges, or nil if there is no such merge.
func (r *Repo) squashedCommit() (*Revision, error) {
	data, err := os.ReadFile(filepath.Join(r.gitDir, "SQUASH_MSG"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	first := regexp.MustCompile(`(?m)^commit ([0-9a-f]{40,64})$`).FindSubmatch(data)
	if err != nil || first == nil {
		return nil, err
	}
	return r.resolveRevision(shortHash(string(first[1])), string(first[1]))
}

// rebaseTargets returns the full names of the branches that the current branch was probably rebased
// onto: its upstream branch and the default branch.
func (r *Repo) rebaseTargets() []plumbing.ReferenceName {
	var out []plumbing.ReferenceName
	if set, err := r.git.Config(); err == nil {
		if branch := set.Branches[r.HeadBranch()]; branch == nil || branch.Remote == "" {
			// The branch has no upstream.
		} else if branch.Remote == "." {
			out = append(out, branch.Merge)
		} else {
			out = append(out, plumbing.NewRemoteReferenceName(branch.Remote, branch.Merge.Short()))
		}
	}
	if head, err := r.git.Reference(plumbing.NewRemoteHEADReferenceName("origin"), false); err == nil && head.Target() != "" {
		out = append(out, head.Target())
	}
	for _, name := range localDefaults() {
		out = append(out, plumbing.NewRemoteReferenceName("origin", name.Short()), name)
	}
	return out
}

// findRevision returns the commit with the full name full, such as MERGE_HEAD. The Revision is called name.
// It returns nil if there is no such commit.
func (r *Repo) findRevision(name, full string) (*Revision, error) {
	if full == strings.ToUpper(full) && !r.hasStateFile(full) {
		return nil, nil
	}
	v, err := r.lookUpRevision(name, full)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("revision %q: %w", name, err)
	}
	return v, nil
}

// hasStateFile reports whether the Git directory of the work tree contains a file or directory with
// this name.
func (r *Repo) hasStateFile(name string) bool {
	_, err := os.Stat(filepath.Join(r.gitDir, name))
	return err == nil
}
