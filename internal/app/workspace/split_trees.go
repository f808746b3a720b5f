package workspace

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/quayside/quayside/internal/base/filetree"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// trees renders the locks of a split and compares the results: see [resolve.Trees]. A lock
// that does not render is reported later, when its branch is written.
type trees struct {
	in     *Inputs
	render func(lock *lockfile.File) *render.Result // nil: it does not render

	base   func() *render.Result
	parts  map[*lockfile.File]*part
	proven map[string]bool // sets of locks, by the addresses of these
	failed error           // an error that every other lock would have too
}

// part is the tree of the lock of a part.
type part struct {
	edits   *filetree.Edits
	touches map[string]bool // objects and Namespaces that its operators may share with others
}

// trees returns the comparison of rendered trees for locks based on the workspace's.
func (in *Inputs) trees(ctx context.Context) *trees {
	t := &trees{in: in, parts: map[*lockfile.File]*part{}, proven: map[string]bool{}}
	t.render = func(lock *lockfile.File) *render.Result {
		whole, err := in.complete(ctx, in.withStorage(lock))
		if err != nil {
			t.failed = err
			return nil
		}
		res, err := in.project.Render(ctx, whole)
		if err != nil {
			return nil
		}
		return res
	}
	t.base = sync.OnceValue(func() *render.Result { return t.render(in.Lock) })
	return t
}

// part returns the tree of a lock; nil if it does not render.
func (t *trees) part(lock *lockfile.File) *part {
	if known, is := t.parts[lock]; is || t.base() == nil {
		return known
	}
	var made *part
	if res := t.render(lock); res != nil {
		made = &part{filetree.EditsOf(t.base().Tree, res.Tree), t.touched(lock, res)}
	}
	t.parts[lock] = made
	return made
}

// touched returns the objects of the changed operators, before and after, and the
// Namespaces whose suggested metadata they change.
func (t *trees) touched(lock *lockfile.File, res *render.Result) map[string]bool {
	out := map[string]bool{}
	for _, c := range lockfile.Diff(t.in.Lock, lock) {
		operator := c.Namespace + "/" + c.Package
		for _, r := range []*render.Result{t.base(), res} {
			for _, key := range r.ShippedKeys(operator) {
				out[key.String()] = true
			}
		}
		if t.base().SuggestedNamespaceTemplate(operator) != res.SuggestedNamespaceTemplate(operator) {
			out["suggested of "+c.Namespace] = true
		}
	}
	return out
}

// CanMerge is that of [resolve.Trees].
func (t *trees) CanMerge(a, b *lockfile.File) bool {
	x, y := t.part(a), t.part(b)
	return x == nil || y == nil || x.edits.Apart(y.edits)
}

// Overlap is that of [resolve.Trees].
func (t *trees) Overlap(a, b *lockfile.File) bool {
	x, y := t.part(a), t.part(b)
	if x == nil || y == nil {
		return false
	}
	for shared := range x.touches {
		if y.touches[shared] {
			return true
		}
	}
	return false
}

// MergeEquals is that of [resolve.Trees].
func (t *trees) MergeEquals(merged *lockfile.File, of []*lockfile.File) bool {
	var edits []*filetree.Edits
	var names strings.Builder
	for _, lock := range of {
		p := t.part(lock)
		if p == nil {
			return true
		}
		edits = append(edits, p.edits)
		fmt.Fprintf(&names, "%p ", lock)
	}
	holds, known := t.proven[names.String()]
	if !known {
		res := t.render(merged)
		holds = res != nil && filetree.EditsOf(t.base().Tree, res.Tree).Are(edits...)
		t.proven[names.String()] = holds
	}
	return holds
}
