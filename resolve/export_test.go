package resolve

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// FirstCore returns the solver's problem of the first round and its minimal core. The core is nil if
// the problem has a solution.
func FirstCore(x *catalog.Index, decl *declare.Set, opt Options) (solve.Problem, []int, error) {
	w := newWorld(x, decl, opt)
	b := w.build(w.stateBefore(nil), relaxations{})
	res, err := solve.Solve(b.p)
	return b.p, res.Core, err
}
