// Package resolve selects the bundle of each operator. It computes the next lock from the catalogs, the
// declarations and the previous lock. If OLM's choice is deterministic, it makes the same choice. If OLM's
// choice depends on chance, it applies a fixed rule. It explains its results.
//
// Order of preference: The solver satisfies the subscriptions by namespace, then by name, and their
// dependencies breadth first. A requirement that a chosen bundle already meets needs no choice. For each
// choice, the solver takes the first candidate that leads to a solution. Within a channel, it prefers the entry
// nearest to the head. For a dependency, it prefers installed bundles, then the catalog of the requiring
// bundle, then the other catalogs. Other catalogs are sorted by priority, by proximity (catalogs of the same
// namespace first) and by name. Within a catalog, it prefers default channels, then the first package by name,
// then the first channel by name. In a partial upgrade, the named operators are resolved first, then the pinned
// operators, then the new operators. A candidate that leads to a solution is never skipped, so the result is
// unique.
//
// The rules of resolution, with their numbers, and the code that implements each rule:
//
//	 1 same choice                      world.runRound, chooser.installCandidates, chooser.upgradeCandidates, builder.candidates
//	 2 conflicts with explanations      builder.newExplainer, cause
//	 3 fixed order instead of chance    builder.orderedWants, environment.catalogs, environment.providers
//	 4 isolated failures                relaxations, banUnusable, banUnsatisfied, installNamespace, world.reportBadRanges
//	 5 no downgrades                    chooser.upgradeCandidates, chooser.notSuccessorReason
//	 6 warnings about side effects      world.reportRound, world.reportHeld, world.reportOrphans, world.reportResult
//	 7 install modes and versions       chooser.cannotRun, world.reportCannotRun, world.reportUnchecked
//	 8 installed state                  converter.stateBefore, converter.addPins, converter.adoptUnpinned
//	 9 declarations of OLM v1           want.versionFilter, chooser.rank, checkTies
//	10 overlap                          builder.forbidOverlaps, builder.firstOverlap, sharedProviders
//	11 selectors of OperatorGroups      environment.applyGroup
//	12 generated pins                   builder.rootOptions, builder.orderedWants, chooser.notSuccessorReason, relaxations.relaxGenerated, generateWants, installed.undeclared
//	13 proven suggestions               world.suggest, explainer.remedies, question.availableChanges, world.upgradeFlag
//	14 stranded pins                    world.strandedReason, world.droppedBy
//	15 preferences that OLM loses       builder.candidates
//
// Every function is a pure function of its arguments. The package never reads a manifest, a file or a clock.
//
// There is no compatibility promise yet: exported names may change in any release.
//
// Start from [Resolve], [Check] and [Result].
package resolve

import (
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
)

// maxRounds is the maximum number of rounds with --hops=all. The longest known upgrade path has 120
// versions.
const maxRounds = 1000

// Resolve returns the lock that satisfies decl with the catalogs of x, and warnings and conflicts.
// It starts from the pins of prev, which may be nil. It does not modify its arguments.
//
// With conflicts, Resolve returns an error of type explain.Conflicts and also a result. Result.Partial is then
// the lock of the operators without conflicts. With opt.KeepGoing, only conflicts about replacing an operator are
// an error. A declared operator in opt.Unpin for which no version can be chosen keeps its pin.
func Resolve(x *catalog.Index, decl *declare.Set, prev *lockfile.File, opt Options) (*Result, error) {
	res, err := resolveOnce(x, decl, prev, opt)
	if res == nil {
		return nil, err
	}
	unpin := slices.DeleteFunc(slices.Clone(opt.Unpin), func(t Target) bool {
		_, pinned := res.Partial.Pin(t.Namespace, t.Package)
		return !pinned && slices.ContainsFunc(decl.Subscriptions, func(s declare.Subscription) bool { return s.Operator() == t.key() })
	})
	if len(unpin) == len(opt.Unpin) {
		return res, err
	}
	opt.Unpin = unpin
	kept, err := Resolve(x, decl, prev, opt)
	if kept == nil {
		return nil, err
	}
	kept.Conflicts = uniqueConflicts(append(res.Conflicts, kept.Conflicts...))
	if err == nil && !opt.KeepGoing && len(kept.Conflicts) > 0 {
		kept.Lock, err = nil, explain.Conflicts(kept.Conflicts)
	}
	return kept, err
}

func resolveOnce(x *catalog.Index, decl *declare.Set, prev *lockfile.File, opt Options) (*Result, error) {
	return runUntilStable(x, withoutHeld(decl, prev, opt.Held), opt.withRequested(), func(w *world) (*Result, error) { return w.resolve(prev) })
}

