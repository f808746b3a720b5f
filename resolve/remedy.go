package resolve

import (
	"slices"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// Limits of the search for suggestions. They are counts, not durations, so that the same input
// gives the same suggestions on every machine.
const (
	maxTries     = 300 // per round, for all its conflicts
	maxPaired    = 10  // remedies of one conflict that are tried in pairs
	maxSuggested = 4   // changes suggested for one conflict, not counting removals
)

// inputs holds copies of the arguments of a resolution. Remedies modify the copies.
type inputs struct {
	decl declare.Set
	prev *lockfile.File
	opt  Options
}

// subscription returns the declaration with that key for modification. If there is none, it returns
// a placeholder, so that the modification has no effect.
func (in *inputs) subscription(key string) *declare.Subscription {
	for i := range in.decl.Subscriptions {
		if d := &in.decl.Subscriptions[i]; d.Key() == key {
			return d
		}
	}
	return &declare.Subscription{}
}

// setTarget replaces all targets for the same operator by t.
func (in *inputs) setTarget(t Target) {
	in.opt.Named = append(slices.DeleteFunc(slices.Clone(in.opt.Named), func(n Target) bool {
		return n.Namespace == t.Namespace && n.Package == t.Package
	}), t)
}

// setGroup makes g the only OperatorGroup of its namespace.
func (in *inputs) setGroup(g declare.OperatorGroup) {
	in.decl.OperatorGroups = append(slices.DeleteFunc(slices.Clone(in.decl.OperatorGroups), func(old declare.OperatorGroup) bool {
		return old.Namespace == g.Namespace
	}), g)
}

// remedy is a change that may resolve a conflict.
type remedy struct {
	explain.Remedy
	apply   func(*inputs)
	removes bool // it removes a declared or installed operator
}

// dispute is a conflict before its remedies are tried.
type dispute struct {
	*explain.Conflict
	parties  []party
	remedies []remedy
}

// trial holds the inputs for trying remedies.
type trial struct {
	w           *world
	prev        *lockfile.File
	relaxations map[string]relaxation // by party.key: relaxations for the other conflicts
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

// suggest tries the remedies of each conflict of r, starting from the lock "from", and keeps those
// that lead to a solution. Meanwhile, the parties of the other conflicts remain relaxed. It
// implements Rule 13.
func (w *world) suggest(r *round, from *lockfile.File) {
	for _, d := range r.disputes {
		t := trial{w: w, prev: from, relaxations: map[string]relaxation{}}
		for p, level := range r.b.relaxations {
			if !slices.Contains(d.parties, p) {
				t.relaxations[p.key()] = level
			}
		}
		d.Changes, d.Tried = tryRemedies(d.remedies, max(1, maxTries/len(r.disputes)), t.solves)
	}
}

// tryRemedies tries at most limit remedies or pairs of remedies. It returns the changes that work
// alone, at most maxSuggested of them, the least invasive first. If none works alone, it returns
// the first pair that works. The removals that work come last.
func tryRemedies(remedies []remedy, limit int, solves func([]remedy) bool) (changes []explain.Remedy, tried int) {
	works := func(rs ...remedy) bool {
		tried++
		return solves(rs)
	}
	changes = []explain.Remedy{}
	var removals []explain.Remedy
	for _, r := range remedies {
		switch {
		case tried >= limit || len(changes) >= maxSuggested && !r.removes || !works(r):
		case r.removes:
			removals = append(removals, r.Remedy)
		default:
			changes = append(changes, r.Remedy)
		}
	}
	pairs := slices.DeleteFunc(slices.Clone(remedies), func(r remedy) bool { return r.removes })
	pairs = pairs[:min(len(pairs), maxPaired)]
	for i, r := range pairs {
		if len(changes) > 0 {
			break
		}
		for _, s := range pairs[i+1:] {
			if tried < limit && works(r, s) {
				changes = append(changes, explain.Remedy{At: r.At, Text: r.Text + ", and: " + s.String()})
				break
			}
		}
	}
	return append(changes, removals...), tried
}

// pinnedWith resolves with the remedies applied, and returns the bundle pinned for an operator. It
// returns "" if that fails or if the operator is not pinned.
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
	st, given := w.stateBefore(prev), relaxations{}
	for _, s := range st.wants {
		given[party{want: s}] = t.relaxations[party{want: s}.key()]
	}
	for _, i := range st.installed {
		given[party{inst: i}] = t.relaxations[party{inst: i}.key()]
	}
	for {
		b := w.build(st, given)
		core, _, err := b.solve()
		if err != nil || core == nil {
			return err == nil
		}
		if !given.relaxGenerated(w, b.parties(core)) {
			return false
		}
	}
}

// solve runs the solver. It returns the unsatisfiable core of a conflict, or the chosen atoms.
func (b *builder) solve() (core, chosen []int, err error) {
	res, err := solve.Solve(b.p)
	if err == nil && res.Core == nil {
		res.Core = b.firstOverlap(res.Chosen)
	}
	return res.Core, res.Chosen, err
}
