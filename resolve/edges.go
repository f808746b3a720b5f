package resolve

import (
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
)

// upgradeCandidates returns the candidates for an upgrade of the installed bundle, including the installed
// bundle if the declaration allows it. It implements Rule 1 and Rule 5 of the package comment.
func (w *chooser) upgradeCandidates(s *want, pkgs []*catalog.Package, how preference) options {
	allowed, bad := s.versionFilter()
	if bad != nil {
		return options{fault: bad}
	}
	cur := s.current
	stays := s.allowsInstalled(pkgs, allowed)
	var out options
	target := w.targetOf(s)
	// The bundles on the path to an allowed target may be outside of the allowed versions.
	isTowardsTarget := w.opt.Hops < 0 && target != nil && target.Version != "" && !s.disallows(target, pkgs)
	for _, e := range w.upgradeEntries(s, pkgs) {
		v := e.Bundle().Version()
		switch {
		case !allowed(e.Name(), v) && !isTowardsTarget:
			continue
		case !w.opt.AllowDowngrade && cur.facts.hasVersion && cur.facts.isAbove(e.Bundle()):
			out.downgrades = append(out.downgrades, e)
			continue
		default:
			out.list = append(out.list, option{entry: e})
		}
	}
	here := option{current: cur}
	switch {
	case target != nil && target.Version != "" && !cur.hasVersion(target.Version):
		if bad := w.unknownTarget(s, pkgs, target); bad != nil {
			return options{fault: bad}
		}
		if s.disallows(target, pkgs) {
			return options{fault: &fault{pos: s.pos(declare.FieldRange), msg: fmt.Sprintf("version %s is not %s, which the declaration allows", target.Version, s.describeAllowed())}}
		}
		if len(out.list) == 0 {
			return options{fault: &fault{pos: target.posOr(s.pos(declare.FieldPackage, declare.FieldBundle)), msg: fmt.Sprintf("no upgrade edge from %s to version %s of package %s%s",
				cur.bundle, target.Version, s.pkg, s.inChannels())}}
		}
	case !stays && len(out.downgrades) > 0 && s.decl != nil && s.decl.Bundle != "":
		return options{fault: w.downgradeFault(s, out.downgrades[0])}
	case !stays && len(out.list) == 0:
		return options{fault: w.noSuccessor(s, pkgs, allowed)}
	case !stays:
	case how == preferInstalled:
		out.list = slices.Insert(out.list, 0, here)
	default:
		out.list = append(out.list, here)
	}
	return out
}

// noSuccessor returns the fault that the declaration of s does not allow the installed version, and that no
// allowed version exists or no upgrade edge leads to one.
func (w *chooser) noSuccessor(s *want, pkgs []*catalog.Package, allowed func(string, catalog.Version) bool) *fault {
	installed := s.current.versionText()
	if !slices.ContainsFunc(s.entriesOf(pkgs, (*catalog.Channel).Entries), func(e *catalog.Entry) bool { return allowed(e.Name(), e.Bundle().Version()) }) {
		as := *s
		as.starting = ""
		none := w.noVersion(&as, pkgs, nil)
		none.msg += "; " + installed + " is installed"
		return none
	}
	return &fault{pos: s.pos(declare.FieldRange), msg: fmt.Sprintf("%s %s is installed, not %s, and no upgrade edge leads to it", s.pkg, installed, s.describeAllowed())}
}

// reinstallCandidates returns the candidates for a new installation that are not lower than the
// installed bundle. The installed bundle comes last.
func (w *chooser) reinstallCandidates(s *want, pkgs []*catalog.Package) options {
	as := *s
	as.starting = ""
	out := w.installCandidates(&as, pkgs)
	if out.fault != nil {
		return out
	}
	out.list = slices.DeleteFunc(out.list, func(o option) bool {
		lower := s.current.facts.hasVersion && s.current.facts.isAbove(o.entry.Bundle())
		if lower && !w.opt.AllowDowngrade {
			out.downgrades = append(out.downgrades, o.entry)
		}
		return lower && !w.opt.AllowDowngrade || o.entry.Name() == s.current.bundle
	})
	allowed, _ := s.versionFilter()
	switch {
	case s.allowsInstalled(pkgs, allowed):
		out.list = append(out.list, option{current: s.current})
	case len(out.list) == 0:
		out.fault = w.downgradeFault(s, out.downgrades[0])
	}
	return out
}

