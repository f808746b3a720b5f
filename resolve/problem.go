package resolve

import (
	"cmp"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// atom is a boolean variable of the solver: whether a channel entry or an installed bundle is
// chosen in a namespace.
type atom struct {
	ns      string
	entry   *catalog.Entry // nil if the atom is an installed bundle
	inst    *installed
	facts   *facts
	watch   []string // namespaces that the bundle would watch; empty means all
	needs   []need   // valid requirements
	skipped bool     // whether the atom is banned or relaxed, so that its requirements are ignored (rule 4)
}

// need is one requirement of an atom.
type need struct {
	req *requirement
	of  []int // atoms in the same namespace that meet it, most preferred first
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

type atomKey struct {
	ns    string
	entry *catalog.Entry
	inst  *installed
}

type pkgKey struct{ ns, pkg string }

type apiKey struct {
	ns  string
	api int // number of the API in factReader
}

type needKey struct {
	ns  string
	cat *catalog.Catalog
	req *requirement
}

// builder translates a state into a problem for the solver.
type builder struct {
	w               *world
	st              *state
	relaxations     relaxations
	atoms           []*atom // index 0 is unused
	ids             map[atomKey]int
	causes          []cause // causes[tag]; tag 0 is unused
	tags            map[cause]int
	requirementTags map[requirementCause]int // tags of the requirement causes
	atomsByTag      [][]int                  // atomsByTag[tag]: alternatives, or atoms that exclude each other
	roots           []root
	p               solve.Problem
	byPkg           map[pkgKey][]int
	byAPI           map[apiKey][]int
	candidateLists  map[needKey][]int
	todo            []int
	omitted         map[pkgKey]*want // relaxed subscriptions that are not installed, and therefore omitted
	wantByPackage   map[pkgKey]*want // first subscription for each namespace and package
	needed          map[*installed]bool
	undeclared      map[pkgKey]*want // installed packages that no declaration requests
}

// root is a choice that the solver begins with: the candidates of a subscription, or an installed bundle
// without a subscription. For such a bundle, the field want is nil.
type root struct {
	want   *want
	opts   options
	choice solve.Choice
}

func (w *world) build(st *state, given relaxations) *builder {
	b := &builder{
		w: w, st: st, relaxations: given, ids: map[atomKey]int{}, tags: map[cause]int{}, requirementTags: map[requirementCause]int{}, atomsByTag: [][]int{nil},
		byPkg: map[pkgKey][]int{}, byAPI: map[apiKey][]int{}, candidateLists: map[needKey][]int{},
		omitted: map[pkgKey]*want{}, wantByPackage: map[pkgKey]*want{}, atoms: []*atom{nil}, causes: []cause{nil},
	}
	b.needed, b.undeclared = st.needed(), st.undeclaredWants()
	for _, s := range st.wants {
		if k := (pkgKey{s.ns, s.pkg}); b.wantByPackage[k] == nil {
			b.wantByPackage[k] = s
		}
		if given[party{want: s}] > notRelaxed && s.current == nil {
			b.omitted[pkgKey{s.ns, s.pkg}] = s
		}
	}
	for _, i := range st.installed {
		b.installedAtom(i)
	}
	// Installed bundles without a subscription come first, because each is its only candidate. So their
	// requirements are met before the requirements of the subscriptions.
	for _, i := range st.installed {
		if i.unmanaged && given[party{inst: i}] < fullyIgnored {
			tag := b.tag(installedCause{fact{i.ns, i.bundle}, i}, nil)
			b.addRoot(root{choice: solve.Choice{Of: []int{b.installedAtom(i)}, Tag: tag}})
		}
	}
	for _, s := range b.orderedWants() {
		b.addWant(s)
	}
	b.addDependencies()
	b.banOthers()
	b.addConstraints()
	return b
}

// orderedWants returns the subscriptions in the order in which the solver satisfies them: by namespace and
// name. In a partial upgrade, operators to upgrade come first, then other installed operators, then new
// operators. Dependencies that are no longer required always come last, unless OLM would upgrade them. It
// implements Rule 3 and Rule 12 of the package comment.
func (b *builder) orderedWants() []*want {
	class := func(s *want) int {
		how, _ := b.w.preference(s)
		switch all := b.w.opt.Upgrade; {
		case s.generated && !b.needed[s.current] && (how == preferInstalled || b.relaxations[party{want: s}] > notRelaxed):
			return 3
		case b.w.targetOf(s) != nil || all:
			return 0
		case s.current != nil:
			return 1
		default:
			return 2
		}
	}
	wants := slices.Clone(b.st.wants)
	slices.SortStableFunc(wants, func(x, y *want) int { return cmp.Compare(class(x), class(y)) })
	return wants
}

// tag returns the tag of a cause, and creates it at the first call. of contains the atoms of a new tag.
func (b *builder) tag(c cause, of []int) int {
	if t, ok := b.tags[c]; ok {
		return t
	}
	b.tags[c] = b.newTag(c, of)
	return b.tags[c]
}

// requirementTag returns the tag of a requirementCause, the most frequent cause. It is faster than tag, because
// it needs no interface conversion.
func (b *builder) requirementTag(c requirementCause, of []int) int {
	t, ok := b.requirementTags[c]
	if !ok {
		t = b.newTag(c, of)
		b.requirementTags[c] = t
	}
	return t
}

func (b *builder) newTag(c cause, of []int) int {
	b.causes = append(b.causes, c)
	b.atomsByTag = append(b.atomsByTag, of)
	return len(b.causes) - 1
}

// ban adds the constraint that an atom cannot be chosen.
func (b *builder) ban(id int, why ban) {
	a := b.atoms[id]
	tag := b.tag(banCause{fact{a.ns, a.bundle()}, a.facts.pkg, why}, nil)
	b.p.Bans = append(b.p.Bans, solve.Ban{Atom: id, Tag: tag})
}

// installedAtom returns the atom of an installed bundle. It adds the atom on the first call for the bundle.
func (b *builder) installedAtom(i *installed) int {
	key := atomKey{ns: i.ns, inst: i}
	if id, ok := b.ids[key]; ok {
		return id
	}
	a := &atom{ns: i.ns, inst: i, facts: i.facts, watch: b.w.watchOf(i.ns, b.wantOf(i), nil)}
	if i.pin != nil {
		a.watch = i.pin.WatchNamespaces
	}
	a.skipped = b.relaxationOf(i) >= requirementsIgnored
	return b.addAtom(key, a)
}

// relaxationOf returns the highest relaxation of an installed bundle and of its subscriptions.
func (b *builder) relaxationOf(i *installed) relaxation {
	level := b.relaxations[party{inst: i}]
	for _, s := range b.st.wants {
		if s.current == i {
			level = max(level, b.relaxations[party{want: s}])
		}
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

// entryAtom returns the atom of a channel entry in a namespace. It adds the atom on the first call for the entry.
func (b *builder) entryAtom(ns string, e *catalog.Entry) int {
	key := atomKey{ns: ns, entry: e}
	if id, ok := b.ids[key]; ok {
		return id
	}
	f := b.w.facts.bundle(e.Bundle())
	a := &atom{ns: ns, entry: e, facts: f}
	a.watch = b.w.watchOf(ns, b.wantFor(ns, e), e.Bundle())
	id := b.addAtom(key, a)
	for _, why := range b.bans(a) {
		a.skipped = true
		b.ban(id, why)
	}
	return id
}

// wantFor returns the first subscription in a namespace to the package of an entry, or nil.
func (b *builder) wantFor(ns string, e *catalog.Entry) *want {
	return b.wantByPackage[pkgKey{ns, e.Channel().Package().Name()}]
}

// bans returns the reasons why a channel entry cannot be chosen.
func (b *builder) bans(a *atom) []ban {
	var why []ban
	f := a.facts
	if text := f.unusable(); text != "" {
		why = append(why, ban{kind: banUnusable, text: "cannot be used: " + text})
	}
	if s := b.wantFor(a.ns, a.entry); f.deprecated && (s == nil || !s.isV1()) {
		why = append(why, deprecatedBan())
	}
	if no := b.w.cannotRun(a); no.kind != 0 && !b.w.warnsOnly() {
		why = append(why, no)
	}
	if text := b.w.notPromoted(a); text != "" {
		why = append(why, ban{kind: banOtherLock, text: text})
	}
	if text := b.objection(a); text != "" {
		why = append(why, ban{kind: banObjection, text: text})
	}
	if s := b.undeclared[pkgKey{a.ns, f.pkg}]; s != nil && b.w.targetOf(s) == nil {
		if text := b.w.notSuccessorReason(s, a); text != "" {
			why = append(why, ban{kind: banPinned, text: text})
		}
	}
	if s := b.omitted[pkgKey{a.ns, f.pkg}]; s != nil {
		why = append(why, ban{kind: banUnsatisfied, text: "is requested by subscription " + s.key() + ", which has no candidate"})
	}
	return why
}

// objection returns the result of Options.Objection for a channel entry, or "" if the bundle is already
// installed in the namespace.
func (b *builder) objection(a *atom) string {
	isInstalled := func(i *installed) bool { return i.ns == a.ns && i.bundle == a.entry.Name() }
	if b.w.opt.Objection == nil || slices.ContainsFunc(b.st.installed, isInstalled) {
		return ""
	}
	return b.w.opt.Objection(a.ns, a.entry.Bundle())
}

func deprecatedBan() ban { return ban{kind: banDeprecated, text: "is deprecated (olm.deprecated)"} }

func (b *builder) addAtom(key atomKey, a *atom) int {
	id := len(b.atoms)
	b.atoms = append(b.atoms, a)
	b.ids[key] = id
	if a.inst == nil || b.relaxationOf(a.inst) < fullyIgnored {
		if a.facts.pkg != "" {
			k := pkgKey{a.ns, a.facts.pkg}
			b.byPkg[k] = append(b.byPkg[k], id)
		}
		for _, api := range a.facts.apiNumbers {
			k := apiKey{a.ns, api}
			if of := b.byAPI[k]; len(of) == 0 || of[len(of)-1] != id {
				b.byAPI[k] = append(of, id)
			}
		}
	}
	if a.inst != nil && a.facts.deprecated && !a.skipped {
		b.ban(id, deprecatedBan())
	}
	b.todo = append(b.todo, id)
	return id
}

// rootOptions returns the candidates for a subscription. soft is true if the subscription may remain
// unsatisfied. A fully relaxed subscription has no candidates. A dependency is soft if it was relaxed, or if it
// should keep its pin and is not held. It implements Rule 12 of the package comment.
func (b *builder) rootOptions(s *want) (opts options, soft bool) {
	if es, forced := b.w.forced[s]; forced {
		return asOptions(es), false
	}
	level := b.relaxations[party{want: s}]
	if level >= fullyIgnored || level > notRelaxed && s.current == nil {
		return opts, true
	}
	how, _ := b.w.preference(s)
	opts = b.w.options(s)
	soft = s.generated && (how == preferInstalled || level > notRelaxed) || b.isOptional(s)
	if how == preferInstalled && s.generated || level > notRelaxed && !s.generated {
		opts.list, opts.fault = []option{{current: s.current}}, nil
	}
	return opts, soft
}

// isOptional reports whether s may be omitted. An optional subscription never causes a conflict.
func (b *builder) isOptional(s *want) bool { return b.w.opt.Lenient && s.current == nil }

// banOthers bans the bundles that an optional subscription does not allow. Without the ban, a dependency on the
// same package could install such a bundle.
func (b *builder) banOthers() {
	for _, s := range b.st.wants {
		if !b.isOptional(s) {
			continue
		}
		var of []int
		if i := slices.IndexFunc(b.roots, func(r root) bool { return r.want == s }); i >= 0 {
			of = b.roots[i].choice.Of
		}
		for _, id := range b.byPkg[pkgKey{s.ns, s.pkg}] {
			if !slices.Contains(of, id) {
				b.ban(id, ban{kind: banUnsatisfied, text: "does not match subscription " + s.key()})
			}
		}
	}
}

// addWant adds a subscription to the problem, as a root.
func (b *builder) addWant(s *want) {
	opts, soft := b.rootOptions(s)
	if soft && len(opts.list) == 0 {
		return
	}
	choice := solve.Choice{Tag: b.tag(requestCause{fact{ns: s.ns}, s, opts.fault}, nil), Soft: soft}
	var cur int
	if s.current != nil {
		cur = b.installedAtom(s.current)
	}
	for _, o := range opts.list {
		if o.current != nil {
			choice.Of = append(choice.Of, cur)
			continue
		}
		id := b.entryAtom(s.ns, o.entry)
		choice.Of = append(choice.Of, id)
		if cur != 0 && (s.current.pkg() == "" || s.current.pkg() != b.atoms[id].facts.pkg) {
			tag := b.tag(replacementCause{fact{s.ns, o.entry.Name()}, s.current}, nil)
			b.p.Groups = append(b.p.Groups, solve.Group{Of: []int{cur, id}, Tag: tag})
		}
	}
	b.addRoot(root{want: s, opts: opts, choice: choice})
}

func (b *builder) addRoot(r root) {
	b.roots = append(b.roots, r)
	b.p.Roots = append(b.p.Roots, r.choice)
}

// rootAtoms returns the set of atoms that are candidates of a root.
func rootAtoms(roots []root) map[int]bool {
	out := map[int]bool{}
	for _, r := range roots {
		for _, id := range r.choice.Of {
			out[id] = true
		}
	}
	return out
}
