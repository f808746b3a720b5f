package resolve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/lockfile"
)

// newLock returns the lock for a state. An unchanged pin keeps the recorded data of its catalog
// unless the catalog is current (see isCatalogCurrent).
func (w *converter) newLock(st *state, prev *lockfile.File) *lockfile.File {
	var pins []lockfile.Pin
	seen := map[string]bool{}
	for _, i := range st.installed {
		wants := st.wantsOf(i)
		if len(wants) == 0 {
			continue
		}
		p := w.newPin(i, wants)
		p.Requires = st.requirementsOf(i)
		if !seen[p.Key()] {
			seen[p.Key()] = true
			pins = append(pins, p)
		}
	}
	pins, leaving := w.pinsAndLeaving(pins, prev)
	declared := &lockfile.File{Namespaces: w.lockedNamespaces(), Leaving: leaving}
	return declared.With(pins)
}

// isCatalogCurrent reports whether the catalog of p was loaded and has the digest recorded in p. If p has no
// digest or another source, the digests cannot be compared. In this case, a loaded catalog is current.
func (w *converter) isCatalogCurrent(p *lockfile.Pin) bool {
	c, read := w.x.Catalog(p.Catalog.ID)
	return read && (p.Catalog.IsAt(c.Source(), c.Digest()) || p.Catalog.Digest == "" || p.Catalog.Source != lockfile.SourceName(c.Source()))
}

// usesCatalogData reports whether the pin of i gets new data from its catalog. This is true if the pin is new
// or changed, if its catalog is current, or if opt.fresh is set. It is false if the catalog was not loaded.
func (w *converter) usesCatalogData(i *installed) bool {
	if _, read := w.x.Catalog(i.cat); !read {
		return false
	}
	return w.opt.fresh || i.pin == nil || i.pin.Bundle != i.bundle || i.pin.Catalog.ID != i.cat || w.isCatalogCurrent(i.pin)
}

// lockedNamespaces returns the declared Namespaces for the lock. It omits the metadata that the API server and
// kubectl add.
func (w *converter) lockedNamespaces() []lockfile.Namespace {
	var out []lockfile.Namespace
	for _, n := range w.decl.Namespaces {
		labels, annotations := maps.Clone(n.Labels), maps.Clone(n.Annotations)
		delete(labels, "kubernetes.io/metadata.name")
		delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		out = append(out, lockfile.Namespace{Name: n.Name, Labels: labels, Annotations: annotations})
	}
	return out
}

// wantsOf returns the subscriptions whose installed bundle is i, declared subscriptions first.
func (st *state) wantsOf(i *installed) []*want {
	var out []*want
	for _, s := range st.wants {
		if s.current == i {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b *want) int { return compareBool(a.generated, b.generated) })
	return out
}

func (w *converter) newPin(i *installed, wants []*want) lockfile.Pin {
	s := wants[0]
	p := lockfile.Pin{Version: i.versionText(), Bundle: i.bundle, Replaces: i.replaces, Skipped: i.skipped, Properties: i.facts.properties}
	if i.pin != nil && i.pin.Bundle == i.bundle {
		p = *i.pin
	}
	p.Namespace = i.ns
	p.Package = cmp.Or(i.pkg(), s.pkg)
	before := p.Catalog.ID
	p.Catalog = w.catalogOf(i, s, p)
	if p.Catalog.ID != before {
		p.ContentDigest = "" // another catalog may have other content for the same name
	}
	p.Channel = w.channelOf(i, s, p)
	var b *catalog.Bundle
	if i.entry != nil {
		b = i.entry.Bundle()
	}
	if w.usesCatalogData(i) {
		p = WithEntry(p, b)
		p.Properties = i.facts.properties
	}
	if b == nil && i.csv != nil && p.Image == "" && p.ContentDigest == "" {
		p.Image = i.csv.Image // the catalog does not have the bundle
	}
	if i.pin == nil || b != nil || w.namespace(i.ns).group != nil || s.decl != nil && (s.decl.WatchAll || s.decl.Watch != nil) {
		p.WatchNamespaces = w.watchOf(i.ns, s, b)
	}
	p.InstallMode = catalog.ModeFor(i.ns, p.WatchNamespaces)
	p.OperatorGroup = ""
	if g := w.namespace(i.ns).group; g != nil {
		p.OperatorGroup = g.Name
	}
	p.Approval, p.Hold, p.Config = string(s.approval), "", nil
	if s.decl != nil {
		p.Hold, p.Config = s.decl.Hold, s.decl.Config
	}
	p.Template = w.templateOf(p, b, s)
	p.RequestedBy = nil
	for _, s := range wants {
		if !s.generated {
			p.RequestedBy = append(p.RequestedBy, s.key())
		}
	}
	p.Declaration = w.declarationDigest(i.ns, wants)
	return p
}

