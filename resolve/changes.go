package resolve

import (
	"cmp"
	"slices"

	"github.com/quayside/quayside/catalog"
)

// changes returns what could be changed, the surest first.
func (t *teller) changes() []Change {
	var out []Change
	add := func(at, text string) {
		if c := (Change{At: at, Text: text}); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	for _, by := range t.asking() {
		if by.fault == nil {
			continue
		}
		for _, h := range by.fault.hints {
			add(by.where(), h)
		}
		if len(by.fault.hints) == 0 {
			add(by.where(), "correct this declaration")
		}
	}
	for _, x := range t.causes {
		x.change(t, x.of, add)
	}
	if len(out) == 0 {
		for _, by := range t.asking() {
			add(by.where(), "ask for another channel or version, or remove subscription "+by.want.key())
		}
	}
	if len(out) == 0 {
		add("", "remove one of what takes part")
	}
	return out
}

// meetingIn returns the first entry of a channel that s does not permit, of the
// package that it asks for, which meets r.
func (t *teller) meetingIn(s *want, r *requirement) *catalog.Entry {
	pkgs, bad := t.b.w.packages(s)
	if bad != nil {
		return nil
	}
	for _, p := range pkgs {
		for _, ch := range p.Channels() {
			if slices.Contains(s.channels, ch.Name()) {
				continue
			}
			for _, e := range ch.Walk() {
				if r.match(t.b.w.read.bundle(e.Bundle())) {
					return e
				}
			}
		}
	}
	return nil
}

// runnable returns the newest entry of the banned bundle's package that would
// run where it is to go.
func (t *teller) runnable(c banning) *catalog.Entry {
	var best *catalog.Entry
	for _, cat := range t.b.w.catalogs(c.ns) {
		p, ok := cat.Package(c.pkg)
		if !ok {
			continue
		}
		for _, ch := range p.Channels() {
			for _, e := range ch.Entries() {
				a := &atom{ns: c.ns, entry: e, facts: t.b.w.read.bundle(e.Bundle())}
				a.watch = t.b.w.watchOf(c.ns, t.b.wantFor(c.ns, e), e.Bundle())
				if t.b.w.cannotRun(a).kind == 0 && !t.blames(e.Name()) && (best == nil || e.Bundle().Version().GT(best.Bundle().Version())) {
					best = e
				}
			}
		}
	}
	return best
}

// blames reports whether the bundle of that name is part of the conflict.
func (t *teller) blames(name string) bool {
	return slices.ContainsFunc(t.causes, func(x tagged) bool { return x.about().bundle == name })
}

// oneOf offers to give up one of the subscriptions that want the same place.
func (t *teller) oneOf(add func(at, text string), manual func(*want) bool) {
	wants := slices.DeleteFunc(t.asking(), func(c asking) bool { return c.fault != nil })
	if len(wants) < 2 {
		return
	}
	slices.SortStableFunc(wants, func(x, y asking) int { return cmp.Compare(t.b.tags[x], t.b.tags[y]) })
	for _, by := range wants {
		others := "another namespace"
		if manual(by.want) {
			others += " (it is Manual)"
		}
		add(by.where(), "remove subscription "+by.want.key()+", or move it to "+others)
	}
}
