package resolve

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
)

// round is the outcome of one resolution: at most one edge for each operator.
type round struct {
	b         *builder
	next      *state
	picks     map[*want]int // what answers each subscription; absent where nothing does
	conflicts []*Conflict
	changed   bool
}

// round resolves once, from what the lock pins that at returns. A subscription that cannot be answered
// is set aside with what cannot hold together with it, and the rest is resolved
// without them. Rule 1.
func (w *world) round(st *state, at func() *lockfile.File) (*round, error) {
	r, given := &round{}, relaxed{}
	var told []dispute
	for {
		b := w.build(st, given)
		core, chosen, err := b.solve()
		if err != nil {
			return nil, err
		}
		if core == nil {
			w.suggest(at, told, given)
			for _, d := range told {
				r.conflicts = append(r.conflicts, d.Conflict)
			}
			r.b = b
			r.apply(chosen)
			return r, nil
		}
		parties := b.parties(core)
		if len(parties) == 0 {
			return nil, fmt.Errorf("resolving: no declaration takes part in the conflict %v", core)
		}
		if given.soften(w, parties) {
			continue
		}
		given.relax(parties)
		if !slices.ContainsFunc(told, func(old dispute) bool { return within(parties, old.parties) }) {
			t := b.teller(b.p, core)
			told = append(told, dispute{t.conflict(), parties, t.remedies()})
		}
	}
}

// apply makes the state after the round.
func (r *round) apply(chosen []int) {
	b := r.b
	have := map[int]bool{}
	for _, id := range chosen {
		have[id] = true
	}
	r.picks = map[*want]int{}
	for _, root := range b.roots {
		if root.want == nil {
			continue
		}
		for _, id := range root.choice.Of {
			if have[id] {
				r.picks[root.want] = id
				break
			}
		}
	}
	for _, s := range b.st.wants {
		if _, ok := r.picks[s]; ok || !s.generated {
			continue
		}
		if i := slices.IndexFunc(chosen, func(id int) bool { return b.atoms[id].ns == s.ns && b.atoms[id].facts.pkg == s.pkg }); i >= 0 {
			r.picks[s] = chosen[i] // what needs it wants another
		}
	}
	n := &nextState{b: b, st: &state{}, made: map[int]*installed{}, adopted: map[*installed]*installed{}, kept: map[*installed]bool{}}
	for _, s := range b.st.wants {
		next := *s
		if id, ok := r.picks[s]; ok {
			next.current = n.now(id)
			if i := next.current; n.made[id] == i && s.current != nil && i.replaces == "" {
				i.succeed(s.current)
			}
			r.changed = r.changed || next.current != s.current
			if e := b.atoms[id].entry; s.generated && e != nil {
				next.follow(e)
			}
		}
		if next.current != nil {
			n.keep(next.current)
		}
		n.st.wants = append(n.st.wants, &next)
	}
	for _, id := range chosen {
		i := n.now(id)
		e := cmp.Or(b.atoms[id].entry, i.entry)
		if n.kept[i] || i.free || e == nil {
			continue
		}
		if i.spare {
			again := *i
			again.spare = false
			i = &again
		}
		n.generate(i, e)
		n.keep(i)
		r.changed = true
	}
	for _, i := range b.st.have {
		switch {
		case !i.free || n.kept[i] || n.adopted[i] != nil:
		case n.replaced(i):
			r.changed = true
		default:
			n.keep(i)
		}
	}
	n.st.sort()
	r.next = n.st
}

// nextState is a state in the making.
type nextState struct {
	b       *builder
	st      *state
	made    map[int]*installed // by atom
	adopted map[*installed]*installed
	kept    map[*installed]bool
}

func (n *nextState) keep(i *installed) {
	if !n.kept[i] {
		n.kept[i] = true
		n.st.have = append(n.st.have, i)
	}
}

// now returns what a chosen atom is after the round: what is installed, also
// where a catalog offers it under the same name, or something new.
func (n *nextState) now(id int) *installed {
	a := n.b.atoms[id]
	if a.inst != nil {
		return a.inst
	}
	if n.made[id] != nil {
		return n.made[id]
	}
	for _, i := range n.b.st.have {
		if i.ns != a.ns || i.bundle != a.entry.Name() || i.pkg() != "" && i.pkg() != a.facts.pkg {
			continue
		}
		if i.csv != nil || i.facts.answersLike(a.facts) {
			return n.adopt(i, a)
		}
	}
	n.made[id] = &installed{ns: a.ns, bundle: a.entry.Name(), facts: a.facts, entry: a.entry, cat: a.catalog().ID(), made: true}
	return n.made[id]
}

// adopt returns i, which answers something now: one that nothing asked for does
// so as it is.
func (n *nextState) adopt(i *installed, a *atom) *installed {
	if !i.free {
		return i
	}
	if n.adopted[i] == nil {
		next := *i
		next.free, next.entry, next.cat = false, a.entry, a.catalog().ID()
		if i.csv != nil && !i.csv.Annotated && i.facts.pkg == "" {
			next.facts = i.facts.inPackage(a.facts.pkg)
		}
		n.adopted[i] = &next
	}
	return n.adopted[i]
}

// succeed records that i takes the place of old. A state that this run made and
// left again was only passed over.
func (i *installed) succeed(old *installed) {
	switch {
	case old.bundle == i.bundle:
		i.replaces, i.skipped = old.replaces, old.skipped
	case !old.made:
		i.replaces = old.bundle
	default:
		i.replaces = old.replaces
		i.skipped = append(slices.Clone(old.skipped), old.bundle)
	}
}

// replaced reports whether a new bundle takes the place of a free one.
func (n *nextState) replaced(free *installed) bool {
	for _, i := range n.made {
		if i.ns == free.ns && i.entry.Replaces() == free.bundle {
			if i.replaces == "" {
				i.replaces = free.bundle
			}
			return true
		}
	}
	return false
}

// generate adds the subscription that a dependency gets, as OLM names it. Rule 12.
func (n *nextState) generate(i *installed, e *catalog.Entry) {
	pkg, id := e.Channel().Package().Name(), i.cat
	for _, s := range n.st.wants {
		if s.ns == i.ns && s.pkg == pkg && (len(s.channels) == 0 || slices.Contains(s.channels, e.Channel().Name())) && (s.cat == nil || *s.cat == id) {
			return
		}
	}
	s := &want{ns: i.ns, pkg: pkg, approval: subscription.Automatic, current: i, generated: true}
	s.follow(e)
	n.st.wants = append(n.st.wants, s)
}

// follow makes s what OLM generates for a dependency that e answers. A
// ClusterCatalog has no namespace to name.
func (s *want) follow(e *catalog.Entry) {
	id, channel := e.Channel().Package().Catalog().ID(), e.Channel().Name()
	s.channels, s.cat = []string{channel}, &id
	s.name = lockfile.GeneratedName(s.pkg, channel, id)
}
