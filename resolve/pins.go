package resolve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
)

// lock writes the state down. What a catalog says is written as it says it now
// where the lock names the catalog as it is now; else pins that did not move
// keep what prev has.
func (w *world) lock(st *state, prev *lockfile.File) *lockfile.File {
	asked := st.requests()
	w.freshen(st)
	var pins []lockfile.Pin
	seen := map[string]bool{}
	for _, i := range st.have {
		wants := st.wantsOf(i)
		if len(wants) == 0 {
			continue
		}
		p := w.pin(i, wants, asked[i])
		if !seen[p.Key()] {
			seen[p.Key()] = true
			pins = append(pins, p)
		}
	}
	pins, leaving := w.leaving(pins, prev)
	declared := &lockfile.File{Namespaces: w.namespaces(), Leaving: leaving}
	return declared.With(w.lockedCatalogs(pins, leaving, prev), pins)
}

// standing returns the catalogs that are what prev says, and those of which it
// says nothing that could still be read.
func standing(x *catalog.Index, prev *lockfile.File) map[catalog.ID]bool {
	out := map[catalog.ID]bool{}
	for _, c := range x.Catalogs() {
		out[c.ID()] = true
		if prev == nil {
			continue
		}
		if old, ok := prev.Catalog(c.ID()); ok && old.Source == c.Source() && old.Digest != "" && imageref.DigestIn(c.Source()) == "" {
			out[c.ID()] = old.Digest == c.Digest()
		}
	}
	return out
}

// freshen adds the catalogs that a pin now comes from or that its way is looked
// for in anew, with another result.
func (w *world) freshen(st *state) {
	for _, i := range st.have {
		wants := st.wantsOf(i)
		if stands, read := w.current[i.cat]; stands || !read || len(wants) == 0 {
			continue
		}
		moved := w.opt.fresh || i.pin == nil || i.pin.Bundle != i.bundle || i.pin.Catalog != i.cat
		asks := !moved && (w.opt.Upgrade || w.named(wants[0]) != nil || w.declaration(i.ns, wants) != i.pin.Declaration)
		w.current[i.cat] = moved || asks && !slices.Equal(i.pin.RemainingHops, w.remaining(i, wants[0], maxRounds))
	}
}

// namespaces returns the declared Namespaces as they are to be in a cluster.
// What is left out the API server and kubectl put there.
func (w *world) namespaces() []lockfile.Namespace {
	var out []lockfile.Namespace
	for _, n := range w.decl.Namespaces {
		labels, annotations := maps.Clone(n.Labels), maps.Clone(n.Annotations)
		delete(labels, "kubernetes.io/metadata.name")
		delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		out = append(out, lockfile.Namespace{Name: n.Name, Labels: labels, Annotations: annotations})
	}
	return out
}

// wantsOf returns the subscriptions that i answers, declared ones first.
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

func (w *world) pin(i *installed, wants []*want, asked []lockfile.Request) lockfile.Pin {
	s := wants[0]
	p := lockfile.Pin{Version: i.versionText(), Bundle: i.bundle, Replaces: i.replaces, Skipped: i.skipped, Properties: i.facts.properties}
	if i.pin != nil && i.pin.Bundle == i.bundle {
		p = *i.pin
	}
	p.Namespace, p.Subscription, p.Generated = i.ns, s.name, s.generated
	p.Package = cmp.Or(i.pkg(), s.pkg)
	p.Catalog = cmp.Or(i.cat, p.Catalog)
	if p.Catalog == (catalog.ID{}) && s.cat != nil {
		p.Catalog = *s.cat
	}
	p.Channel = w.channelOf(i, s, p)
	if s.generated {
		p.Subscription = generatedName(p.Package, p.Channel, p.Catalog)
	}
	var b *catalog.Bundle
	if i.entry != nil {
		b = i.entry.Bundle()
	}
	if w.current[p.Catalog] {
		p = told(p, b)
		p.Properties, p.RemainingHops = i.facts.properties, w.remaining(i, s, maxRounds)
	}
	if i.pin == nil || b != nil || w.space(i.ns).group != nil || s.decl != nil && (s.decl.WatchAll || s.decl.Watch != nil) {
		p.WatchNamespaces = w.watchOf(i.ns, s, b)
	}
	p.InstallMode = catalog.ModeFor(i.ns, p.WatchNamespaces)
	p.OperatorGroup = ""
	if g := w.space(i.ns).group; g != nil {
		p.OperatorGroup = g.Name
	}
	p.Approval, p.Hold, p.Config = string(s.approval), "", nil
	if s.decl != nil {
		p.Hold, p.Config = s.decl.Hold, s.decl.Config
	}
	for _, s := range wants {
		if !s.generated {
			asked = append(asked, lockfile.Request{Subscription: s.key()})
		}
	}
	p.RequestedBy = asked
	p.Declaration = w.declaration(i.ns, wants)
	return p
}

