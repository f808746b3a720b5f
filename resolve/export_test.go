package resolve

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// FirstCore returns the solver's problem of the first round and the problem's minimal unsatisfiable core. If
// the problem has a solution, the core is nil.
func FirstCore(x *catalog.Index, decl *declare.Set, opt Options) (solve.Problem, []int, error) {
	w := newWorld(x, decl, opt)
	b := w.build(w.stateBefore(nil), relaxations{})
	res, err := solve.Solve(b.p)
	return b.p, res.Core, err
}
