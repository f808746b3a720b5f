package workspace

import (
	"context"
	"sync"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/resolve"
)

// partTrees renders the parts of an upgrade and compares their trees. It ignores rendering errors:
// they are reported when the branch of the part is written.
type partTrees struct {
	pr         *Problem
	base       func() *render.Result // rendered lock of the problem; nil if it cannot be rendered
	unreadable map[string]error      // bundles that cannot be opened; their operators are omitted from every tree
	rendered   map[*lockfile.File]*partTree
}

// partTree is the rendered tree of a part.
type partTree struct {
	edits  *filetree.Edits // changes from the base
	shared map[string]bool // objects and Namespaces of its operators, which other trees may also contain
}

// newPartTrees returns a partTrees. A lock is rendered when its tree is first needed.
func newPartTrees(ctx context.Context, pr *Problem) *partTrees {
	t := &partTrees{pr: pr, rendered: map[*lockfile.File]*partTree{}}
	t.base = sync.OnceValue(func() *render.Result {
		res := t.render(ctx, pr.Lock)
		if res != nil {
			return res
		}
		var err error
		if t.unreadable, err = pr.project.Unreadable(ctx, pr.Lock); err != nil {
			return nil
		}
		return t.render(ctx, pr.Lock)
	})
	return t
}

// render returns the rendered tree of a lock, or nil if it cannot be rendered.
func (t *partTrees) render(ctx context.Context, lock *lockfile.File) *render.Result {
	complete, err := addDigests(ctx, t.pr, lock)
	if err != nil {
		return nil
	}
	res, err := t.pr.project.Render(ctx, WithoutPins(complete, t.pr.Lock, t.unreadable))
	if err != nil {
		return nil
	}
	return res
}

// part returns the rendered tree of the lock of a part, or nil if it cannot be rendered.
func (t *partTrees) part(ctx context.Context, lock *lockfile.File) *partTree {
	if known, is := t.rendered[lock]; is || t.base() == nil {
		return known
	}
	t.rendered[lock] = nil
	if res := t.render(ctx, lock); res != nil {
		t.rendered[lock] = &partTree{filetree.EditsOf(t.base().Tree, res.Tree), t.sharedNames(lock, res)}
	}
	return t.rendered[lock]
}

// sharedNames returns the names that a part may share with other parts: the objects of its changed
// operators, old and new, and the Namespaces whose suggested labels or annotations change.
func (t *partTrees) sharedNames(lock *lockfile.File, res *render.Result) map[string]bool {
	out := map[string]bool{}
	for _, c := range lockfile.Diff(t.pr.Lock, lock) {
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

// areConnected reports whether the trees of two locks have an object in common, or cannot be merged by Git.
func (t *partTrees) areConnected(ctx context.Context, a, b *lockfile.File) bool {
	x, y := t.part(ctx, a), t.part(ctx, b)
	if x == nil || y == nil {
		return false
	}
	for name := range x.shared {
		if y.shared[name] {
			return true
		}
	}
	return !x.edits.MergesCleanly(y.edits)
}

// splitParts splits an upgrade into parts whose trees are not connected. It splits the upgrade,
// renders the parts, and joins connected ones, until no parts are connected.
func splitParts(ctx context.Context, pr *Problem, opt resolve.Options) ([]resolve.Part, *partTrees, []diag.Warning, error) {
	parts, waiting, err := resolve.Split(pr.Index, pr.Declared, pr.Lock, opt)
	if err != nil {
		return nil, nil, nil, err
	}
	trees := newPartTrees(ctx, pr)
	for err == nil {
		var pairs [][2]int
		for i, a := range parts {
			for j, b := range parts[:i] {
				if trees.areConnected(ctx, a.Result.Partial, b.Result.Partial) {
					pairs = append(pairs, [2]int{j, i})
				}
			}
		}
		if len(pairs) == 0 {
			break
		}
		var more []diag.Warning
		parts, more, err = resolve.Join(pr.Index, pr.Declared, pr.Lock, opt, parts, pairs)
		waiting = append(waiting, more...)
	}
	return parts, trees, waiting, err
}