// allowsInstalled reports whether the declaration of s allows the installed bundle.
func (s *want) allowsInstalled(pkgs []*catalog.Package, allowed func(string, catalog.Version) bool) bool {
	f := s.current.facts
	return (allowed(s.current.bundle, f.version) || !f.hasVersion || s.decl == nil) && !requestsOtherBundle(s, pkgs)
}

func (w *chooser) downgradeFault(s *want, to *catalog.Entry) *fault {
	return &fault{pos: s.pos(declare.FieldBundle, declare.FieldRange, declare.FieldPackage), msg: fmt.Sprintf("%s %s is installed, but the lower version %s is requested: downgrades are not allowed",
		s.pkg, s.current.versionText(), to.Bundle().Version())}
}

// requestsOtherBundle reports whether the declaration of s names a bundle that is not the installed bundle.
func requestsOtherBundle(s *want, pkgs []*catalog.Package) bool {
	if s.decl == nil || s.decl.Bundle == "" {
		return false
	}
	return !slices.ContainsFunc(pkgs, func(p *catalog.Package) bool {
		_, same := p.Bundle(s.current.bundle)
		return same
	})
}

// upgradeEntries returns the channel entries that s can be upgraded to, most preferred first. In a promotion,
// these are the entries of the bundle in the upstream lock. With a target version, the only result is the first
// step of the shortest path to the target.
func (w *chooser) upgradeEntries(s *want, pkgs []*catalog.Package) []*catalog.Entry {
	cur := s.current
	if pin := w.pinToReach(s); pin != nil {
		return s.pinnedEntries(pkgs, pin)
	}
	of, anywhere := (*catalog.Channel).Walk, s.decl != nil && (s.decl.Bundle != "" || s.decl.Policy == declare.SelfCertified)
	if anywhere || s.isV1() {
		of = (*catalog.Channel).Entries
	}
	es := s.entriesOf(pkgs, of)
	if !anywhere {
		es = slices.DeleteFunc(es, func(e *catalog.Entry) bool { return !cur.hasEdgeTo(e) })
	}
	if !s.isV1() {
		es = withOtherChannels(s, es)
	}
	if t := w.targetOf(s); t != nil && t.Version != "" {
		es = w.firstStep(s, pkgs, t.Version)
	}
	return w.rank(s, es)
}

// notSuccessorReason returns the reason why atom a cannot replace the installed bundle of s, an undeclared
// subscription. It returns "" if a can. It implements Rule 5 and Rule 12 of the package comment.
func (w *chooser) notSuccessorReason(s *want, a *atom) string {
	i := s.current
	lower := i.facts.hasVersion && i.facts.compare(a.facts.version, a.facts.release) > 0
	switch {
	case a.entry.Name() == i.bundle && i.facts.isEquivalent(a.facts):
		return ""
	case s.hold != "":
		return "is not " + i.bundle + ", which is pinned and held: " + s.hold
	case lower && !w.opt.AllowDowngrade:
		return "is lower than " + i.bundle + ", which is pinned; downgrades are not allowed"
	case lower || i.undeclared || i.hasEdgeTo(a.entry), w.pinToReach(s) != nil:
		return ""
	}
	return "has no upgrade edge from " + i.bundle + ", which is pinned"
}

// hasEdgeTo reports whether there is an upgrade edge from i to e.
func (i *installed) hasEdgeTo(e *catalog.Entry) bool {
	var v *catalog.Version
	if i.facts.hasVersion {
		v = &i.facts.version
	}
	return e.EdgeFrom(i.bundle, v) != catalog.NoEdge
}

