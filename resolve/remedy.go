package resolve

import (
	"slices"

	"github.com/quayside/quayside/internal/declare"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// The limits of the search for suggestions, each of which has been tried. They are counts, so that
// the same input gives the same suggestions on every machine.
const (
	maxTries  = 300 // per round, for all its conflicts
	maxPaired = 10  // remedies of one conflict that are tried in pairs
	maxTold   = 4   // changes suggested for one conflict, apart from dropping something
)

// inputs is a copy of the arguments of a resolution, for a remedy to change.
type inputs struct {
	decl declare.Set
	prev *lockfile.File
	opt  Options
}

// subscription returns the declaration with that key, to be changed, or a new unused one if there
// is none.
func (in *inputs) subscription(key string) *declare.Subscription {
	for i := range in.decl.Subscriptions {
		if d := &in.decl.Subscriptions[i]; d.Key() == key {
			return d
		}
	}
	return &declare.Subscription{}
}

// name replaces all targets for the same operator by t.
func (in *inputs) name(t Target) {
	in.opt.Named = append(slices.DeleteFunc(slices.Clone(in.opt.Named), func(n Target) bool {
		return n.Namespace == t.Namespace && n.Package == t.Package
	}), t)
}

// group makes g the only OperatorGroup of its namespace.
func (in *inputs) group(g declare.OperatorGroup) {
	in.decl.OperatorGroups = append(slices.DeleteFunc(slices.Clone(in.decl.OperatorGroups), func(old declare.OperatorGroup) bool {
		return old.Namespace == g.Namespace
	}), g)
}

// remedy is a change that may resolve a conflict.
type remedy struct {
	explain.Change
	apply func(*inputs)
	gives bool // it drops a declared or installed operator
}

// dispute is a conflict before its remedies are tried.
type dispute struct {
	*explain.Conflict
	parties  []party
	remedies []remedy
}

// trial holds the inputs for trying remedies.
type trial struct {
	w     *world
	prev  *lockfile.File
	aside map[string]relaxation // parties of other conflicts
}

// apply applies the remedies to a copy of the inputs.
func (t trial) apply(rs []remedy) (*world, *lockfile.File) {
	in := inputs{decl: *t.w.decl, prev: t.prev, opt: t.w.opt}
	in.decl.Subscriptions = slices.Clone(in.decl.Subscriptions)
	for _, r := range rs {
		r.apply(&in)
	}
	return t.w.forTrial(&in.decl, in.opt), in.prev
}

// suggest tries the remedies of each dispute of a round from a lock, with the parties of the other
// disputes set aside, and keeps those that lead to a solution. Rule 13.
func (w *world) suggest(r *round, from *lockfile.File) {
	for _, d := range r.disputes {
		t := trial{w: w, prev: from, aside: map[string]relaxation{}}
		for p, level := range r.b.given {
			if !slices.Contains(d.parties, p) {
				t.aside[p.key()] = level
			}
		}
		d.Changes, d.Tried = prove(d.remedies, max(1, maxTries/len(r.disputes)), t.solves)
	}
}

// prove tries at most the given number of remedies or pairs of them. It returns all single
// remedies that work. If there are none, it returns the first pair that works, least invasive
// first, and otherwise removals.
func prove(remedies []remedy, most int, solves func([]remedy) bool) (changes []explain.Change, tried int) {
	works := func(rs ...remedy) bool {
		tried++
		return solves(rs)
	}
	changes = []explain.Change{}
	var given []explain.Change
	for _, r := range remedies {
		switch {
		case tried >= most || len(changes) >= maxTold && !r.gives || !works(r):
		case r.gives:
			given = append(given, r.Change)
		default:
			changes = append(changes, r.Change)
		}
	}
	pairs := slices.DeleteFunc(slices.Clone(remedies), func(r remedy) bool { return r.gives })
	pairs = pairs[:min(len(pairs), maxPaired)]
	for i, r := range pairs {
		if len(changes) > 0 {
			break
		}
		for _, s := range pairs[i+1:] {
			if tried < most && works(r, s) {
				changes = append(changes, explain.Change{At: r.At, Text: r.Text + ", and: " + s.String()})
				break
			}
		}
	}
	return append(changes, given...), tried
}

// pinnedWith returns the bundle that is pinned for an operator with the remedies applied, or "".
func (t trial) pinnedWith(of Target, rs ...remedy) string {
	w, prev := t.apply(rs)
	res, err := w.resolve(prev)
	if err != nil {
		return ""
	}
	p, _ := res.Partial.Pin(of.Namespace, of.Package)
	return p.Bundle
}

// solves reports whether there is a solution with the remedies applied.
func (t trial) solves(rs []remedy) bool {
	w, prev := t.apply(rs)
	st, given := w.stateBefore(prev), relaxed{}
	for _, s := range st.wants {
		given[party{want: s}] = t.aside[party{want: s}.key()]
	}
	for _, i := range st.have {
		given[party{inst: i}] = t.aside[party{inst: i}.key()]
	}
	for {
		b := w.build(st, given)
		core, _, err := b.solve()
		if err != nil || core == nil {
			return err == nil
		}
		if !given.soften(w, b.parties(core)) {
			return false
		}
	}
}

// solve returns the atoms chosen by the solver, or the core of a conflict.
func (b *builder) solve() (core, chosen []int, err error) {
	res, err := solve.Solve(b.p)
	if err == nil && res.Core == nil {
		res.Core = b.overlap(res.Chosen)
	}
	return res.Core, res.Chosen, err
}
