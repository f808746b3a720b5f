package resolve

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
)

// installed is an installed bundle.
type installed struct {
	ns, bundle string
	facts      *facts
	entry      *catalog.Entry // channel entry of the bundle; nil if the catalog does not have the bundle
	cat        catalog.ID
	pin        *lockfile.Pin // pin of the bundle in the previous lock; nil if the bundle was adopted or is new
	csv        *declare.ClusterServiceVersion
	unmanaged  bool   // the bundle has no subscription, and must remain installed
	replaces   string // name of the bundle that it replaced
	skipped    []string
	isNew      bool // installed by this run
	undeclared bool // no longer declared: kept only while another operator requires it (Rule 12)
}

func (i *installed) pkg() string { return i.facts.pkg }

func (i *installed) versionText() string {
	switch {
	case i.pin != nil:
		return i.pin.Version
	case i.facts.hasVersion:
		return i.facts.version.String()
	case i.csv != nil:
		return i.csv.Version
	}
	return ""
}

// state holds the subscriptions and installed bundles before or after a round. It is not modified
// during a round.
type state struct {
	wants     []*want      // sorted by namespace, then name
	installed []*installed // sorted by namespace, then bundle
}

// newState returns a state with the given subscriptions and their installed bundles. others are
// installed bundles without a subscription.
func newState(wants []*want, others []*installed) *state {
	st := &state{wants: wants}
	add := func(i *installed) {
		if i != nil && !slices.Contains(st.installed, i) {
			st.installed = append(st.installed, i)
		}
	}
	for _, s := range wants {
		add(s.current)
	}
	for _, i := range others {
		add(i)
	}
	st.sort()
	return st
}

// needed returns the set of declared bundles, bundles without a subscription, and all bundles that these
// require, directly or transitively. If several bundles with the same API meet a requirement, the set contains
// only one of them.
func (st *state) needed() map[*installed]bool {
	out := map[*installed]bool{}
	var todo []*installed
	add := func(is ...*installed) {
		for _, i := range is {
			if !out[i] {
				out[i] = true
				todo = append(todo, i)
			}
		}
	}
	for _, s := range st.wants {
		if s.current != nil && !s.generated {
			add(s.current)
		}
	}
	for _, i := range st.installed {
		if i.unmanaged {
			add(i)
		}
	}
	for len(todo) > 0 {
		by := todo[0]
		todo = todo[1:]
		for _, r := range by.facts.needs {
			of := st.providersFor(by, r)
			for _, i := range of {
				if !slices.ContainsFunc(of, func(j *installed) bool { return j != i && out[j] && j.isRival(i) }) {
					add(i)
				}
			}
		}
	}
	return out
}

// isRival reports whether i and j provide a common API.
func (i *installed) isRival(j *installed) bool {
	return slices.ContainsFunc(i.facts.apis, func(g catalog.GVK) bool { return slices.Contains(j.facts.apis, g) })
}

// pruned returns st without dependencies that are no longer required.
func (st *state) pruned() *state {
	needed := st.needed()
	next := *st
	next.wants = slices.DeleteFunc(slices.Clone(st.wants), func(s *want) bool { return s.generated && !needed[s.current] })
	return &next
}

// undeclaredWants returns the installed packages that no declaration requests. The result maps namespace and
// package to a subscription.
func (st *state) undeclaredWants() map[pkgKey]*want {
	out := map[pkgKey]*want{}
	for _, i := range st.installed {
		if i.undeclared {
			out[pkgKey{i.ns, i.pkg()}] = &want{current: i}
		}
	}
	for _, s := range st.wants {
		if s.generated {
			out[pkgKey{s.ns, s.pkg}] = s
		}
	}
	for _, s := range st.wants {
		if !s.generated {
			delete(out, pkgKey{s.ns, s.pkg})
		}
	}
	return out
}

func (st *state) sort() {
	slices.SortStableFunc(st.wants, func(a, b *want) int {
		return cmp.Or(strings.Compare(a.ns, b.ns), strings.Compare(a.name, b.name))
	})
	slices.SortStableFunc(st.installed, func(a, b *installed) int {
		return cmp.Or(strings.Compare(a.ns, b.ns), strings.Compare(a.bundle, b.bundle))
	})
}

