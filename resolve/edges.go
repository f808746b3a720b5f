package resolve

import (
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/subscription"
)

// upgrades returns what can take the place of what is installed. Rule 1. Rule 5.
func (w *world) upgrades(s *want, pkgs []*catalog.Package, how manner) options {
	allowed, bad := s.allows()
	if bad != nil {
		return options{fault: bad}
	}
	cur := s.current
	stays := s.mayStay(pkgs, allowed)
	var out options
	for _, e := range w.edges(s, pkgs) {
		v := e.Bundle().Version()
		switch {
		case !allowed(e.Name(), v):
			continue
		case !w.opt.AllowDowngrade && cur.facts.hasVersion && cur.facts.isAbove(e.Bundle()):
			out.down = append(out.down, e)
			continue
		default:
			out.of = append(out.of, option{entry: e})
		}
	}
	here := option{current: cur}
	switch target := w.named(s); {
	case target != nil && target.Version != "" && !cur.is(target.Version):
		if bad := w.unknownTarget(s, pkgs, target); bad != nil {
			return options{fault: bad}
		}
		if len(out.of) == 0 {
			return options{fault: &fault{pos: target.or(s.pos(subscription.FieldPackage, subscription.FieldBundle)), msg: fmt.Sprintf("no edge leads from %s to version %s of package %s%s",
				cur.bundle, target.Version, s.pkg, s.inChannels())}}
		}
	case !stays && len(out.down) > 0 && s.decl != nil && s.decl.Bundle != "":
		return options{fault: w.goesDown(s, out.down[0])}
	case !stays && len(out.of) == 0:
		return options{fault: &fault{pos: s.pos(subscription.FieldRange), msg: fmt.Sprintf("%s %s is installed, which is not %s, and no upgrade leads into it",
			s.pkg, cur.versionText(), s.allowed())}}
	case !stays:
	case how == keepIt:
		out.of = slices.Insert(out.of, 0, here)
	default:
		out.of = append(out.of, here)
	}
	return out
}

// anew returns what can take the place of what is installed as if nothing were,
// and what is installed.
func (w *world) anew(s *want, pkgs []*catalog.Package) options {
	as := *s
	as.starting = ""
	out := w.fresh(&as, pkgs)
	if out.fault != nil {
		return out
	}
	out.of = slices.DeleteFunc(out.of, func(o option) bool {
		lower := s.current.facts.hasVersion && s.current.facts.isAbove(o.entry.Bundle())
		if lower && !w.opt.AllowDowngrade {
			out.down = append(out.down, o.entry)
		}
		return lower && !w.opt.AllowDowngrade || o.entry.Name() == s.current.bundle
	})
	allowed, _ := s.allows()
	switch {
	case s.mayStay(pkgs, allowed):
		out.of = append(out.of, option{current: s.current})
	case len(out.of) == 0:
		out.fault = w.goesDown(s, out.down[0])
	}
	return out
}

// mayStay reports whether what is installed answers s.
func (s *want) mayStay(pkgs []*catalog.Package, allowed func(string, catalog.Version) bool) bool {
	f := s.current.facts
	return (allowed(s.current.bundle, f.version) || !f.hasVersion || s.decl == nil) && !byReference(s, pkgs)
}

func (w *world) goesDown(s *want, to *catalog.Entry) *fault {
	return &fault{s.pos(subscription.FieldBundle, subscription.FieldRange, subscription.FieldPackage), fmt.Sprintf("%s %s is installed, and what is asked for is %s: versions do not go down",
		s.pkg, s.current.versionText(), to.Bundle().Version())}
}

// byReference reports whether s names a bundle, and another than what is
// installed.
func byReference(s *want, pkgs []*catalog.Package) bool {
	if s.decl == nil || s.decl.Bundle == "" {
		return false
	}
	return !slices.ContainsFunc(pkgs, func(p *catalog.Package) bool {
		_, same := p.Bundle(s.current.bundle)
		return same
	})
}

