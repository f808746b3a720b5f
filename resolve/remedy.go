package resolve

import (
	"slices"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// maxTries limits the remedies that are tried for one conflict. It is a count, not a duration, so that
// the same input gives the same suggestions on every machine.
const maxTries = 3

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

// apply applies a remedy to a copy of the inputs.
func (t trial) apply(r remedy) (*world, *lockfile.File) {
	in := inputs{decl: *t.w.decl, prev: t.prev, opt: t.w.opt}
	in.decl.Subscriptions = slices.Clone(in.decl.Subscriptions)
	r.apply(&in)
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
		d.Changes, d.Tried = tryRemedies(d.remedies, t.solves)
	}
}

// tryRemedies tries the first remedies, and returns those that work. A remedy that removes an operator
// is tried if there is no other one left, or if none has worked before the last trial.
func tryRemedies(remedies []remedy, solves func(remedy) bool) (changes []explain.Remedy, tried int) {
	removes := func(r remedy) bool { return r.removes }
	others := slices.DeleteFunc(slices.Clone(remedies), removes)
	removals := slices.DeleteFunc(slices.Clone(remedies), func(r remedy) bool { return !r.removes })
	changes = []explain.Remedy{}
	for ; tried < maxTries && len(others)+len(removals) > 0; tried++ {
		from := &others
		if len(others) == 0 || tried == maxTries-1 && len(changes) == 0 && len(removals) > 0 {
			from = &removals
		}
		if r := (*from)[0]; solves(r) {
			changes = append(changes, r.Remedy)
		}
		*from = (*from)[1:]
	}
	return changes, tried
}

// pinnedWith resolves with the remedy applied, and returns the bundle pinned for an operator. It
// returns "" if that fails or if the operator is not pinned.
func (t trial) pinnedWith(of Target, r remedy) string {
	w, prev := t.apply(r)
	res, err := w.resolve(prev)
	if err != nil {
		return ""
	}
	p, _ := res.Partial.Pin(of.Namespace, of.Package)
	return p.Bundle
}

// solves reports whether there is a solution with the remedy applied.
func (t trial) solves(r remedy) bool {
	w, prev := t.apply(r)
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