// stateBefore returns the state before the first round. The installed bundle of a namespace and package is the
// pin in the previous lock or, if there is none, the ClusterServiceVersion among the declarations. It
// implements rule 8 of the package comment.
func (w *converter) stateBefore(prev *lockfile.File) *state {
	st := &state{}
	for i := range w.decl.Subscriptions {
		d := &w.decl.Subscriptions[i]
		s := &want{
			ns: d.Namespace, name: d.Name, pkg: d.Package, channels: d.Channels, cat: d.Catalog, decl: d,
			starting: d.StartingCSV, approval: d.Approval, hold: d.Hold,
		}
		if d.DefaultChannel && len(s.channels) == 0 {
			s.channels = w.defaultChannel(s)
		}
		st.wants = append(st.wants, s)
	}
	st.sort()
	locked := w.addPins(st, prev)
	w.adoptUnpinned(st, locked)
	for _, s := range st.wants {
		for i, h := range w.opt.Held {
			if s.hold == "" && h.Operator == s.operator() {
				s.hold, s.held = h.Reason, &w.opt.Held[i]
			}
		}
	}
	st.sort()
	return st
}

// defaultChannel returns the current default channel for s, as a list. It returns nil if the
// package does not exist or is in several catalogs.
func (w *converter) defaultChannel(s *want) []string {
	pkgs, bad := w.packages(s)
	if bad != nil {
		return nil
	}
	return []string{pkgs[0].DefaultChannel()}
}

// addPins adds the pins of prev to st and returns them by namespace and package. It implements Rule 8 of the
// package comment.
func (w *converter) addPins(st *state, prev *lockfile.File) map[string]*installed {
	locked := map[string]*installed{}
	for _, p := range w.activePins(prev) {
		if slices.ContainsFunc(w.opt.Unpin, func(t Target) bool { return t.key() == p.Key() }) {
			continue
		}
		inst := w.fromPin(p, st.wants)
		if w.successors[p.Key()] != nil {
			locked[p.Key()] = inst
			continue
		}
		requested := false
		for _, s := range st.wants {
			if s.ns != p.Namespace || s.current != nil {
				continue
			}
			if s.pkg == p.Package || isRenamed(s, p, prev) {
				s.current, requested = inst, true
				w.switchCatalog(inst, s)
			}
		}
		if !requested && p.Generated() {
			st.wants = append(st.wants, generatedWant(p, inst))
			requested = true
		}
		locked[p.Key()] = inst
		inst.undeclared = !requested
		st.installed = append(st.installed, inst)
	}
	return locked
}

// switchCatalog changes the catalog of i to the catalog of s, if the catalog of s has the same bundle.
func (w *converter) switchCatalog(i *installed, s *want) {
	if s.cat == nil || *s.cat == i.cat {
		return
	}
	if e := w.entryOf(*s.cat, s.pkg, i.pin.Channel, i.bundle); e != nil && (e.Bundle().Image() == i.pin.Image || i.entry == nil) {
		i.entry, i.cat = e, *s.cat
	}
}

// isRenamed reports whether the declaration of s has changed its package since p was pinned.
func isRenamed(s *want, p *lockfile.Pin, prev *lockfile.File) bool {
	if s.name != p.Subscription() || p.Generated() {
		return false
	}
	_, has := prev.Pin(s.ns, s.pkg)
	return !has
}

// generatedWant returns the generated subscription of a dependency, as recorded in its pin.
func generatedWant(p *lockfile.Pin, inst *installed) *want {
	id := p.Catalog.ID
	s := &want{
		ns: p.Namespace, name: p.Subscription(), pkg: p.Package, cat: &id, approval: declare.Automatic,
		current: inst, generated: true,
	}
	if p.Channel != "" {
		s.channels = []string{p.Channel}
	}
	return s
}

