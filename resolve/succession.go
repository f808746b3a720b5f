package resolve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve/explain"
)

// A replaced operator does not take part in resolution. Its pin is removed before the first round, so that the
// operator does not conflict with its successor. The successor is resolved as a new install. The leftover
// objects of the replaced operator stay in the lock until the successor is observed running.

// activePins returns the pins of prev that take part in resolution. A leaving operator takes part again if it
// is declared and has no declared successor. In this way, a replacement can be undone.
func (w *converter) activePins(prev *lockfile.File) []*lockfile.Pin {
	if prev == nil {
		return nil
	}
	var out []*lockfile.Pin
	for i := range prev.Pins {
		out = append(out, &prev.Pins[i])
	}
	for i := range prev.Leaving {
		l := &prev.Leaving[i]
		if w.successors[l.Key()] == nil && slices.ContainsFunc(w.decl.Subscriptions, func(s declare.Subscription) bool { return s.Operator() == l.Key() }) {
			out = append(out, &l.Pin)
		}
	}
	return out
}

// pinsAndLeaving returns the pins and the leaving operators of the next lock. An operator that is no longer
// required is leaving until its removal is observed. A replaced operator is leaving until its successor is
// observed running, or until no declaration names the successor. If the successor has no pin, the replaced
// operator keeps its pin. If the successor is itself replaced, the new successor also becomes the successor of
// the operators replaced earlier.
func (w *converter) pinsAndLeaving(pins []lockfile.Pin, prev *lockfile.File) ([]lockfile.Pin, []lockfile.Leaving) {
	if prev == nil {
		return pins, nil
	}
	now := map[string]bool{}
	for _, p := range pins {
		now[p.Key()] = true
	}
	var out []lockfile.Leaving
	for _, p := range prev.Pins {
		d := w.successors[p.Key()]
		switch {
		case now[p.Key()]:
		case d == nil:
			if w.opt.Uninstalls {
				out = append(out, newLeaving(prev, p, now))
			}
		case now[d.Operator()]:
			out = append(out, lockfile.Leaving{ReplacedBy: d.Operator(), Pin: p})
		default:
			pins = append(pins, p)
		}
	}
	for _, l := range prev.Leaving {
		if l.ReplacedBy == "" {
			if w.opt.Uninstalls && !now[l.Key()] && !slices.Contains(w.opt.Removed, l.Key()) && !slices.Contains(w.opt.Removed, "*") {
				l.With = slices.DeleteFunc(slices.Clone(l.With), func(key string) bool { return !now[key] })
				l.Pin = w.refreshPin(l.Pin)
				out = append(out, l)
			}
			continue
		}
		last := w.lastSuccessor(l, prev)
		if last == "" && w.opt.Uninstalls { // no longer replaced: uninstall it, so that its objects are pruned and not orphaned
			last = prev.Successor(l)
		}
		if !now[l.Key()] && now[last] && !w.isSettled(last) {
			if d := w.successors[l.Key()]; d != nil {
				l.ReplacedBy = d.Operator()
			}
			l.Pin = w.refreshPin(l.Pin)
			out = append(out, l)
		}
	}
	return pins, out
}

// newLeaving returns the leaving entry for operator p, which is no longer pinned. If a replacement is undone, p
// is the operator that replaced another, and the other is pinned again. The other then becomes the successor of
// p, so that both stay in the same unit of the tree.
func newLeaving(prev *lockfile.File, p lockfile.Pin, now map[string]bool) lockfile.Leaving {
	for _, l := range prev.Leaving {
		if l.ReplacedBy == p.Key() && now[l.Key()] {
			return lockfile.Leaving{ReplacedBy: l.Key(), Pin: p}
		}
	}
	return lockfile.Leaving{With: unitOf(prev, p, now), Pin: p}
}