// edges returns the entries that an edge leads to from what is installed. With
// a target version, only what lies on the shortest way there; with a lock to
// follow, the bundle that it pins.
func (w *world) edges(s *want, pkgs []*catalog.Package) []*catalog.Entry {
	cur := s.current
	if pin := w.follows(s); pin != nil {
		return s.followed(pkgs, pin)
	}
	of, anywhere := (*catalog.Channel).Walk, s.decl != nil && s.decl.Bundle != "" || s.isV1() && s.decl.Policy == subscription.SelfCertified
	if anywhere || s.isV1() {
		of = (*catalog.Channel).Entries
	}
	es := s.entriesOf(pkgs, of)
	if !anywhere {
		es = slices.DeleteFunc(es, func(e *catalog.Entry) bool { return !cur.leadsTo(e) })
	}
	if !s.isV1() {
		es = withTwins(s, es)
	}
	if t := w.named(s); t != nil && t.Version != "" {
		es = w.towards(s, pkgs, t.Version)
	}
	return w.rank(s, es)
}

// cannotSucceed returns why a cannot take the place of what s pins, though nobody
// declares it, or "". Rule 5. Rule 12.
func (w *world) cannotSucceed(s *want, a *atom) string {
	i := s.current
	lower := i.facts.hasVersion && i.facts.compare(a.facts.version, a.facts.release) > 0
	switch {
	case a.entry.Name() == i.bundle && i.facts.answersLike(a.facts):
		return ""
	case s.hold != "":
		return "is not " + i.bundle + ", which is pinned and held: " + s.hold
	case lower && !w.opt.AllowDowngrade:
		return "is lower than " + i.bundle + ", which is pinned, and versions do not go down"
	case lower || i.spare || i.leadsTo(a.entry), w.follows(s) != nil:
		return ""
	}
	return "is not reached by an edge from " + i.bundle + ", which is pinned"
}

// leadsTo reports whether an edge goes from i to e.
func (i *installed) leadsTo(e *catalog.Entry) bool {
	var v *catalog.Version
	if i.facts.hasVersion {
		v = &i.facts.version
	}
	return e.EdgeFrom(i.bundle, v) != catalog.NoEdge
}

// withTwins adds, after each entry, those of the same bundle in other permitted
// channels: the bundle is what the subscription gets.
func withTwins(s *want, es []*catalog.Entry) []*catalog.Entry {
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

// unknownTarget reports a target version that the package does not have.
func (w *world) unknownTarget(s *want, pkgs []*catalog.Package, t *Target) *fault {
	if slices.ContainsFunc(s.entriesOf(pkgs, (*catalog.Channel).Entries), func(e *catalog.Entry) bool { return isVersion(e, t.Version) }) {
		return nil
	}
	return w.noVersion(s, pkgs, t)
}

// is reports whether i is of that version, or is the bundle of that name.
func (i *installed) is(version string) bool {
	return i.bundle == version || i.facts.hasVersion && i.facts.version.String() == version
}

func isVersion(e *catalog.Entry, version string) bool {
	return e.Name() == version || e.Bundle().Version().String() == version
}

// towards returns the first step of the shortest way to a version, or nothing
// when that is there. A downgrade that was allowed needs no way.
func (w *world) towards(s *want, pkgs []*catalog.Package, version string) []*catalog.Entry {
	cur := s.current
	if cur.is(version) {
		return nil
	}
	if way := shortest(s, pkgs, cur, func(e *catalog.Entry) bool { return isVersion(e, version) }); len(way) > 0 {
		return way[:1]
	}
	if !w.opt.AllowDowngrade || !cur.facts.hasVersion {
		return nil
	}
	return slices.DeleteFunc(s.entriesOf(pkgs, (*catalog.Channel).Entries), func(e *catalog.Entry) bool {
		return !isVersion(e, version) || !cur.facts.isAbove(e.Bundle())
	})
}

// shortest returns the entries on the shortest way along edges from cur to one
// that end accepts, or nil. Of equally short ways the first in channel order.
func shortest(s *want, pkgs []*catalog.Package, cur *installed, end func(*catalog.Entry) bool) []*catalog.Entry {
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
			if seen[e.Name()] || !queue[i].at.leadsTo(e) {
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