// fromPin returns the installed bundle for a pin. If the catalog of the pin is current, the data in the catalog
// replaces the data in the pin. A bundle adopted from a cluster keeps the data of its ClusterServiceVersion.
func (w *converter) fromPin(p *lockfile.Pin, wants []*want) *installed {
	e := w.entryOf(p.Catalog.ID, p.Package, p.Channel, p.Bundle)
	inst := &installed{ns: p.Namespace, bundle: p.Bundle, cat: p.Catalog.ID, pin: p, replaces: p.Replaces, entry: e}
	properties, version := p.Properties, p.Version
	if e != nil && w.isCatalogCurrent(p) {
		if seen := w.observedFacts(p, wants); seen != nil && haveSameChecksum(lockfile.Pin{Properties: seen.properties}, lockfile.Pin{Properties: properties}) {
			inst.facts = seen
			return inst
		}
		if e.Bundle().Unusable() == "" {
			inst.facts = w.facts.bundle(e.Bundle())
			return inst
		}
		properties, version = e.Bundle().Properties(), e.Bundle().Version().String()
	}
	inst.facts = w.facts.fromProperties(properties)
	if inst.facts.pkg == "" {
		inst.facts.pkg = p.Package
	}
	if !inst.facts.hasVersion {
		inst.facts.setVersion(version)
	}
	return inst
}

// observedFacts returns the facts of the ClusterServiceVersion that p pins, if it is among the
// declarations. Otherwise it returns nil.
func (w *converter) observedFacts(p *lockfile.Pin, wants []*want) *facts {
	i := slices.IndexFunc(w.decl.CSVs, func(c declare.ClusterServiceVersion) bool {
		return !c.Copied && c.Namespace == p.Namespace && c.Name == p.Bundle
	})
	if i < 0 {
		return nil
	}
	f := w.fromCSV(&w.decl.CSVs[i], wants).facts
	if f.pkg == "" {
		f = f.inPackage(p.Package)
	}
	return f
}

// haveSameChecksum reports whether two pins have the same checksum in a lock.
func haveSameChecksum(a, b lockfile.Pin) bool { return a.Checksum() == b.Checksum() }

// entryOf returns the entry of a bundle in a catalog, in the given channel if possible. It returns
// nil if the catalog does not have the bundle.
func (w *converter) entryOf(id catalog.ID, pkg, channel, bundle string) *catalog.Entry {
	p := packageOf(w.x, id, pkg)
	if p == nil {
		return nil
	}
	if ch, ok := p.Channel(channel); ok {
		if e, ok := ch.Entry(bundle); ok {
			return e
		}
	}
	if b, ok := p.Bundle(bundle); ok {
		if es := b.Entries(); len(es) > 0 {
			return es[0]
		}
	}
	return nil
}

// adoptUnpinned adds to st the ClusterServiceVersions that the lock does not pin. It implements Rule 8 of the
// package comment.
func (w *converter) adoptUnpinned(st *state, locked map[string]*installed) {
	taken := map[string]bool{} // "namespace/name" of the CSVs that belong to a subscription
	byName := map[string]*declare.ClusterServiceVersion{}
	for i := range w.decl.CSVs {
		if c := &w.decl.CSVs[i]; !c.Copied {
			byName[c.Namespace+"/"+c.Name] = c
		}
	}
	adopted := map[string]*installed{}
	for _, s := range st.wants {
		if s.decl == nil || s.decl.InstalledCSV == "" {
			continue
		}
		key := s.ns + "/" + s.decl.InstalledCSV
		c := byName[key]
		w.markReplaced(c, byName, taken)
		if s.current != nil {
			w.warnStateDiffers(s)
			taken[key] = true
			continue
		}
		if c == nil {
			continue
		}
		taken[key] = true
		if adopted[key] == nil {
			adopted[key] = w.fromCSV(c, st.wants)
			st.installed = append(st.installed, adopted[key])
		}
		s.current = adopted[key]
	}
	for _, inst := range locked { // predecessors of pinned bundles count as removed
		taken[inst.ns+"/"+inst.bundle] = true
		taken[inst.ns+"/"+inst.replaces] = true
	}
	for i := range w.decl.CSVs {
		c := &w.decl.CSVs[i]
		if c.Copied || taken[c.Namespace+"/"+c.Name] || !w.hasSubscriptions(st, c.Namespace) {
			continue
		}
		inst := w.fromCSV(c, st.wants)
		inst.unmanaged = true
		st.installed = append(st.installed, inst)
	}
}

