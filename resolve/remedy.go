package resolve

import (
	"slices"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// maxTries is the maximum number of remedies to try for one conflict. A time limit would make the
// suggestions depend on the machine.
const maxTries = 3

// inputs holds copies of the arguments of Resolve, for a remedy to modify.
type inputs struct {
	decl declare.Set
	prev *lockfile.File
	opt  Options
}

// subscription returns the declaration with this key, for modification. If there is none, it
// returns a new value that is not part of the inputs.
func (in *inputs) subscription(key string) *declare.Subscription {
	for i := range in.decl.Subscriptions {
		if d := &in.decl.Subscriptions[i]; d.Key() == key {
			return d
		}
	}
	return &declare.Subscription{}
}

// setTarget replaces all targets of the same operator by t.
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

// remedy is a change of the inputs that may resolve a conflict.
type remedy struct {
	explain.Remedy
	apply   func(*inputs)
	removes bool // the change removes a declared or installed operator
}

// dispute is a conflict with the remedies to try.
type dispute struct {
	*explain.Conflict
	parties  []party
	remedies []remedy
}

// trial is the starting point for trying remedies.
type trial struct {
	w           *world
	prev        *lockfile.File
	relaxations map[string]relaxation // party.key → relaxation because of other conflicts
}

// apply returns a world and a lock with the remedy applied to copies of the inputs.
func (t trial) apply(r remedy) (*world, *lockfile.File) {
	in := inputs{decl: *t.w.decl, prev: t.prev, opt: t.w.opt}
	in.decl.Subscriptions = slices.Clone(in.decl.Subscriptions)
	r.apply(&in)
	return t.w.forTrial(&in.decl, in.opt), in.prev
}

// suggest tries the remedies of each conflict of r. It adds the remedies that resolve the conflict to the
// suggested changes of the conflict. Each try resolves again; the argument from is the previous lock. The
// parties of other conflicts remain relaxed. It implements Rule 13 of the package comment.
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

// tryRemedies tries at most maxTries remedies. It returns those for which solves returns true, and the number
// of tries. Remedies that remove an operator are tried after all others. If no remedy has worked before the
// last try, the last try is a removal, even if other remedies remain.
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

// pinnedWith resolves with remedy r applied, and returns the bundle that is then pinned for an
// operator. It returns "" if there is no solution, or if the operator is not pinned.
func (t trial) pinnedWith(of Target, r remedy) string {
	w, prev := t.apply(r)
	res, err := w.resolve(prev)
	if err != nil {
		return ""
	}
	p, _ := res.Partial.Pin(of.Namespace, of.Package)
	return p.Bundle
}

// solves reports whether the conflict has a solution with remedy r applied.
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

// solve runs the solver. It returns the chosen atoms or, if there is no solution, an unsatisfiable
// core.
func (b *builder) solve() (core, chosen []int, err error) {
	res, err := solve.Solve(b.p)
	if err == nil && res.Core == nil {
		res.Core = b.firstOverlap(res.Chosen)
	}
	return res.Core, res.Chosen, err
}
