// Package resolve decides which bundle of each operator is installed: from the
// catalogs, what is declared and the previous lock it makes the next lock, as
// OLM would choose where OLM's choice is defined, by a stable rule where OLM's
// depends on chance, and always with an explanation.
//
// What is preferred: Subscriptions come in the order of namespace, then name;
// what they need follows breadth first, and what is chosen already adds nothing.
// An answer is the first that can be completed: of a channel the entry nearest
// its head; for a dependency what is installed, then the requiring bundle's own
// catalog, then the catalogs by priority, by nearness and by name, in each the
// default channels first, then by package, then by channel. When not everything
// is to move, what is named comes first, then what is pinned, then what is new.
// Nothing that can be completed is ever passed over, so there is one answer.
//
// The rules of resolution, by their numbers in the specification, and where each
// of them is kept:
//
//	 1 same choice                      world.round, world.fresh, world.upgrades, builder.candidates
//	 2 unsatisfiable, for a reason      builder.teller, cause
//	 3 chance becomes a rule            builder.inOrder, world.catalogs, world.providers
//	 4 accidents do not spread          relaxed, banUnusable, banUnanswered, space, world.reportBadRanges
//	 5 versions do not go down          world.upgrades, world.cannotSucceed
//	 6 silence is broken                world.reportRound, world.reportHeld, world.reportOrphans, world.reportEnd
//	 7 install modes and versions       world.cannotRun, world.reportRun, world.reportUnchecked
//	 8 the state                        world.stateBefore, world.fromLock, world.fromCluster
//	 9 declarations of OLM v1           want.allows, world.rank, tied
//	10 overlap                          builder.overlaps, builder.overlap, sharing
//	11 selectors of OperatorGroups      world.followGroup
//	12 generated pins are consequences  builder.answers, builder.inOrder, world.cannotSucceed, relaxed.soften, nextState.generate, installed.spare
//	13 proven suggestions               world.suggest, teller.remedies, question.offers, world.exit
//	14 stranded pins                    world.stranded, world.dropped
//	15 lost preferences not followed    builder.candidates
//
// Everything here is a pure function of its arguments. The package never reads
// a manifest, a file or a clock.
//
// It promises nothing yet: its exported names may change in any release.
//
// Start from [Resolve], [Check] and [Conflict].
package resolve

import (
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
)

// maxRounds bounds --hops=all. The longest real chain has 120 versions.
const maxRounds = 1000

// Resolve returns the lock that answers decl from the catalogs of x, starting
// from what prev pins (nil: nothing), with warnings and, where something cannot
// be answered, the conflicts. The error is a Conflicts where there are any and
// opt.KeepGoing is not set; the result is returned beside it, with what could
// be resolved in Partial. The arguments are not modified.
func Resolve(x *catalog.Index, decl *subscription.Set, prev *lockfile.File, opt Options) (*Result, error) {
	return settle(x, decl, opt, func(w *world) (*Result, error) { return w.resolve(prev) })
}

func (w *world) resolve(prev *lockfile.File) (*Result, error) {
	opt := w.opt
	var err error
	if w.followers, err = w.decl.Followers(); err != nil {
		return nil, err
	}
	st := w.stateBefore(prev)
	if err := w.checkNamed(st, prev); err != nil {
		return nil, err
	}
	first := st
	res := &Result{}
	var last *round
	seen, at := []*state{st}, func() *lockfile.File { return prev }
	for hop := 0; ; hop++ {
		r, err := w.round(st, at)
		if err != nil {
			return nil, err
		}
		if hop > 0 && (!r.changed || len(r.conflicts) > 0 && !opt.KeepGoing) {
			res.Conflicts = append(res.Conflicts, r.conflicts...)
			if !r.changed {
				last = r
			}
			break
		}
		last = r
		if !w.quiet {
			w.reportRound(r)
		}
		res.Conflicts = append(res.Conflicts, r.conflicts...)
		if r.changed {
			res.Rounds = append(res.Rounds, w.moves(st, r.next))
		}
		st = r.next
		if !w.goesOn(hop, r) {
			break
		}
		if again := slices.IndexFunc(seen, func(old *state) bool { return old.equal(st) }); again >= 0 {
			w.warn(diag.Warning{Code: "cycle", Msg: fmt.Sprintf("the upgrades go round in a circle of %d; stopped", len(seen)-again)})
			break
		}
		seen, at = append(seen, st), func() *lockfile.File { return w.lock(st, prev) }
	}
	if opt.Prune {
		st = st.pruned()
	}
	res.Partial = w.lock(st, prev)
	losses := w.losses(prev, res.Partial)
	if len(losses) > 0 { // nothing moves where something would be lost
		st, res.Partial, res.Rounds = first, lockfile.New(nil), nil
		if prev != nil {
			res.Partial = prev
		}
	}
	res.Conflicts = unique(append(res.Conflicts, losses...))
	res.Moves = withDropped(w.moves(first, st), prev, res.Partial)
	if !w.quiet {
		w.reportEnd(last, st, res)
		w.reportSuccessions(prev, res.Partial)
	}
	res.Warnings, res.Stays = diag.SortWarnings(w.warnings), w.stays
	goesOn := len(res.Conflicts) == 0 || opt.KeepGoing && len(losses) == 0
	if goesOn {
		res.Lock = res.Partial
	}
	if !goesOn {
		return res, Conflicts(res.Conflicts)
	}
	return res, nil
}

// checkNamed finds targets that nothing asks for, or that are not pinned.
func (w *world) checkNamed(st *state, prev *lockfile.File) error {
	var asked, pinned []string
	for _, s := range st.wants {
		asked = append(asked, s.ns+"/"+s.pkg)
	}
	if prev != nil {
		for _, p := range prev.Pins {
			pinned = append(pinned, p.Key())
		}
	}
	var faults diag.List
	check := func(ts []Target, among []string, format string) {
		for _, t := range ts {
			if key := t.Namespace + "/" + t.Package; !slices.Contains(among, key) {
				faults.Addf(t.At, format+"%s", key, didYouMean(key, slices.Clone(among)))
			}
		}
	}
	check(w.opt.Named, asked, "nothing asks for %s")
	check(w.opt.Unpin, pinned, "%s is not pinned")
	return faults.Err()
}

// goesOn reports whether another hop is to be taken.
func (w *world) goesOn(hop int, r *round) bool {
	if !r.changed || len(r.conflicts) > 0 && !w.opt.KeepGoing || hop+1 >= maxRounds {
		return false
	}
	return w.opt.Hops < 0 || hop+1 < w.opt.Hops
}

// equal reports whether the same bundles answer the same subscriptions.
func (st *state) equal(other *state) bool {
	if len(st.wants) != len(other.wants) || len(st.have) != len(other.have) {
		return false
	}
	for i, s := range st.wants {
		o := other.wants[i]
		if s.key() != o.key() || (s.current == nil) != (o.current == nil) || s.current != nil && s.current.bundle != o.current.bundle {
			return false
		}
	}
	for i, h := range st.have {
		if h.ns != other.have[i].ns || h.bundle != other.have[i].bundle {
			return false
		}
	}
	return true
}