// told returns p with what its catalog says of the bundle, where that holds it,
// but for properties. The digest of an image that the catalog names by a tag
// stays.
func told(p lockfile.Pin, b *catalog.Bundle) lockfile.Pin {
	if b == nil {
		return p
	}
	p.Version, p.RelatedImages, p.Lifecycle = b.Version().String(), b.RelatedImages(), b.Lifecycle()
	if now := imageref.Split(b.Image()); now.Digest != "" || now.Name() != imageref.Split(p.Image).Name() {
		p.Image = b.Image()
	}
	if p.Image != "" {
		p.ContentDigest = ""
	}
	return p
}

// channelOf returns the channel to record: the one that was asked for, else the
// only one that holds the bundle. What a pin has of a catalog that is not current
// it keeps as long as the subscription permits it.
func (w *world) channelOf(i *installed, s *want, p lockfile.Pin) string {
	if len(s.channels) == 1 {
		return s.channels[0]
	}
	keeps := i.entry == nil || !w.current[p.Catalog]
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

// declaration is the digest of what the pin answers: its subscriptions and the
// OperatorGroup of its namespace.
func (w *world) declaration(ns string, wants []*want) catalog.Digest {
	var parts []string
	for _, s := range wants {
		if s.decl != nil {
			parts = append(parts, s.key()+"="+string(s.decl.Digest))
		}
	}
	slices.Sort(parts)
	if g := w.space(ns).group; g != nil {
		parts = append(parts, "group="+string(g.Digest))
	}
	return catalog.DigestOf([]byte(strings.Join(parts, "\n")))
}

// remaining returns the bundles between i and the end of the way that upgrades
// would take, nearest first and most at the most, dependencies aside.
func (w *world) remaining(i *installed, s *want, most int) []string {
	pkgs, bad := w.packages(s)
	if bad != nil {
		return nil
	}
	walker := *w
	walker.opt.Named, walker.opt.Upgrade, walker.opt.From, walker.opt.AllowDowngrade = nil, true, nil, false
	step := *s
	step.current, step.approval, step.hold = i, subscription.Automatic, ""
	var out []string
	seen := map[string]bool{i.bundle: true}
	for len(out) < most {
		opts := walker.upgrades(&step, pkgs, moveIt)
		if len(opts.of) == 0 || opts.of[0].entry == nil || seen[opts.of[0].entry.Name()] {
			return out
		}
		e := opts.of[0].entry
		seen[e.Name()] = true
		out = append(out, e.Name())
		step.current = &installed{ns: i.ns, bundle: e.Name(), facts: w.read.bundle(e.Bundle()), entry: e, cat: i.cat}
	}
	return out
}

// lockedCatalogs returns the catalogs that the pins came from: the current ones
// as they are, the rest as prev has them.
func (w *world) lockedCatalogs(pins []lockfile.Pin, leaving []lockfile.Leaving, prev *lockfile.File) []lockfile.Catalog {
	used := map[catalog.ID]bool{}
	for _, p := range pins {
		used[p.Catalog] = true
	}
	for _, l := range leaving {
		used[l.Catalog] = true
	}
	var out []lockfile.Catalog
	for id := range used {
		c, read := w.x.Catalog(id)
		old, known := lockfile.Catalog{}, false
		if prev != nil {
			old, known = prev.Catalog(id)
		}
		switch {
		case w.current[id] && known && old.Source == c.Source() && old.Digest == c.Digest():
			out = append(out, old) // with who signed it
		case w.current[id] || read && !known:
			out = append(out, lockfile.Catalog{ID: id, Source: c.Source(), Digest: c.Digest()})
		case known:
			out = append(out, old)
		}
	}
	return out
}

// requests returns, for each installed bundle, which others need it and why. What
// is needed does not ask for what is left over.
func (st *state) requests() map[*installed][]lockfile.Request {
	out, needed := map[*installed][]lockfile.Request{}, st.needed()
	for _, by := range st.have {
		for _, r := range by.facts.needs {
			for _, i := range st.meeting(by, r) {
				if i != by && (needed[i] || !needed[by]) {
					out[i] = append(out[i], lockfile.Request{Pin: by.ns + "/" + cmp.Or(by.pkg(), by.bundle), Requirement: r.label})
				}
			}
		}
	}
	return out
}

// meeting returns what meets a requirement of by: itself, else what is in its
// namespace, else what is elsewhere.
func (st *state) meeting(by *installed, r *requirement) []*installed {
	if r.match(by.facts) {
		return []*installed{by}
	}
	var here, away []*installed
	for _, i := range st.have {
		switch {
		case !r.match(i.facts):
		case i.ns == by.ns:
			here = append(here, i)
		default:
			away = append(away, i)
		}
	}
	if len(here) > 0 {
		return here
	}
	return away
}

// moves returns what a round changed.
func (w *world) moves(before, after *state) []Move {
	type place struct{ ns, pkg string }
	at := func(st *state) map[place]*installed {
		out := map[place]*installed{}
		for _, i := range st.have {
			if wants := st.wantsOf(i); len(wants) > 0 {
				out[place{i.ns, cmp.Or(i.pkg(), wants[0].pkg)}] = i
			}
		}
		return out
	}
	old, now := at(before), at(after)
	asked := after.requests()
	var out []Move
	for p, i := range now {
		m := Move{Namespace: p.ns, Package: p.pkg, To: i.bundle, Why: why(after.wantsOf(i), asked[i])}
		if o := old[p]; o != nil {
			if o.bundle == i.bundle {
				continue
			}
			m.From = o.bundle
		} else {
			m.From = renamedFrom(i, before)
		}
		out = append(out, m)
	}
	for p, o := range old {
		if now[p] == nil {
			out = append(out, Move{Namespace: p.ns, Package: p.pkg, From: o.bundle, Why: "nothing asks for it any more"})
		}
	}
	sortMoves(out)
	return out
}

// withDropped adds the pins that are in prev and no more in now, and says of what
// was unpinned where it was.
func withDropped(ms []Move, prev, now *lockfile.File) []Move {
	if prev == nil {
		return ms
	}
	ms = slices.DeleteFunc(ms, func(m Move) bool {
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
		told := slices.ContainsFunc(ms, func(m Move) bool { return m.Namespace == p.Namespace && m.Package == p.Package })
		if !still && !told {
			why := "nothing asks for it any more"
			if l, leaves := now.Leaves(p.Key()); leaves {
				why = "followed by " + l.FollowedBy
			}
			ms = append(ms, Move{Namespace: p.Namespace, Package: p.Package, From: p.Bundle, Why: why})
		}
	}
	sortMoves(ms)
	return ms
}

func sortMoves(ms []Move) {
	slices.SortFunc(ms, func(a, b Move) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Package, b.Package))
	})
}

func renamedFrom(i *installed, before *state) string {
	for _, o := range before.have {
		if o.ns == i.ns && o.bundle == i.replaces {
			return o.bundle
		}
	}
	return ""
}

func why(wants []*want, asked []lockfile.Request) string {
	for _, s := range wants {
		if !s.generated {
			return "subscription " + s.key()
		}
	}
	if len(asked) > 0 {
		return fmt.Sprintf("required by %s: %s", asked[0].Pin, asked[0].Requirement)
	}
	return "nothing requires it any more"
}
