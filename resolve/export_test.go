package resolve

import (
	"github.com/quayside/quayside/internal/declare"
	"github.com/quayside/quayside/internal/model"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// FirstCore returns the solver's problem of the first round and the minimal
// core that it has, or a nil core.
func FirstCore(x *model.Index, decl *declare.Set, opt Options) (solve.Problem, []int, error) {
	w := newWorld(x, decl, opt)
	b := w.build(w.stateBefore(nil), relaxed{})
	res, err := solve.Solve(b.p)
	return b.p, res.Core, err
}
