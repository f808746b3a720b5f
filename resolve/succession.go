package resolve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
)

// An operator that another one follows takes no part in resolving: its pin is
// taken off before the first round, so that the two are never held against each
// other, and its follower is chosen as if it were new. What is left of it stays in
// the lock until the follower was seen to run.

// standingPins returns the pins of prev, and those of what was leaving and is
// declared again, with nothing that follows it: that is the way back.
func (w *world) standingPins(prev *lockfile.File) []*lockfile.Pin {
	if prev == nil {
		return nil
	}
	var out []*lockfile.Pin
	for i := range prev.Pins {
		out = append(out, &prev.Pins[i])
	}
	for i := range prev.Leaving {
		l := &prev.Leaving[i]
		if w.followers[l.Key()] == nil && slices.ContainsFunc(w.decl.Subscriptions, func(s subscription.Subscription) bool { return s.Operator() == l.Key() }) {
			out = append(out, &l.Pin)
		}
	}
	return out
}

// leaving returns the pins of the next lock and what is left over beside them. An
// operator that nothing asks for any more is being uninstalled until it is gone. What
// a pinned operator follows is left over, until that is settled or no declaration
// says so any more; what is followed by one that could not be pinned stays as it
// was. Whoever follows a follower follows all that it did.
func (w *world) leaving(pins []lockfile.Pin, prev *lockfile.File) ([]lockfile.Pin, []lockfile.Leaving) {
	if prev == nil {
		return pins, nil
	}
	now := map[string]bool{}
	for _, p := range pins {
		now[p.Key()] = true
	}
	var out []lockfile.Leaving
	for _, p := range prev.Pins {
		d := w.followers[p.Key()]
		switch {
		case now[p.Key()]:
		case d == nil:
			if w.opt.Uninstalls {
				out = append(out, uninstalled(prev, p, now))
			}
		case now[d.Operator()]:
			out = append(out, lockfile.Leaving{ReplacedBy: d.Operator(), Pin: p})
		default:
			pins = append(pins, p)
		}
	}
	for _, l := range prev.Leaving {
		if l.ReplacedBy == "" {
			if w.opt.Uninstalls && !now[l.Key()] && !slices.Contains(w.opt.Gone, l.Key()) && !slices.Contains(w.opt.Gone, "*") {
				l.With = slices.DeleteFunc(slices.Clone(l.With), func(key string) bool { return !now[key] })
				l.Pin = w.retold(l.Pin)
				out = append(out, l)
			}
			continue
		}
		last := w.lastFollower(l, prev)
		if last == "" && w.opt.Uninstalls { // its leftover objects are pruned where they are, and not let go
			last = prev.Successor(l)
		}
		if !now[l.Key()] && now[last] && !w.settled(last) {
			if d := w.followers[l.Key()]; d != nil {
				l.ReplacedBy = d.Operator()
			}
			l.Pin = w.retold(l.Pin)
			out = append(out, l)
		}
	}
	return pins, out
}

// uninstalled returns what stays in the lock of an operator that is no longer pinned.
// One that had replaced another, which is pinned again, is replaced by that: the two are
// one piece, so that no object moves between two that stay.
func uninstalled(prev *lockfile.File, p lockfile.Pin, now map[string]bool) lockfile.Leaving {
	for _, l := range prev.Leaving {
		if l.ReplacedBy == p.Key() && now[l.Key()] {
			return lockfile.Leaving{ReplacedBy: l.Key(), Pin: p}
		}
	}
	return lockfile.Leaving{With: pieceOf(prev, p, now), Pin: p}
}

