package resolve

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
)

// installed is one bundle that is there before a round.
type installed struct {
	ns, bundle string
	facts      *facts
	entry      *catalog.Entry // where it came from; nil where no catalog holds it any more
	cat        catalog.ID
	pin        *lockfile.Pin // that records it; nil: adopted, or installed by this run
	csv        *subscription.ClusterServiceVersion
	free       bool   // nothing asks for it, and it must stay
	replaces   string // what it took the place of
	skipped    []string
	made       bool // by this run
	spare      bool // nothing asks for it any more; it goes unless something needs it. Rule 12.
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

// state is what holds between two rounds. A round makes a new one.
type state struct {
	wants []*want      // by namespace, then name
	have  []*installed // by namespace, then bundle
}

// needed returns what is declared, or stays, and what that needs, directly or not;
// of two that provide the same API one is enough.
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
	for _, i := range st.have {
		if i.free {
			add(i)
		}
	}
	for len(todo) > 0 {
		by := todo[0]
		todo = todo[1:]
		for _, r := range by.facts.needs {
			of := st.meeting(by, r)
			for _, i := range of {
				if !slices.ContainsFunc(of, func(j *installed) bool { return j != i && out[j] && j.rivals(i) }) {
					add(i)
				}
			}
		}
	}
	return out
}

// rivals reports whether i and j provide the same API.
func (i *installed) rivals(j *installed) bool {
	return slices.ContainsFunc(i.facts.apis, func(g catalog.GVK) bool { return slices.Contains(j.facts.apis, g) })
}

// pruned returns st without what nothing needs any more.
func (st *state) pruned() *state {
	needed := st.needed()
	next := *st
	next.wants = slices.DeleteFunc(slices.Clone(st.wants), func(s *want) bool { return s.generated && !needed[s.current] })
	return &next
}

