package workspace

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// treeComparer implements [resolve.TreeComparer]. It renders locks and compares their trees.
// Rendering errors are ignored here, and reported when the branch of the lock is written.
type treeComparer struct {
	in     *Inputs
	render func(lock *lockfile.File) *render.Result // returns nil if rendering fails

	base       func() *render.Result
	unreadable map[string]error // errors of the bundles of in.Lock that cannot be opened: see render
	parts      map[*lockfile.File]*part
	holds      map[string]bool // results of MergeEquals, by the addresses of the locks
	err        error           // error that does not depend on the lock
}

// part is the rendered tree of a part, as edits of the base tree.
type part struct {
	edits  *filetree.Edits
	shared map[string]bool // objects and Namespaces of its operators, which others may share
}

// newTreeComparer returns a treeComparer whose base is the rendered tree of in.Lock. In an
// unattended run, all trees lack the operators of in.Lock whose bundles cannot be opened.
func (in *Inputs) newTreeComparer(ctx context.Context) *treeComparer {
	t := &treeComparer{in: in, parts: map[*lockfile.File]*part{}, holds: map[string]bool{}}
	t.render = func(lock *lockfile.File) *render.Result {
		complete, err := in.addDigests(ctx, lock)
		if err != nil && !in.project.unattended {
			t.err = err
		}
		if err != nil {
			return nil
		}
		res, err := in.project.Render(ctx, WithoutPins(complete, in.Lock, t.unreadable))
		if err != nil {
			return nil
		}
		return res
	}
	t.base = sync.OnceValue(func() *render.Result {
		if res := t.render(in.Lock); res != nil || t.err != nil || !in.project.unattended {
			return res
		}
		if t.unreadable, t.err = in.project.Unreadable(ctx, in.Lock); t.err != nil {
			return nil
		}
		return t.render(in.Lock)
	})
	return t
}

// part returns the rendered part of a lock, or nil if rendering fails.
func (t *treeComparer) part(lock *lockfile.File) *part {
	if known, is := t.parts[lock]; is || t.base() == nil {
		return known
	}
	var rendered *part
	if res := t.render(lock); res != nil {
		rendered = &part{filetree.EditsOf(t.base().Tree, res.Tree), t.sharedNames(lock, res)}
	}
	t.parts[lock] = rendered
	return rendered
}

// sharedNames returns the objects of the changed operators, before and after the change, and the
// Namespaces with changed suggested metadata.
func (t *treeComparer) sharedNames(lock *lockfile.File, res *render.Result) map[string]bool {
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

// CanMerge implements [resolve.TreeComparer].
func (t *treeComparer) CanMerge(a, b *lockfile.File) bool {
	x, y := t.part(a), t.part(b)
	return x == nil || y == nil || x.edits.MergesCleanly(y.edits)
}

// Overlap implements [resolve.TreeComparer].
func (t *treeComparer) Overlap(a, b *lockfile.File) bool {
	x, y := t.part(a), t.part(b)
	if x == nil || y == nil {
		return false
	}
	for shared := range x.shared {
		if y.shared[shared] {
			return true
		}
	}
	return false
}

// MergeEquals implements [resolve.TreeComparer].
func (t *treeComparer) MergeEquals(merged *lockfile.File, of []*lockfile.File) bool {
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
	holds, known := t.holds[names.String()]
	if !known {
		res := t.render(merged)
		holds = res != nil && filetree.EditsOf(t.base().Tree, res.Tree).EqualsUnion(edits...)
		t.holds[names.String()] = holds
	}
	return holds
}