// unitOf returns the operators that share a unit of the tree with p because of a cycle: they require p, and p
// requires them, directly or transitively. It omits operators that are not in now.
func unitOf(lock *lockfile.File, p lockfile.Pin, now map[string]bool) []string {
	var out []string
	for key := range lock.Needed(p.Key()) {
		if key != p.Key() && now[key] && lock.Needed(key)[p.Key()] {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// lastSuccessor follows the chain of successors of a leaving operator. It returns the first
// declared successor of an operator in the chain, or "".
func (w *converter) lastSuccessor(l lockfile.Leaving, prev *lockfile.File) string {
	key, next := l.Key(), l.ReplacedBy
	for range len(prev.Leaving) + 1 {
		if d := w.successors[key]; d != nil {
			return d.Operator()
		}
		between, leaves := prev.LeavingOperator(next)
		if !leaves {
			between.ReplacedBy = ""
		}
		key, next = next, between.ReplacedBy
	}
	return ""
}

// refreshPin returns p with the current data of its bundle in the catalog. It returns p unchanged if the
// catalog does not have the bundle, or if the catalog is not current.
func (w *converter) refreshPin(p lockfile.Pin) lockfile.Pin {
	e := w.entryOf(p.Catalog.ID, p.Package, p.Channel, p.Bundle)
	if e == nil || !w.isCatalogCurrent(&p) {
		return p
	}
	return WithEntry(p, e.Bundle())
}

func (w *converter) isSettled(successor string) bool {
	return slices.Contains(w.opt.Settled, successor) || slices.Contains(w.opt.Settled, "*")
}

// successionConflicts returns a conflict for each replacement that is not possible: the successor
// does not provide all APIs, or another operator requires the replaced package.
func (w *converter) successionConflicts(prev, next *lockfile.File) []*explain.Conflict {
	var out []*explain.Conflict
	for _, replaced := range slices.Sorted(maps.Keys(w.successors)) {
		d := w.successors[replaced]
		ns, pkg, _ := strings.Cut(replaced, "/")
		if again, pinned := next.Pin(ns, pkg); pinned && again.Generated() {
			out = append(out, stillRequiredConflict(d, again, next.RequiredBy(again)))
		}
		successor, pinned := next.Pin(d.Namespace, d.Package)
		if prev == nil || !pinned {
			continue
		}
		if old, had := prev.Pin(ns, pkg); had {
			if apis := lostAPIs(old, successor); len(apis) > 0 {
				out = append(out, lostAPIConflict(d, old, successor, apis))
			}
		}
	}
	return out
}

// lostAPIs returns the kinds that old provides, but that successor does not provide in any version, sorted.
func lostAPIs(old, successor lockfile.Pin) []catalog.GVK {
	kept := catalog.Read(successor.Properties).Provides
	return slices.DeleteFunc(catalog.Read(old.Properties).Provides, func(g catalog.GVK) bool {
		return slices.ContainsFunc(kept, func(k catalog.GVK) bool { return k.Group == g.Group && k.Kind == g.Kind })
	})
}

// lostAPIConflict returns the conflict that the operator successor does not provide the given APIs of operator old.
func lostAPIConflict(d *declare.Subscription, old, successor lockfile.Pin, apis []catalog.GVK) *explain.Conflict {
	c := successionConflict(d, fmt.Sprintf("%s replaces %s, but does not provide all APIs of %[2]s", successor.Key(), old.Key()),
		"remove spec.replaces and declare "+old.Key()+" again: then both are installed")
	for _, g := range apis {
		c.Chain = append(c.Chain, explain.Link{Depth: 1, Text: fmt.Sprintf("%s provides %s of %s, but %s does not: its CRD would be removed with all custom resources", old.Bundle, g.Kind, g.Group, successor.Bundle)})
	}
	return c
}

// stillRequiredConflict returns the conflict that other operators still require a replaced
// operator.
func stillRequiredConflict(d *declare.Subscription, again lockfile.Pin, by []lockfile.Requirement) *explain.Conflict {
	c := successionConflict(d, fmt.Sprintf("%s replaces %s, which is still required", d.Operator(), again.Key()),
		"remove spec.replaces, and upgrade or remove the operators that require "+again.Key()+" first")
	for _, r := range by {
		c.Chain = append(c.Chain, explain.Link{Depth: 1, Text: r.Pin + " requires " + r.Requirement})
	}
	return c
}

// successionConflict returns a conflict about spec.replaces in declaration d, with one line of
// explanation and one suggested change.
func successionConflict(d *declare.Subscription, text, change string) *explain.Conflict {
	at := d.At(declare.FieldReplaces).String()
	return &explain.Conflict{
		Namespace: d.Namespace, Subscriptions: []string{d.Key()}, At: at,
		Chain: []explain.Link{{At: at, Text: text}}, Changes: []explain.Remedy{{At: at, Text: change}}, Tried: 1,
	}
}

// reportSuccessions warns about leaving operators. It also warns about declarations that replace an operator
// that is not in the lock.
func (w *converter) reportSuccessions(prev, next *lockfile.File) {
	for _, l := range next.Leaving {
		if l.ReplacedBy == "" {
			w.warn(diag.Warning{Code: "uninstalling", Subject: l.Key(), Msg: fmt.Sprintf("%s is being uninstalled: its objects are not rendered, so the GitOps tool prunes them. After the prune, run 'quayside status --save', then 'quayside resolve --observed'; or run 'quayside resolve --prune'",
				l.Key())})
			continue
		}
		successor := next.Successor(l)
		w.warn(diag.Warning{Code: "leftovers", Subject: l.Key(), Msg: fmt.Sprintf("%s is replaced by %s: its leftover objects remain rendered, without running pods, until %s is observed ready: run 'quayside status --save', then 'quayside resolve --observed'",
			l.Key(), successor, successor)})
	}
	for _, replaced := range slices.Sorted(maps.Keys(w.successors)) {
		d := w.successors[replaced]
		if !hasOperator(prev, replaced) {
			w.warn(diag.Warning{
				Pos: d.At(declare.FieldReplaces), Code: "replaces-nothing", Subject: d.Operator(),
				Msg: fmt.Sprintf("subscription %s replaces %s, which is not in the lock: if the migration is done, remove spec.replaces", d.Key(), replaced),
			})
		}
	}
}

// hasOperator reports whether a lock contains an operator, as a pin or as leaving.
func hasOperator(lock *lockfile.File, operator string) bool {
	if lock == nil {
		return false
	}
	ns, pkg, _ := strings.Cut(operator, "/")
	_, pinned := lock.Pin(ns, pkg)
	_, leaves := lock.LeavingOperator(operator)
	return pinned || leaves
}