func (w *world) resolve(prev *lockfile.File) (*Result, error) {
	opt := w.opt
	var err error
	if w.successors, err = w.decl.Successors(); err != nil {
		return nil, err
	}
	st := w.stateBefore(prev)
	if err := w.checkNamed(st, prev); err != nil {
		return nil, err
	}
	first := st
	res := &Result{Held: opt.Held}
	var last *round
	seen := []*state{st}
	for hop := 0; ; hop++ {
		r, err := w.runRound(st)
		if err != nil {
			return nil, err
		}
		res.Conflicts = append(res.Conflicts, w.conflicts(r, prev, st, hop)...)
		if hop > 0 && (!r.changed || len(r.disputes) > 0 && !opt.KeepGoing) {
			if !r.changed {
				last = r
			}
			break
		}
		last = r
		if !w.quiet {
			w.reportRound(r)
		}
		if r.changed {
			res.Rounds = append(res.Rounds, w.listPinChanges(st, r.next))
		}
		st = r.next
		if !w.needsAnotherHop(hop, r) {
			break
		}
		if again := slices.IndexFunc(seen, func(old *state) bool { return old.equal(st) }); again >= 0 {
			w.warn(diag.Warning{Code: "cycle", Msg: fmt.Sprintf("the upgrades form a cycle of %d versions; stopped", len(seen)-again)})
			break
		}
		seen = append(seen, st)
	}
	if opt.Prune {
		st = st.pruned()
	}
	res.Partial = w.newLock(st, prev)
	successionConflicts := w.successionConflicts(prev, res.Partial)
	if len(successionConflicts) > 0 { // the previous lock remains in force
		st, res.Partial, res.Rounds = first, lockfile.New(nil), nil
		if prev != nil {
			res.Partial = prev
		}
	}
	res.Conflicts = uniqueConflicts(append(res.Conflicts, successionConflicts...))
	res.PinChanges = withDropped(w.listPinChanges(first, st), prev, res.Partial)
	for i, c := range res.PinChanges {
		res.PinChanges[i].Along = w.along[c.Namespace+"/"+c.Package]
	}
	if !w.quiet {
		w.reportResult(last, st, res)
		w.reportSuccessions(prev, res.Partial)
	}
	res.Warnings, res.HeldPromotions = diag.SortWarnings(w.warnings), w.heldPromotions
	complete := len(res.Conflicts) == 0 || opt.KeepGoing && len(successionConflicts) == 0
	if complete {
		res.Lock = res.Partial
	}
	if !complete {
		return res, explain.Conflicts(res.Conflicts)
	}
	return res, nil
}

// checkNamed returns an error for each target in Options.Named that is neither declared nor
// required, and for each in Options.Unpin that is not pinned.
func (w *world) checkNamed(st *state, prev *lockfile.File) error {
	var requested, pinned []string
	for _, s := range st.wants {
		requested = append(requested, s.ns+"/"+s.pkg)
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
	check(w.opt.Named, requested, "%s is not declared or required")
	check(w.opt.Unpin, pinned, "%s is not pinned")
	return faults.Err()
}

// conflicts returns the conflicts of r, the round that started from st. Unless w is quiet, each conflict has
// suggested changes that are proven to resolve it.
func (w *world) conflicts(r *round, prev *lockfile.File, st *state, hop int) []*explain.Conflict {
	if len(r.disputes) > 0 && !w.quiet {
		from := prev
		if hop > 0 {
			from = w.newLock(st, prev)
		}
		w.suggest(r, from)
	}
	var out []*explain.Conflict
	for _, d := range r.disputes {
		out = append(out, d.Conflict)
	}
	return out
}

// needsAnotherHop reports whether another round is needed after r, the round for the given hop.
func (w *world) needsAnotherHop(hop int, r *round) bool {
	if !r.changed || len(r.disputes) > 0 && !w.opt.KeepGoing || hop+1 >= maxRounds {
		return false
	}
	return w.opt.Hops < 0 || hop+1 < w.opt.Hops
}

// equal reports whether both states have the same subscriptions with the same installed bundles, and whether
// their installed bundles without a subscription are the same.
func (st *state) equal(other *state) bool {
	if len(st.wants) != len(other.wants) || len(st.installed) != len(other.installed) {
		return false
	}
	for i, s := range st.wants {
		o := other.wants[i]
		if s.key() != o.key() || (s.current == nil) != (o.current == nil) || s.current != nil && s.current.bundle != o.current.bundle {
			return false
		}
	}
	for i, h := range st.installed {
		if h.ns != other.installed[i].ns || h.bundle != other.installed[i].bundle {
			return false
		}
	}
	return true
}