// templateOf returns the input of the templates of a pin. It copies the APIs of the cluster from the previous
// pin, because only the caller of Resolve can compute the current APIs. It returns nil for a bundle without
// templates. b is nil if the catalog lacks the bundle.
func (w *converter) templateOf(p lockfile.Pin, b *catalog.Bundle, s *want) *lockfile.Template {
	if b != nil && !b.Templated() || b == nil && p.Template == nil {
		return nil
	}
	t := lockfile.Template{Release: p.Package}
	if p.Template != nil {
		t = *p.Template
	}
	t.KubernetesVersion = w.opt.KubernetesVersion
	if s.decl != nil {
		t.Release, t.Values = cmp.Or(s.decl.Release, s.decl.Name), s.decl.ChartValues
	}
	return &t
}

// catalogOf returns the catalog data to record for an installed bundle. An unchanged pin keeps its
// recorded data, even if the catalog has a new digest.
func (w *converter) catalogOf(i *installed, s *want, p lockfile.Pin) lockfile.Catalog {
	id := cmp.Or(i.cat, p.Catalog.ID)
	if id == (catalog.ID{}) && s.cat != nil {
		id = *s.cat
	}
	c, read := w.x.Catalog(id)
	switch {
	case p.Catalog.ID == id && (!read || p.Catalog.Source == lockfile.SourceName(c.Source()) && p.Catalog.Digest != ""):
		return p.Catalog
	case !read:
		return lockfile.Catalog{ID: id}
	}
	return lockfile.NewCatalog(id, c.Source(), c.Digest())
}

// catalogFields returns the names of the fields of a pin that come from its catalog, sorted: the bundle, the
// channel and the fields that [WithEntry] sets. If the catalog has changed, Check reports differences in these
// fields as unchecked.
func catalogFields() []string {
	return []string{"bundle", "channel", "commit", "image", "properties", "relatedImages", "version"}
}

// WithEntry returns p with the image, version, properties and related images of b, its bundle in
// the catalog. If b is nil, it returns p unchanged. If b refers to the recorded image by tag, the
// recorded digest is kept.
func WithEntry(p lockfile.Pin, b *catalog.Bundle) lockfile.Pin {
	if b == nil {
		return p
	}
	p.Format, p.Commit = b.Format(), b.Commit()
	p.Version, p.Properties, p.RelatedImages = b.Version().String(), b.Properties(), b.RelatedImages()
	if now := imageref.Split(b.Image()); now.Digest != "" || now.Name() != imageref.Split(p.Image).Name() {
		p.Image = b.Image()
	}
	if p.Image != "" {
		p.ContentDigest = ""
	}
	return p
}

