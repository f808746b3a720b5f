package gitrepo

import (
	"container/heap"
	"errors"
	"slices"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// mark is a set of bits for a commit: which of the two start commits reach this commit, and whether it is stale.
type mark uint8

const (
	fromA mark = 1 << iota
	fromB
	stale // the commit is an ancestor of a common ancestor
	both  = fromA | fromB
)

// walk follows the history of two commits at the same time, youngest commits first.
type walk struct {
	git     *git.Repository
	marks   map[plumbing.Hash]mark
	shallow map[plumbing.Hash]bool // commits at which the history of a shallow clone ends
	queue   commits
}

// base returns the best common ancestor of two commits, or nil if there is none. It reads only as much history
// as necessary. In a shallow clone, it may miss the ancestor because the history is incomplete.
func (r *Repo) base(a, b *object.Commit) (*object.Commit, error) {
	w := walk{git: r.git, marks: map[plumbing.Hash]mark{}, shallow: map[plumbing.Hash]bool{}}
	ends, err := r.git.Storer.Shallow()
	if err != nil {
		return nil, err
	}
	for _, h := range ends {
		w.shallow[h] = true
	}
	return w.base(a, b)
}

func (w *walk) base(a, b *object.Commit) (*object.Commit, error) {
	w.reach(a, fromA)
	w.reach(b, fromB)
	var found []*object.Commit
	for w.hasFresh() {
		c := heap.Pop(&w.queue).(*object.Commit)
		m := w.marks[c.Hash]
		if m&both == both && m&stale == 0 {
			found = append(found, c)
			m |= stale
		}
		if err := w.visitParents(c, m); err != nil {
			return nil, err
		}
	}
	return w.pickBest(found)
}

// pickBest returns the youngest commit in found that is not an ancestor of another commit in found, or nil if
// found is empty. Comparing the commit times is not enough: with wrong clocks, an ancestor may be younger than
// its descendant.
func (w *walk) pickBest(found []*object.Commit) (*object.Commit, error) {
	found = slices.DeleteFunc(found, func(c *object.Commit) bool { return w.marks[c.Hash]&stale != 0 })
	for _, c := range found {
		redundant := false
		for _, d := range found {
			if c.Hash == d.Hash || redundant {
				continue
			}
			back := walk{git: w.git, marks: map[plumbing.Hash]mark{}, shallow: w.shallow}
			var err error
			if redundant, err = back.reaches(d, c.Hash); err != nil {
				return nil, err
			}
		}
		if !redundant {
			return c, nil
		}
	}
	return nil, nil
}

// reaches reports whether target is an ancestor of from.
func (w *walk) reaches(from *object.Commit, target plumbing.Hash) (bool, error) {
	w.reach(from, fromA)
	for len(w.queue) > 0 {
		if w.marks[target] != 0 {
			return true, nil
		}
		if err := w.visitParents(heap.Pop(&w.queue).(*object.Commit), fromA); err != nil {
			return false, err
		}
	}
	return w.marks[target] != 0, nil
}

// hasFresh reports whether the queue contains a commit that is not stale.
func (w *walk) hasFresh() bool {
	return slices.ContainsFunc(w.queue, func(c *object.Commit) bool { return w.marks[c.Hash]&stale == 0 })
}

func (w *walk) visitParents(c *object.Commit, m mark) error {
	if w.shallow[c.Hash] {
		return nil
	}
	for _, h := range c.ParentHashes {
		if w.marks[h]&m == m {
			continue
		}
		p, err := w.git.CommitObject(h)
		if errors.Is(err, plumbing.ErrObjectNotFound) && len(w.shallow) > 0 {
			continue
		}
		if err != nil {
			return err
		}
		w.reach(p, m)
	}
	return nil
}

func (w *walk) reach(c *object.Commit, m mark) {
	w.marks[c.Hash] |= m
	heap.Push(&w.queue, c)
}

// commits is a heap of commits, youngest first.
type commits []*object.Commit

func (q commits) Len() int           { return len(q) }
func (q commits) Less(i, j int) bool { return q[i].Committer.When.After(q[j].Committer.When) }
func (q commits) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *commits) Push(x any)        { *q = append(*q, x.(*object.Commit)) }
func (q *commits) Pop() any {
	old := *q
	c := old[len(old)-1]
	*q = old[:len(old)-1]
	return c
}
