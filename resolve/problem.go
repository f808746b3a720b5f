package resolve

import (
	"cmp"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// atom is what the solver chooses: one channel entry in one namespace, or one
// bundle that is installed there.
type atom struct {
	ns      string
	entry   *catalog.Entry // nil: installed
	inst    *installed
	facts   *facts
	watch   []string // namespaces it would watch; empty: all
	needs   [][]int  // by requirement: atoms of this namespace that meet it, the preferred first
	skipped bool     // what it needs is not looked at: it cannot be chosen, or stays regardless
}

func (a *atom) bundle() string {
	if a.inst != nil {
		return a.inst.bundle
	}
	return a.entry.Name()
}

func (a *atom) catalog() *catalog.Catalog {
	if a.entry == nil {
		return nil
	}
	return a.entry.Channel().Package().Catalog()
}

// causeKind says what sort of constraint a tag stands for.
type causeKind int

const (
	causeWant     causeKind = iota + 1 // a subscription must be answered
	causeStays                         // a bundle that nothing asks for is installed
	causeNeed                          // a bundle requires something
	causeBanned                        // a bundle cannot be chosen
	causePackage                       // one bundle of a package
	causeAPI                           // one provider of an API
	causeReplaced                      // an upgrade and what it replaces
	causeOverlap                       // one API from two installs that watch the same namespace
)

// cause is what a tag stands for, in terms of operators.
type cause struct {
	kind   causeKind
	ns     string
	want   *want
	fault  *fault
	inst   *installed
	bundle string
	req    *requirement
	pkg    string
	api    catalog.GVK
	other  string // the other namespace of an overlap
	text   string
	atoms  []int
}

type atomKey struct {
	ns    string
	entry *catalog.Entry
	inst  *installed
}

type causeKey struct {
	kind     causeKind
	ns, a, b string
	req      *requirement
}

type apiKey struct {
	ns  string
	api catalog.GVK
}

type needKey struct {
	ns  string
	cat *catalog.Catalog
	req *requirement
}

// builder turns a state into a solver's problem.
type builder struct {
	w       *world
	st      *state
	blocked map[any]int // by *want or *installed: how much of it is given up
	atoms   []*atom     // from 1
	ids     map[atomKey]int
	causes  []cause // from 1
	tags    map[causeKey]int
	roots   []root
	p       solve.Problem
	byPkg   map[[2]string][]int // by namespace and package
	byAPI   map[apiKey][]int
	lists   map[needKey][]int
	todo    []int
	rooted  map[int]bool
	banPkg  map[[2]string]*want // packages whose subscription could not be answered
	visited map[*catalog.Bundle]bool
	asked   map[[2]string]*want // the first subscription to each namespace and package
	picked  map[int]int         // by tag of a subscription: what answers it, once that is known
}

// root is one thing that must be answered.
type root struct {
	want   *want
	inst   *installed
	opts   options
	choice solve.Choice
}

func (w *world) build(st *state, blocked map[any]int) *builder {
	b := &builder{
		w: w, st: st, blocked: blocked, ids: map[atomKey]int{}, tags: map[causeKey]int{},
		byPkg: map[[2]string][]int{}, byAPI: map[apiKey][]int{}, lists: map[needKey][]int{}, rooted: map[int]bool{},
		banPkg: map[[2]string]*want{}, visited: map[*catalog.Bundle]bool{}, asked: map[[2]string]*want{}, picked: map[int]int{}, atoms: []*atom{nil}, causes: []cause{{}},
	}
	for _, s := range st.wants {
		if k := [2]string{s.ns, s.pkg}; b.asked[k] == nil {
			b.asked[k] = s
		}
		if blocked[s] > 0 && s.current == nil {
			b.banPkg[[2]string{s.ns, s.pkg}] = s
		}
	}
	for _, i := range st.have {
		b.installedAtom(i)
	}
	// What is there regardless comes first: it is no choice, and what it needs
	// stands behind every subscription, before what those need.
	for _, i := range st.have {
		if i.free && blocked[i] < 3 {
			tag := b.tag(causeKey{kind: causeStays, ns: i.ns, a: i.bundle}, cause{kind: causeStays, ns: i.ns, inst: i, bundle: i.bundle})
			b.addRoot(root{inst: i, choice: solve.Choice{Of: []int{b.installedAtom(i)}, Tag: tag}})
		}
	}
	for _, s := range w.inOrder(st.wants) {
		b.addWant(s)
	}
	b.close()
	b.finish()
	return b
}

// inOrder returns the subscriptions as their wishes count: by namespace and
// name. When not everything is to move, those that are named come first, then
// those that have a pin to keep, then new ones.
func (w *world) inOrder(wants []*want) []*want {
	if w.opt.Upgrade {
		return wants
	}
	class := func(s *want) int {
		switch {
		case w.named(s) != nil:
			return 0
		case s.current != nil:
			return 1
		default:
			return 2
		}
	}
	wants = slices.Clone(wants)
	slices.SortStableFunc(wants, func(x, y *want) int { return cmp.Compare(class(x), class(y)) })
	return wants
}

// tag returns the number of a cause, the same for the same key.
func (b *builder) tag(key causeKey, c cause) int {
	if t, ok := b.tags[key]; ok {
		return t
	}
	t := len(b.causes)
	b.tags[key] = t
	b.causes = append(b.causes, c)
	return t
}

// installedAtom returns the atom of something that is installed.
func (b *builder) installedAtom(i *installed) int {
	key := atomKey{ns: i.ns, inst: i}
	if id, ok := b.ids[key]; ok {
		return id
	}
	a := &atom{ns: i.ns, inst: i, facts: i.facts, watch: b.w.watchOf(i.ns, b.wantOf(i), nil)}
	if i.pin != nil {
		a.watch = i.pin.WatchNamespaces
	}
	a.skipped = b.giveUp(i) >= 2
	return b.add(key, a)
}

// giveUp returns how much of what asks for i has been given up.
func (b *builder) giveUp(i *installed) int {
	level := 0
	for _, s := range b.st.wants {
		if s.current == i {
			level = max(level, b.blocked[s])
		}
	}
	if b.blocked[i] > 0 {
		level = max(level, b.blocked[i]+1)
	}
	return level
}

func (b *builder) wantOf(i *installed) *want {
	for _, s := range b.st.wants {
		if s.current == i {
			return s
		}
	}
	return nil
}

// entryAtom returns the atom of a catalog's entry in a namespace.
func (b *builder) entryAtom(ns string, e *catalog.Entry) int {
	key := atomKey{ns: ns, entry: e}
	if id, ok := b.ids[key]; ok {
		return id
	}
	f := b.w.read.bundle(e.Bundle())
	b.visited[e.Bundle()] = true
	a := &atom{ns: ns, entry: e, facts: f}
	a.watch = b.w.watchOf(ns, b.wantFor(ns, e), e.Bundle())
	id := b.add(key, a)
	for _, why := range b.bans(a) {
		a.skipped = true
		tag := b.tag(causeKey{kind: causeBanned, ns: ns, a: e.Name(), b: why}, cause{kind: causeBanned, ns: ns, bundle: e.Name(), text: why, pkg: f.pkg})
		b.p.Bans = append(b.p.Bans, solve.Ban{Atom: id, Tag: tag})
	}
	return id
}

// wantFor returns the subscription that an entry's package is asked for by.
func (b *builder) wantFor(ns string, e *catalog.Entry) *want {
	return b.asked[[2]string{ns, e.Channel().Package().Name()}]
}

// bans returns why an entry cannot be chosen.
func (b *builder) bans(a *atom) []string {
	var why []string
	f := a.facts
	if f.unusable != "" {
		why = append(why, "cannot be used: "+f.unusable)
	}
	if s := b.wantFor(a.ns, a.entry); f.deprecated && (s == nil || !s.isV1()) {
		why = append(why, "is deprecated (olm.deprecated)")
	}
	if text := b.w.cannotRun(a); text != "" && !b.w.warnsOnly() {
		why = append(why, text)
	}
	if text := b.w.notPromoted(a); text != "" {
		why = append(why, text)
	}
	if s := b.banPkg[[2]string{a.ns, f.pkg}]; s != nil {
		why = append(why, "is asked for by subscription "+s.key()+", which could not be answered")
	}
	return why
}

func (b *builder) add(key atomKey, a *atom) int {
	id := len(b.atoms)
	b.atoms = append(b.atoms, a)
	b.ids[key] = id
	if a.inst == nil || b.giveUp(a.inst) < 3 {
		if a.facts.pkg != "" {
			k := [2]string{a.ns, a.facts.pkg}
			b.byPkg[k] = append(b.byPkg[k], id)
		}
		for _, g := range a.facts.apis {
			k := apiKey{a.ns, g}
			if of := b.byAPI[k]; len(of) == 0 || of[len(of)-1] != id {
				b.byAPI[k] = append(of, id)
			}
		}
	}
	if a.inst != nil && a.facts.deprecated && !a.skipped {
		tag := b.tag(causeKey{kind: causeBanned, ns: a.ns, a: "@" + a.inst.bundle}, cause{
			kind: causeBanned, ns: a.ns, bundle: a.inst.bundle, inst: a.inst,
			text: "is deprecated (olm.deprecated)", pkg: a.facts.pkg,
		})
		b.p.Bans = append(b.p.Bans, solve.Ban{Atom: id, Tag: tag})
	}
	b.todo = append(b.todo, id)
	return id
}

// addWant makes a subscription a root.
func (b *builder) addWant(s *want) {
	level := b.blocked[s]
	if level >= 3 || level > 0 && s.current == nil {
		return
	}
	opts := b.w.options(s)
	switch es, forced := b.w.force[s]; {
	case forced:
		opts = asOptions(es)
	case b.w.without[s]:
		return
	case level > 0:
		opts = options{of: []option{{current: s.current}}}
	}
	c := cause{kind: causeWant, ns: s.ns, want: s, fault: opts.fault}
	tag := b.tag(causeKey{kind: causeWant, ns: s.ns, a: s.name}, c)
	choice := solve.Choice{Tag: tag}
	var cur int
	if s.current != nil {
		cur = b.installedAtom(s.current)
	}
	for _, o := range opts.of {
		if o.current != nil {
			choice.Of = append(choice.Of, cur)
			continue
		}
		id := b.entryAtom(s.ns, o.entry)
		choice.Of = append(choice.Of, id)
		if cur != 0 && (s.current.pkg() == "" || s.current.pkg() != b.atoms[id].facts.pkg) {
			tag := b.tag(causeKey{kind: causeReplaced, ns: s.ns, a: s.current.bundle, b: o.entry.Name()},
				cause{kind: causeReplaced, ns: s.ns, want: s, inst: s.current, bundle: o.entry.Name()})
			b.p.Groups = append(b.p.Groups, solve.Group{Of: []int{cur, id}, Tag: tag})
		}
	}
	b.causes[tag].atoms = choice.Of
	b.addRoot(root{want: s, opts: opts, choice: choice})
}

func (b *builder) addRoot(r root) {
	b.roots = append(b.roots, r)
	b.p.Roots = append(b.p.Roots, r.choice)
	for _, id := range r.choice.Of {
		b.rooted[id] = true
	}
}