// channelOf returns the channel to record for a pin: the only channel that s permits, or else the only
// permitted channel that has the bundle. If the catalog is not current, it returns the recorded channel if s
// permits it.
func (w *converter) channelOf(i *installed, s *want, p lockfile.Pin) string {
	if len(s.channels) == 1 {
		return s.channels[0]
	}
	keeps := i.entry == nil || !w.usesCatalogData(i)
	if keeps && p.Channel != "" && (len(s.channels) == 0 || slices.Contains(s.channels, p.Channel)) {
		return p.Channel
	}
	if i.entry == nil {
		return ""
	}
	var names []string
	for _, e := range i.entry.Bundle().Entries() {
		if name := e.Channel().Name(); len(s.channels) == 0 || slices.Contains(s.channels, name) {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		return names[0]
	}
	return ""
}

// declarationDigest returns the digest of all declarations that a pin depends on: its subscriptions
// and the OperatorGroup of its namespace.
func (w *environment) declarationDigest(ns string, wants []*want) catalog.Digest {
	var parts []string
	for _, s := range wants {
		if s.decl != nil {
			parts = append(parts, s.key()+"="+string(s.decl.Digest))
		}
	}
	slices.Sort(parts)
	if g := w.namespace(ns).group; g != nil {
		parts = append(parts, "group="+string(g.Digest))
	}
	return catalog.DigestOf([]byte(strings.Join(parts, "\n")))
}

// HasDeclaration reports whether the pin was made from the current declarations of its operator. It compares
// digests and opens no catalog. If the declarations alone do not determine the digest, it returns true.
func HasDeclaration(set *declare.Set, pin lockfile.Pin) bool {
	var parts []string
	for _, s := range set.Subscriptions {
		if slices.Contains(pin.RequestedBy, s.Key()) {
			parts = append(parts, s.Key()+"="+string(s.Digest))
		}
	}
	groups := set.OperatorGroupsIn(pin.Namespace)
	if len(parts) != len(pin.RequestedBy) || len(parts) == 0 || len(groups) > 1 || pin.Declaration == "" {
		return true
	}
	slices.Sort(parts)
	for _, g := range groups {
		parts = append(parts, "group="+string(g.Digest))
	}
	return pin.Declaration == catalog.DigestOf([]byte(strings.Join(parts, "\n")))
}

// remaining returns up to limit bundles on the upgrade path from i, nearest first, without regard
// to dependencies.
func (w *converter) remaining(i *installed, s *want, limit int) []string {
	pkgs, bad := w.packages(s)
	if bad != nil {
		return nil
	}
	walker := *w
	walker.opt.Named, walker.opt.Upgrade, walker.opt.From, walker.opt.AllowDowngrade = nil, true, nil, false
	step := *s
	step.current, step.approval, step.hold = i, declare.Automatic, ""
	var out []string
	seen := map[string]bool{i.bundle: true}
	for len(out) < limit {
		opts := walker.upgradeCandidates(&step, pkgs, preferUpgrade)
		if len(opts.list) == 0 || opts.list[0].entry == nil || seen[opts.list[0].entry.Name()] {
			return out
		}
		e := opts.list[0].entry
		seen[e.Name()] = true
		out = append(out, e.Name())
		step.current = &installed{ns: i.ns, bundle: e.Name(), facts: w.facts.bundle(e.Bundle()), entry: e, cat: i.cat}
	}
	return out
}

// requirementsOf returns the requirements of i with the pins that meet them. If several pins meet a
// requirement, it returns the pin that the lock records for the requirement or, if the lock records none, the
// first pin by key. The recorded pin is preferred so that unrelated operators do not change the result.
func (st *state) requirementsOf(i *installed) []lockfile.Requirement {
	var out []lockfile.Requirement
	for _, r := range i.facts.needs {
		var keys []string
		for _, by := range st.providersFor(i, r) {
			if by != i && len(st.wantsOf(by)) > 0 {
				keys = append(keys, by.ns+"/"+cmp.Or(by.pkg(), by.bundle))
			}
		}
		if len(keys) == 0 {
			continue
		}
		best := slices.Min(keys)
		if i.pin != nil {
			for _, recorded := range i.pin.Requires {
				if recorded.Requirement == r.label && slices.Contains(keys, recorded.Pin) {
					best = recorded.Pin
				}
			}
		}
		out = append(out, lockfile.Requirement{Requirement: r.label, Pin: best})
	}
	return out
}

// dependent is an operator with a requirement that an installed bundle meets.
type dependent struct{ by, requirement string } // by: "namespace/package"

// dependents returns, for each installed bundle, the operators whose requirements it meets. For a bundle that
// is no longer required, it lists only operators that are no longer required either.
func (st *state) dependents() map[*installed][]dependent {
	out, needed := map[*installed][]dependent{}, st.needed()
	for _, by := range st.installed {
		for _, r := range by.facts.needs {
			for _, i := range st.providersFor(by, r) {
				if i != by && (needed[i] || !needed[by]) {
					out[i] = append(out[i], dependent{by.ns + "/" + cmp.Or(by.pkg(), by.bundle), r.label})
				}
			}
		}
	}
	return out
}

// providersFor returns the installed bundles that meet requirement r of the bundle by. If this bundle meets r
// itself, it is the only result. Otherwise, the result is the providers in the same namespace or, if there are
// none, the providers in other namespaces.
func (st *state) providersFor(by *installed, r *requirement) []*installed {
	if r.match(by.facts) {
		return []*installed{by}
	}
	var local, remote []*installed
	for _, i := range st.installed {
		switch {
		case !r.match(i.facts):
		case i.ns == by.ns:
			local = append(local, i)
		default:
			remote = append(remote, i)
		}
	}
	if len(local) > 0 {
		return local
	}
	return remote
}

// listPinChanges returns the pins that change between two states, sorted.
func (w *converter) listPinChanges(before, after *state) []PinChange {
	type place struct{ ns, pkg string }
	at := func(st *state) map[place]*installed {
		out := map[place]*installed{}
		for _, i := range st.installed {
			if wants := st.wantsOf(i); len(wants) > 0 {
				out[place{i.ns, cmp.Or(i.pkg(), wants[0].pkg)}] = i
			}
		}
		return out
	}
	old, now := at(before), at(after)
	dependents := after.dependents()
	var out []PinChange
	for p, i := range now {
		wants := after.wantsOf(i)
		m := PinChange{Namespace: p.ns, Package: p.pkg, To: i.bundle, Why: requestReason(wants, dependents[i])}
		if o := old[p]; o != nil {
			if o.bundle == i.bundle {
				continue
			}
			m.From = o.bundle
		} else {
			m.From = renamedFrom(i, before)
		}
		m.Remaining = w.remaining(i, wants[0], maxRounds)
		out = append(out, m)
	}
	for p, o := range old {
		if now[p] == nil {
			out = append(out, PinChange{Namespace: p.ns, Package: p.pkg, From: o.bundle, Why: "no longer requested"})
		}
	}
	sortPinChanges(out)
	return out
}

// withDropped completes the list ms of changes. For each pin of prev without a pin in now, it adds a change,
// unless the list has one. The list shows operators in Options.Unpin as new. withDropped sets their previous
// bundle, or removes the change if the bundle is the same.
func withDropped(ms []PinChange, prev, now *lockfile.File) []PinChange {
	if prev == nil {
		return ms
	}
	ms = slices.DeleteFunc(ms, func(m PinChange) bool {
		p, had := prev.Pin(m.Namespace, m.Package)
		return had && m.From == "" && m.To == p.Bundle
	})
	for i, m := range ms {
		if p, had := prev.Pin(m.Namespace, m.Package); had && m.From == "" {
			ms[i].From = p.Bundle
		}
	}
	for _, p := range prev.Pins {
		_, still := now.Pin(p.Namespace, p.Package)
		listed := slices.ContainsFunc(ms, func(m PinChange) bool { return m.Namespace == p.Namespace && m.Package == p.Package })
		if !still && !listed {
			why := "no longer requested"
			if l, leaves := now.LeavingOperator(p.Key()); leaves && l.ReplacedBy != "" {
				why = "replaced by " + l.ReplacedBy
			}
			ms = append(ms, PinChange{Namespace: p.Namespace, Package: p.Package, From: p.Bundle, Why: why})
		}
	}
	sortPinChanges(ms)
	return ms
}

func sortPinChanges(ms []PinChange) {
	slices.SortFunc(ms, func(a, b PinChange) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Package, b.Package))
	})
}

func renamedFrom(i *installed, before *state) string {
	for _, o := range before.installed {
		if o.ns == i.ns && o.bundle == i.replaces {
			return o.bundle
		}
	}
	return ""
}

func requestReason(wants []*want, dependents []dependent) string {
	for _, s := range wants {
		if !s.generated {
			return "subscription " + s.key()
		}
	}
	if len(dependents) > 0 {
		return fmt.Sprintf("required by %s: %s", dependents[0].by, dependents[0].requirement)
	}
	return "no longer required"
}
