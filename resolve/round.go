package resolve

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
)

// round is the result of one call of the solver. In a round, each operator is upgraded along at most one
// upgrade edge.
type round struct {
	b        *builder
	next     *state
	picks    map[*want]int // the chosen atom of each satisfied subscription
	disputes []dispute
	changed  bool
}

// runRound resolves once from st. After a conflict, it relaxes the parties of the conflict and tries again,
// until the remaining constraints have a solution. It implements Rule 1 of the package comment.
func (w *world) runRound(st *state) (*round, error) {
	r, given := &round{}, relaxations{}
	for {
		b := w.build(st, given)
		core, chosen, err := b.solve()
		if err != nil {
			return nil, err
		}
		if core == nil {
			r.b = b
			r.apply(chosen)
			return r, nil
		}
		parties := b.parties(core)
		if len(parties) == 0 {
			return nil, fmt.Errorf("resolving: conflict without a declaration: %v", core)
		}
		if given.relaxGenerated(w, parties) {
			continue
		}
		given.relax(parties)
		if !slices.ContainsFunc(r.disputes, func(old dispute) bool { return isSubset(parties, old.parties) }) {
			t := b.newExplainer(b.p, core)
			r.disputes = append(r.disputes, dispute{t.conflict(), parties, t.remedies()})
		}
	}
}

// apply computes the state after the round from the chosen atoms: the subscriptions, the remaining bundles
// without a subscription, and the dependencies with their generated subscriptions.
func (r *round) apply(chosen []int) {
	r.picks = r.b.matchWants(chosen)
	picked := r.listPicks(chosen)
	wants := r.nextWants(picked)
	more, needed := generateWants(picked, wants)
	r.next = newState(append(wants, more...), append(needed, r.keptUnmanaged(picked)...))
	r.changed = r.changed || len(needed) > 0
}

// matchWants returns the chosen atom (a channel entry or an installed bundle, in a namespace) of each satisfied subscription.
func (b *builder) matchWants(chosen []int) map[*want]int {
	picks, have := map[*want]int{}, map[int]bool{}
	for _, id := range chosen {
		have[id] = true
	}
	for _, root := range b.roots {
		if i := slices.IndexFunc(root.choice.Of, func(id int) bool { return have[id] }); root.want != nil && i >= 0 {
			picks[root.want] = root.choice.Of[i]
		}
	}
	for _, s := range b.st.wants {
		if _, ok := picks[s]; ok || !s.generated {
			continue
		}
		if i := slices.IndexFunc(chosen, func(id int) bool { return b.atoms[id].ns == s.ns && b.atoms[id].facts.pkg == s.pkg }); i >= 0 {
			picks[s] = chosen[i] // another candidate was chosen, because another operator requires it
		}
	}
	return picks
}

// pick is one chosen atom.
type pick struct {
	id     int
	atom   *atom
	before *installed // the installed bundle before the round; nil if it is new
	after  *installed // the installed bundle after the round
}

// listPicks returns the chosen atoms, each with its installed bundle before and after the round.
func (r *round) listPicks(chosen []int) []pick {
	out := make([]pick, len(chosen))
	for n, id := range chosen {
		a := r.b.atoms[id]
		p := pick{id: id, atom: a, before: a.inst, after: a.inst}
		if a.inst == nil {
			if p.before = r.b.installedAs(a); p.before != nil {
				p.after = p.before.adopt(a)
			} else {
				p.after = r.install(id)
			}
		}
		out[n] = p
	}
	return out
}

// installedAs returns the installed bundle that equals the catalog entry of a, or nil if that bundle is not installed.
func (b *builder) installedAs(a *atom) *installed {
	for _, i := range b.st.installed {
		if i.ns != a.ns || i.bundle != a.entry.Name() || i.pkg() != "" && i.pkg() != a.facts.pkg {
			continue
		}
		if i.csv != nil || i.facts.isEquivalent(a.facts) {
			return i
		}
	}
	return nil
}

// adopt returns i if i has a subscription. Otherwise it returns a copy that counts as having a subscription,
// with the catalog entry of a.
func (i *installed) adopt(a *atom) *installed {
	if !i.unmanaged {
		return i
	}
	next := *i
	next.unmanaged, next.entry, next.cat = false, a.entry, a.catalog().ID()
	if i.csv != nil && !i.csv.Annotated && i.facts.pkg == "" {
		next.facts = i.facts.inPackage(a.facts.pkg)
	}
	return &next
}