// pinned returns what is pinned of packages that nobody declares.
func (st *state) pinned() map[pkgKey]*want {
	out := map[pkgKey]*want{}
	for _, i := range st.have {
		if i.spare {
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
	slices.SortStableFunc(st.have, func(a, b *installed) int {
		return cmp.Or(strings.Compare(a.ns, b.ns), strings.Compare(a.bundle, b.bundle))
	})
}

// stateBefore makes the state before the first round (rule 8): for each namespace
// and package the previous lock's pin, else what the declarations say of a cluster.
func (w *world) stateBefore(prev *lockfile.File) *state {
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
	locked := w.fromLock(st, prev)
	w.fromCluster(st, locked)
	for _, s := range st.wants {
		for _, h := range w.opt.Held {
			if s.hold == "" && h.Namespace == s.ns && h.Package == s.pkg {
				s.hold = h.Reason
			}
		}
	}
	st.sort()
	return st
}

// defaultChannel returns the default channel of the package of s, as it is now;
// nil where it is not one package that s asks for.
func (w *world) defaultChannel(s *want) []string {
	pkgs, bad := w.packages(s)
	if bad != nil {
		return nil
	}
	return []string{pkgs[0].DefaultChannel()}
}

// fromLock takes over the pins. It returns the pins by namespace and package.
// Rule 8.
func (w *world) fromLock(st *state, prev *lockfile.File) map[string]*installed {
	locked := map[string]*installed{}
	for _, p := range w.standingPins(prev) {
		if slices.ContainsFunc(w.opt.Unpin, func(t Target) bool { return t.key() == p.Key() }) {
			continue
		}
		inst := w.fromPin(p, st.wants)
		if w.followers[p.Key()] != nil {
			locked[p.Key()] = inst
			continue
		}
		asked := false
		for _, s := range st.wants {
			if s.ns != p.Namespace || s.current != nil {
				continue
			}
			if s.pkg == p.Package || renamed(s, p, prev) {
				s.current, asked = inst, true
				w.rehome(inst, s)
			}
		}
		if !asked && p.Generated() {
			st.wants = append(st.wants, generatedWant(p, inst))
			asked = true
		}
		locked[p.Key()] = inst
		inst.spare = !asked
		st.have = append(st.have, inst)
	}
	return locked
}

// rehome follows a subscription to another catalog that holds the same bundle.
func (w *world) rehome(i *installed, s *want) {
	if s.cat == nil || *s.cat == i.cat {
		return
	}
	if e := w.entryOf(*s.cat, s.pkg, i.pin.Channel, i.bundle); e != nil && (e.Bundle().Image() == i.pin.Image || i.entry == nil) {
		i.entry, i.cat = e, *s.cat
	}
}

// renamed reports whether p was pinned for s when s asked for another package.
func renamed(s *want, p *lockfile.Pin, prev *lockfile.File) bool {
	if s.name != p.Subscription() || p.Generated() {
		return false
	}
	_, has := prev.Pin(s.ns, s.pkg)
	return !has
}

// generatedWant is the subscription of a dependency that the lock records.
func generatedWant(p *lockfile.Pin, inst *installed) *want {
	id := p.Catalog.ID
	s := &want{
		ns: p.Namespace, name: p.Subscription(), pkg: p.Package, cat: &id, approval: subscription.Automatic,
		current: inst, generated: true,
	}
	if p.Channel != "" {
		s.channels = []string{p.Channel}
	}
	return s
}

// fromPin reads a pin. What its catalog says of the bundle counts where that is
// what the lock names, but what was taken over from a cluster keeps what the
// cluster says.
func (w *world) fromPin(p *lockfile.Pin, wants []*want) *installed {
	e := w.entryOf(p.Catalog.ID, p.Package, p.Channel, p.Bundle)
	inst := &installed{ns: p.Namespace, bundle: p.Bundle, cat: p.Catalog.ID, pin: p, replaces: p.Replaces, entry: e}
	properties, version := p.Properties, p.Version
	if e != nil && w.isCurrent(p) {
		if seen := w.seen(p, wants); seen != nil && samePin(lockfile.Pin{Properties: seen.properties}, lockfile.Pin{Properties: properties}) {
			inst.facts = seen
			return inst
		}
		if e.Bundle().Unusable() == "" {
			inst.facts = w.read.bundle(e.Bundle())
			return inst
		}
		properties, version = e.Bundle().Properties(), e.Bundle().Version().String()
	}
	inst.facts = w.read.bare(properties)
	if inst.facts.pkg == "" {
		inst.facts.pkg = p.Package
	}
	if !inst.facts.hasVersion {
		inst.facts.setVersion(version)
	}
	return inst
}

// seen returns what a cluster says of what p pins, nil where it says nothing.
func (w *world) seen(p *lockfile.Pin, wants []*want) *facts {
	i := slices.IndexFunc(w.decl.CSVs, func(c subscription.ClusterServiceVersion) bool {
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

// samePin reports whether the lock would say the same of both.
func samePin(a, b lockfile.Pin) bool { return a.Checksum() == b.Checksum() }

// entryOf finds a bundle in its catalog, in the channel if that is known.
func (w *world) entryOf(id catalog.ID, pkg, channel, bundle string) *catalog.Entry {
	c, ok := w.x.Catalog(id)
	if !ok {
		return nil
	}
	p, ok := c.Package(pkg)
	if !ok {
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

// fromCluster takes over ClusterServiceVersions where the lock is silent. Rule 8.
func (w *world) fromCluster(st *state, locked map[string]*installed) {
	taken := map[string]bool{} // names of CSVs that belong to a subscription, by "ns/name"
	byName := map[string]*subscription.ClusterServiceVersion{}
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
		w.own(c, byName, taken)
		if s.current != nil {
			w.differs(s)
			taken[key] = true
			continue
		}
		if c == nil {
			continue
		}
		taken[key] = true
		if adopted[key] == nil {
			adopted[key] = w.fromCSV(c, st.wants)
			st.have = append(st.have, adopted[key])
		}
		s.current = adopted[key]
	}
	for _, inst := range locked { // what the lock has moved on from is gone
		taken[inst.ns+"/"+inst.bundle] = true
		taken[inst.ns+"/"+inst.replaces] = true
	}
	for i := range w.decl.CSVs {
		c := &w.decl.CSVs[i]
		if c.Copied || taken[c.Namespace+"/"+c.Name] || !w.resolves(st, c.Namespace) {
			continue
		}
		inst := w.fromCSV(c, st.wants)
		inst.free = true
		st.have = append(st.have, inst)
	}
}

// own marks the ClusterServiceVersions that c has replaced: they belong to the
// same subscription, and only c counts.
func (w *world) own(c *subscription.ClusterServiceVersion, byName map[string]*subscription.ClusterServiceVersion, taken map[string]bool) {
	for c != nil && c.Replaces != "" {
		key := c.Namespace + "/" + c.Replaces
		if taken[key] {
			return
		}
		taken[key] = true
		c = byName[key]
	}
}

func (w *world) differs(s *want) {
	if s.current.pin == nil || s.current.bundle == s.decl.InstalledCSV {
		return
	}
	w.warn(diag.Warning{Pos: s.pos(subscription.FieldInstalled), Code: "state-differs", Subject: s.operator(), Msg: "subscription " + s.key() + ": status says that " +
		s.decl.InstalledCSV + " is installed, the lock says " + s.current.bundle + "; the lock counts"})
}

// resolves reports whether anything is asked for in the namespace.
func (w *world) resolves(st *state, ns string) bool {
	return slices.ContainsFunc(st.wants, func(s *want) bool { return s.ns == ns })
}

// fromCSV reads a ClusterServiceVersion. One without the properties annotation
// is of the package that the subscriptions it is installed for agree on.
func (w *world) fromCSV(c *subscription.ClusterServiceVersion, wants []*want) *installed {
	f := w.read.bare(c.Properties)
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
