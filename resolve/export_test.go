package resolve

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/resolve/internal/solve"
	"github.com/quayside/quayside/subscription"
)

// FirstCore returns the solver's problem of the first round and the minimal
// core that it has, or a nil core.
func FirstCore(x *catalog.Index, decl *subscription.Set, opt Options) (solve.Problem, []int, error) {
	w := newWorld(x, decl, opt)
	b := w.build(w.stateBefore(nil), relaxed{})
	res, err := solve.Solve(b.p)
	return b.p, res.Core, err
}
