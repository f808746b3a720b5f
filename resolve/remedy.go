package resolve

import (
	"slices"

	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/internal/solve"
	"github.com/quayside/quayside/subscription"
)

// What a conflict suggests has been tried. The bounds of that are counts, so that
// the same input says the same on every machine.
const (
	maxTries  = 300 // in one round, for all its conflicts
	maxPaired = 10  // remedies of one conflict that are tried two together
	maxTold   = 4   // changes suggested for one conflict, beside giving something up
)

// inputs is what a remedy changes: a copy of what is resolved.
type inputs struct {
	decl subscription.Set
	prev *lockfile.File
	opt  Options
}

// subscription returns the declaration of that key, to be changed, or one that
// nothing reads.
func (in *inputs) subscription(key string) *subscription.Subscription {
	for i := range in.decl.Subscriptions {
		if d := &in.decl.Subscriptions[i]; d.Key() == key {
			return d
		}
	}
	return &subscription.Subscription{}
}

// name replaces whatever target names the same operator by t.
func (in *inputs) name(t Target) {
	in.opt.Named = append(slices.DeleteFunc(slices.Clone(in.opt.Named), func(n Target) bool {
		return n.Namespace == t.Namespace && n.Package == t.Package
	}), t)
}

// group makes g the only OperatorGroup of its namespace.
func (in *inputs) group(g subscription.OperatorGroup) {
	in.decl.OperatorGroups = append(slices.DeleteFunc(slices.Clone(in.decl.OperatorGroups), func(old subscription.OperatorGroup) bool {
		return old.Namespace == g.Namespace
	}), g)
}

// remedy is a change that may resolve a conflict.
type remedy struct {
	Change
	apply func(*inputs)
	gives bool // it gives up something that is asked for
}

// dispute is a conflict before its remedies are tried.
type dispute struct {
	*Conflict
	parties  []party
	remedies []remedy
}

// trial is what remedies are tried with.
type trial struct {
	w     *world
	prev  *lockfile.File
	aside map[string]relaxation // what other conflicts are about, by party
}

// with returns what the remedies make of the inputs.
func (t trial) with(rs []remedy) (*world, *lockfile.File) {
	in := inputs{decl: *t.w.decl, prev: t.prev, opt: t.w.opt}
	in.decl.Subscriptions = slices.Clone(in.decl.Subscriptions)
	for _, r := range rs {
		r.apply(&in)
	}
	w := newWorld(t.w.x, &in.decl, in.opt)
	w.read, w.entries, w.quiet = t.w.read, t.w.entries, true
	return w, in.prev
}

// suggest tries the remedies of each dispute, while what the others are about is
// left aside, and keeps those with which it has a solution. Rule 13.
func (w *world) suggest(at func() *lockfile.File, ds []dispute, given relaxed) {
	if w.quiet || len(ds) == 0 {
		return
	}
	prev := at()
	for _, d := range ds {
		t := trial{w: w, prev: prev, aside: map[string]relaxation{}}
		for p, level := range given {
			if !slices.Contains(d.parties, p) {
				t.aside[p.key()] = level
			}
		}
		d.prove(max(1, maxTries/len(ds)), t.solves)
	}
}

// prove sets the changes of a conflict: what works by itself, else two together,
// the least invasive first.
func (d dispute) prove(most int, solves func([]remedy) bool) {
	works := func(rs ...remedy) bool {
		d.Tried++
		return solves(rs)
	}
	var given []Change
	for _, r := range d.remedies {
		switch {
		case d.Tried >= most || len(d.Changes) >= maxTold && !r.gives || !works(r):
		case r.gives:
			given = append(given, r.Change)
		default:
			d.Changes = append(d.Changes, r.Change)
		}
	}
	pairs := slices.DeleteFunc(slices.Clone(d.remedies), func(r remedy) bool { return r.gives })
	pairs = pairs[:min(len(pairs), maxPaired)]
	for i, r := range pairs {
		if len(d.Changes) > 0 {
			break
		}
		for _, s := range pairs[i+1:] {
			if d.Tried < most && works(r, s) {
				d.Changes = append(d.Changes, Change{At: r.At, Text: r.Text + ", and also: " + at(s.At) + s.Text})
				break
			}
		}
	}
	d.Changes = append(d.Changes, given...)
}

// takes returns the bundle that is pinned of an operator with the remedies, or "".
func (t trial) takes(of Target, rs ...remedy) string {
	w, prev := t.with(rs)
	res, err := w.resolve(prev)
	if err != nil {
		return ""
	}
	p, _ := res.Partial.Pin(of.Namespace, of.Package)
	return p.Bundle
}

// solves reports whether what is resolved has a solution with the remedies.
func (t trial) solves(rs []remedy) bool {
	w, prev := t.with(rs)
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

// solve returns what the solver chooses, or a core of what cannot hold together.
func (b *builder) solve() (core, chosen []int, err error) {
	res, err := solve.Solve(b.p)
	if err == nil && res.Core == nil {
		res.Core = b.overlap(res.Chosen)
	}
	return res.Core, res.Chosen, err
}