// withOtherChannels adds, after each entry, the entries of the same bundle in other permitted channels. The
// subscription accepts each of these entries.
func withOtherChannels(s *want, es []*catalog.Entry) []*catalog.Entry {
	if len(s.channels) == 1 {
		return es
	}
	var out []*catalog.Entry
	seen := map[*catalog.Entry]bool{}
	add := func(e *catalog.Entry) {
		if !seen[e] {
			seen[e] = true
			out = append(out, e)
		}
	}
	for _, e := range es {
		add(e)
		for _, ch := range s.channelsOf(e.Channel().Package()) {
			if twin, ok := ch.Entry(e.Name()); ok {
				add(twin)
			}
		}
	}
	return out
}

// unknownTarget returns a fault if the package does not have the target version, otherwise nil.
func (w *chooser) unknownTarget(s *want, pkgs []*catalog.Package, t *Target) *fault {
	if slices.ContainsFunc(s.entriesOf(pkgs, (*catalog.Channel).Entries), func(e *catalog.Entry) bool { return isVersion(e, t.Version) }) {
		return nil
	}
	return w.noVersion(s, pkgs, t)
}

// disallows reports whether the declaration of s allows no bundle of the target version.
func (s *want) disallows(t *Target, pkgs []*catalog.Package) bool {
	allowed, bad := s.versionFilter()
	return bad == nil && !slices.ContainsFunc(s.entriesOf(pkgs, (*catalog.Channel).Entries), func(e *catalog.Entry) bool {
		return isVersion(e, t.Version) && allowed(e.Name(), e.Bundle().Version())
	})
}

// hasVersion reports whether i has the given version or bundle name.
func (i *installed) hasVersion(version string) bool {
	return i.bundle == version || i.facts.hasVersion && i.facts.version.String() == version
}

func isVersion(e *catalog.Entry, version string) bool {
	return e.Name() == version || e.Bundle().Version().String() == version
}

// firstStep returns the first step of the shortest upgrade path to a version. It returns nil if the
// version is installed, or if there is no path. If downgrades are allowed, a lower version needs no
// path.
func (w *chooser) firstStep(s *want, pkgs []*catalog.Package, version string) []*catalog.Entry {
	cur := s.current
	if cur.hasVersion(version) {
		return nil
	}
	if way := shortestPath(s, pkgs, cur, func(e *catalog.Entry) bool { return isVersion(e, version) }); len(way) > 0 {
		return way[:1]
	}
	if !w.opt.AllowDowngrade || !cur.facts.hasVersion {
		return nil
	}
	return slices.DeleteFunc(s.entriesOf(pkgs, (*catalog.Channel).Entries), func(e *catalog.Entry) bool {
		return !isVersion(e, version) || !cur.facts.isAbove(e.Bundle())
	})
}

// shortestPath returns the entries on the shortest upgrade path from cur to an entry for which end returns
// true. It returns nil if there is none. Of several shortest paths, it returns the first in the order of the
// channels.
func shortestPath(s *want, pkgs []*catalog.Package, cur *installed, end func(*catalog.Entry) bool) []*catalog.Entry {
	type node struct {
		at   *installed
		e    *catalog.Entry
		from int
	}
	all := s.entriesOf(pkgs, (*catalog.Channel).Walk)
	queue := []node{{at: cur, from: -1}}
	seen := map[string]bool{cur.bundle: true}
	for i := 0; i < len(queue); i++ {
		for _, e := range all {
			if seen[e.Name()] || !queue[i].at.hasEdgeTo(e) {
				continue
			}
			seen[e.Name()] = true
			v := e.Bundle().Version()
			queue = append(queue, node{at: &installed{bundle: e.Name(), facts: &facts{version: v, hasVersion: true}}, e: e, from: i})
			if !end(e) {
				continue
			}
			var way []*catalog.Entry
			for n := len(queue) - 1; n > 0; n = queue[n].from {
				way = append(way, queue[n].e)
			}
			slices.Reverse(way)
			return way
		}
	}
	return nil
}