// install returns a new installed bundle for atom id, with a record of the bundle that is replaced.
func (r *round) install(id int) *installed {
	a := r.b.atoms[id]
	i := &installed{ns: a.ns, bundle: a.entry.Name(), facts: a.facts, entry: a.entry, cat: a.catalog().ID(), isNew: true}
	for _, s := range r.b.st.wants {
		if r.picks[s] == id && s.current != nil && i.replaces == "" {
			i.recordReplacement(s.current)
		}
	}
	for _, free := range r.b.st.installed {
		if i.replaces == "" && i.replacesUnmanaged(free) {
			i.replaces = free.bundle
		}
	}
	return i
}

// replacesUnmanaged reports whether the new bundle i replaces old, an installed bundle without a
// subscription.
func (i *installed) replacesUnmanaged(old *installed) bool {
	return old.unmanaged && i.ns == old.ns && i.entry.Replaces() == old.bundle
}

// recordReplacement records that i replaces old. If old was installed by an earlier round of this run, it
// records old as skipped, and that i replaces the predecessor of old.
func (i *installed) recordReplacement(old *installed) {
	switch {
	case old.bundle == i.bundle:
		i.replaces, i.skipped = old.replaces, old.skipped
	case !old.isNew:
		i.replaces = old.bundle
	default:
		i.replaces = old.replaces
		i.skipped = append(slices.Clone(old.skipped), old.bundle)
	}
}

// nextWants returns the subscriptions after the round.
func (r *round) nextWants(picked []pick) []*want {
	var out []*want
	for _, s := range r.b.st.wants {
		next := *s
		if i := slices.IndexFunc(picked, func(p pick) bool { return p.id == r.picks[s] }); i >= 0 {
			next.current = picked[i].after
			if e := picked[i].atom.entry; s.generated && e != nil {
				next.setGeneratedFrom(e)
			}
		}
		r.changed = r.changed || next.current != s.current
		out = append(out, &next)
	}
	return out
}

// keptUnmanaged returns the installed bundles that still have no subscription and are not replaced.
func (r *round) keptUnmanaged(picked []pick) []*installed {
	return slices.DeleteFunc(slices.Clone(r.b.st.installed), func(i *installed) bool {
		return !i.unmanaged || slices.ContainsFunc(picked, func(p pick) bool {
			return p.before == i && p.after != i || p.before == nil && p.after.replacesUnmanaged(i)
		})
	})
}

// generateWants returns two lists. The list have contains the dependencies: the picked bundles that satisfy
// none of wants. The list more contains the subscriptions that OLM would generate for them. A subscription that
// covers several bundles appears once. It implements Rule 12 of the package comment.
func generateWants(picked []pick, wants []*want) (more []*want, have []*installed) {
	for _, p := range picked {
		e := cmp.Or(p.atom.entry, p.after.entry)
		if p.after.unmanaged || e == nil || slices.ContainsFunc(wants, func(s *want) bool { return s.current == p.after }) {
			continue
		}
		i := p.after
		if i.undeclared {
			again := *i
			again.undeclared = false
			i = &again
		}
		have = append(have, i)
		if !slices.ContainsFunc(slices.Concat(wants, more), func(s *want) bool { return s.covers(i, e) }) {
			s := &want{ns: i.ns, pkg: e.Channel().Package().Name(), approval: declare.Automatic, current: i, generated: true}
			s.setGeneratedFrom(e)
			more = append(more, s)
		}
	}
	return more, have
}

// covers reports whether i satisfies s. e is the entry of i.
func (s *want) covers(i *installed, e *catalog.Entry) bool {
	return s.ns == i.ns && s.pkg == e.Channel().Package().Name() &&
		(len(s.channels) == 0 || slices.Contains(s.channels, e.Channel().Name())) && (s.cat == nil || *s.cat == i.cat)
}

// setGeneratedFrom sets channel, catalog and name of s to the values that OLM generates for a
// dependency on entry e. For an entry of a ClusterCatalog, the name contains no namespace.
func (s *want) setGeneratedFrom(e *catalog.Entry) {
	id, channel := e.Channel().Package().Catalog().ID(), e.Channel().Name()
	s.channels, s.cat = []string{channel}, &id
	s.name = lockfile.GeneratedName(s.pkg, channel, id)
}