// pieceOf returns the operators that require p and that p requires, directly or by
// others, and that stay: they were one piece with it.
func pieceOf(lock *lockfile.File, p lockfile.Pin, now map[string]bool) []string {
	var out []string
	for key := range lock.Needed(p.Key()) {
		if key != p.Key() && now[key] && lock.Needed(key)[p.Key()] {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// lastFollower returns which operator is declared to follow what is leaving, or to
// follow what follows it; "" where none is.
func (w *world) lastFollower(l lockfile.Leaving, prev *lockfile.File) string {
	key, next := l.Key(), l.ReplacedBy
	for range len(prev.Leaving) + 1 {
		if d := w.followers[key]; d != nil {
			return d.Operator()
		}
		between, leaves := prev.Leaves(next)
		if !leaves {
			between.ReplacedBy = ""
		}
		key, next = next, between.ReplacedBy
	}
	return ""
}

// retold returns a pin with what its catalog says of the bundle, where that is what
// the lock names.
func (w *world) retold(p lockfile.Pin) lockfile.Pin {
	e := w.entryOf(p.Catalog.ID, p.Package, p.Channel, p.Bundle)
	if e == nil || !w.isCurrent(&p) {
		return p
	}
	p = withEntry(p, e.Bundle())
	p.Properties = e.Bundle().Properties()
	return p
}

func (w *world) settled(follower string) bool {
	return slices.Contains(w.opt.Settled, follower) || slices.Contains(w.opt.Settled, "*")
}

// losses returns a conflict for each succession that would leave something behind
// without an owner: APIs that the follower does not provide, or an operator that
// requires the package that goes.
func (w *world) losses(prev, next *lockfile.File) []*Conflict {
	var out []*Conflict
	for _, replaced := range slices.Sorted(maps.Keys(w.followers)) {
		d := w.followers[replaced]
		ns, pkg, _ := strings.Cut(replaced, "/")
		if again, pinned := next.Pin(ns, pkg); pinned && again.Generated() {
			out = append(out, requiredStill(d, again, next.RequiredBy(again)))
		}
		follower, pinned := next.Pin(d.Namespace, d.Package)
		if prev == nil || !pinned {
			continue
		}
		if old, had := prev.Pin(ns, pkg); had {
			if apis := lostAPIs(old, follower); len(apis) > 0 {
				out = append(out, lost(d, old, follower, apis))
			}
		}
	}
	return out
}

// lostAPIs returns the kinds that old provides and follower does not, in any
// version, sorted.
func lostAPIs(old, follower lockfile.Pin) []catalog.GVK {
	kept := olm.Read(follower.Properties).Provides
	return slices.DeleteFunc(olm.Read(old.Properties).Provides, func(g catalog.GVK) bool {
		return slices.ContainsFunc(kept, func(k catalog.GVK) bool { return k.Group == g.Group && k.Kind == g.Kind })
	})
}

// lost returns the conflict of a follower that does not provide all that it has to.
func lost(d *subscription.Subscription, old, follower lockfile.Pin, apis []catalog.GVK) *Conflict {
	c := succession(d, fmt.Sprintf("%s is to follow %s, and does not provide all that it provides", follower.Key(), old.Key()),
		"take spec.replaces out and declare "+old.Key()+" again: both are installed then")
	for _, g := range apis {
		c.Chain = append(c.Chain, Link{Depth: 1, Text: fmt.Sprintf("%s provides %s of %s, %s does not: the definition would go, and all objects of it", old.Bundle, g.Kind, g.Group, follower.Bundle)})
	}
	return c
}

// requiredStill returns the conflict of an operator that is followed and that another one
// requires all the same.
func requiredStill(d *subscription.Subscription, again lockfile.Pin, by []lockfile.Requirement) *Conflict {
	c := succession(d, fmt.Sprintf("%s is to follow %s, which is still required", d.Operator(), again.Key()),
		"take spec.replaces out, and upgrade or remove what requires "+again.Key()+" first")
	for _, r := range by {
		c.Chain = append(c.Chain, Link{Depth: 1, Text: r.Pin + " requires " + r.Requirement})
	}
	return c
}

// succession returns a conflict about what d follows, and the one way out of it.
func succession(d *subscription.Subscription, text, instead string) *Conflict {
	at := d.At(subscription.FieldReplaces).String()
	return &Conflict{
		Namespace: d.Namespace, Subscriptions: []string{d.Key()}, At: at,
		Chain: []Link{{At: at, Text: text}}, Changes: []Change{{At: at, Text: instead}}, Tried: 1,
	}
}

// reportSuccessions says what is left over, and which declarations say that they
// follow something that there is not.
func (w *world) reportSuccessions(prev, next *lockfile.File) {
	for _, l := range next.Leaving {
		if l.ReplacedBy == "" {
			w.warn(diag.Warning{Code: "uninstalling", Subject: l.Key(), Msg: fmt.Sprintf("%s is being uninstalled: an empty piece stands for it, so that its objects are pruned, until nothing of it was seen: quayside status --save, then quayside resolve --observed; or quayside resolve --prune",
				l.Key())})
			continue
		}
		follower := next.Successor(l)
		w.warn(diag.Warning{Code: "leftovers", Subject: l.Key(), Msg: fmt.Sprintf("%s is followed by %s: what is left of it is rendered, without a running program, until %s was seen to run: quayside status --save, then quayside resolve --observed",
			l.Key(), follower, follower)})
	}
	for _, replaced := range slices.Sorted(maps.Keys(w.followers)) {
		d := w.followers[replaced]
		if !knows(prev, replaced) {
			w.warn(diag.Warning{
				Pos: d.At(subscription.FieldReplaces), Code: "replaces-nothing", Subject: d.Operator(),
				Msg: fmt.Sprintf("subscription %s follows %s, of which the lock has nothing: if it did have, all is done and spec.replaces can go", d.Key(), replaced),
			})
		}
	}
}

// knows reports whether a lock has an operator, installed or leaving.
func knows(lock *lockfile.File, operator string) bool {
	if lock == nil {
		return false
	}
	ns, pkg, _ := strings.Cut(operator, "/")
	_, pinned := lock.Pin(ns, pkg)
	_, leaves := lock.Leaves(operator)
	return pinned || leaves
}