// markReplaced adds to taken the ClusterServiceVersions that c replaces, directly or indirectly. They belong to
// the same subscription as c, and only c counts as installed.
func (w *converter) markReplaced(c *declare.ClusterServiceVersion, byName map[string]*declare.ClusterServiceVersion, taken map[string]bool) {
	for c != nil && c.Replaces != "" {
		key := c.Namespace + "/" + c.Replaces
		if taken[key] {
			return
		}
		taken[key] = true
		c = byName[key]
	}
}

// warnStateDiffers warns if the status of a declared Subscription names an installed bundle that differs from
// the lock.
func (w *converter) warnStateDiffers(s *want) {
	if s.current.pin == nil || s.current.bundle == s.decl.InstalledCSV {
		return
	}
	w.warn(diag.Warning{Pos: s.pos(declare.FieldInstalled), Code: "state-differs", Subject: s.operator(), Msg: "subscription " + s.key() + ": its status has " +
		s.decl.InstalledCSV + " installed, but the lock has " + s.current.bundle + ", which is used"})
}

func (w *converter) hasSubscriptions(st *state, ns string) bool {
	return slices.ContainsFunc(st.wants, func(s *want) bool { return s.ns == ns })
}

// fromCSV returns the installed bundle for a ClusterServiceVersion. If c has no properties annotation, the
// bundle gets the package of its subscriptions, provided that all of them name the same package.
func (w *converter) fromCSV(c *declare.ClusterServiceVersion, wants []*want) *installed {
	f := w.facts.fromProperties(c.Properties)
	inst := &installed{ns: c.Namespace, bundle: c.Name, facts: f, csv: c, replaces: c.Replaces}
	if !f.hasVersion {
		f.setVersion(c.Version)
	}
	var pkgs []string
	for _, s := range wants {
		if s.ns == c.Namespace && s.decl != nil && s.decl.InstalledCSV == c.Name {
			pkgs = append(pkgs, s.pkg)
			if s.cat != nil && inst.entry == nil {
				inst.cat = *s.cat
				inst.entry = w.entryOf(*s.cat, s.pkg, strings.Join(s.channels, ""), c.Name)
			}
		}
	}
	slices.Sort(pkgs)
	if pkgs = slices.Compact(pkgs); len(pkgs) == 1 && !c.Annotated && f.pkg == "" {
		inst.facts = f.inPackage(pkgs[0])
	}
	return inst
}

// want is one requested operator: a declared Subscription or ClusterExtension, or the Subscription
// that OLM would generate for a dependency. Comments call it a subscription.
type want struct {
	ns, name  string
	pkg       string
	channels  []string // permitted channels; empty means any
	cat       *catalog.ID
	decl      *declare.Subscription // the declaration; nil for a dependency
	starting  string
	approval  declare.Approval
	hold      string
	held      *Hold      // source of hold in Options.Held; nil: the declaration
	current   *installed // the installed bundle; nil if not installed
	generated bool
}

func (s *want) key() string { return s.ns + "/" + s.name }

// operator returns "namespace/package", the key of the operator in the lock.
func (s *want) operator() string { return s.ns + "/" + s.pkg }

// title returns the name of s for messages. A generated subscription is called a dependency,
// because users do not find it in their files.
func (s *want) title() string {
	if s.generated {
		return "dependency " + s.ns + "/" + s.pkg
	}
	return "subscription " + s.key()
}

// pos returns the position of the first given field that the declaration sets.
func (s *want) pos(fields ...declare.Field) diag.Pos {
	if s.decl == nil {
		return diag.Pos{}
	}
	return s.decl.At(fields...)
}

// requestPos returns the position in the declaration of the requested channel, package or bundle.
func (s *want) requestPos() diag.Pos {
	return s.pos(declare.FieldChannel, declare.FieldPackage, declare.FieldBundle)
}
