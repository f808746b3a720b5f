package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/subscription"
)

// changes returns what could be changed, the surest first.
func (t *teller) changes() []Change {
	var out []Change
	add := func(at, text string) {
		if c := (Change{At: at, Text: text}); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	for _, x := range t.causes {
		if x.fault != nil {
			for _, h := range x.fault.hints {
				add(t.where(x.cause), h)
			}
			if len(x.fault.hints) == 0 {
				add(t.where(x.cause), "correct what is said here")
			}
		}
	}
	for _, x := range t.causes {
		t.changesFor(x.cause, add)
	}
	if len(out) == 0 {
		for _, x := range t.causes {
			if x.kind == causeWant {
				add(t.where(x.cause), "ask for another channel or version, or remove subscription "+x.want.key())
			}
		}
	}
	if len(out) == 0 {
		add("", "remove one of what takes part")
	}
	return out
}

func (t *teller) changesFor(c cause, add func(at, text string)) {
	switch c.kind {
	case causeStays:
		add(t.where(c), "delete "+c.bundle+", or let a subscription take it over by status.installedCSV: "+c.bundle)
	case causeNeed:
		t.changesForNeed(c, add)
	case causeBanned:
		t.changesForBan(c, add)
	case causePackage, causeAPI:
		t.oneOf(c, add)
	case causeOverlap:
		add("", fmt.Sprintf("give namespaces %s and %s OperatorGroups that watch different namespaces, or set allowOverlap: true in quayside.yaml", c.ns, c.other))
	default: // said with the others
	}
}

// changesForNeed looks for what would meet a requirement elsewhere: in another
// channel of a package that a subscription asks for, or in a catalog that the
// namespace does not see.
func (t *teller) changesForNeed(c cause, add func(at, text string)) {
	for _, x := range t.causes {
		if x.kind != causeWant || x.fault != nil || len(x.want.channels) == 0 {
			continue
		}
		if e := t.meetingIn(x.want, c.req); e != nil {
			add(t.where(x.cause), fmt.Sprintf("channel %q holds %s, which meets it", e.Channel().Name(), e.Name()))
		}
	}
	if len(c.atoms) > 0 {
		return
	}
	for _, cat := range t.b.w.x.Catalogs() {
		if es := t.b.w.providers(cat, c.req); len(es) > 0 && !t.b.w.sees(c.ns, cat.ID()) {
			add("", fmt.Sprintf("make catalog %s visible in namespace %s: its %s meets the requirement", cat.ID(), c.ns, es[0].Name()))
		}
	}
	t.brokenCatalogs(c.ns, add)
	add("", "add a catalog that offers "+c.req.words)
	for _, x := range t.causes {
		if x.kind == causeWant {
			add(t.where(x.cause), "ask for another version of package "+x.want.pkg+", or remove subscription "+x.want.key())
		}
	}
}

// brokenCatalogs names the visible catalogs that could not be read: what is
// missed may be there.
func (t *teller) brokenCatalogs(ns string, add func(at, text string)) {
	var ids []string
	for id := range t.b.w.x.Broken() {
		if t.b.w.sees(ns, id) {
			ids = append(ids, id.String())
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		add("", "repair catalog "+id+", which cannot be used and may offer it")
	}
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

func (t *teller) changesForBan(c cause, add func(at, text string)) {
	w := t.b.w
	switch {
	case strings.HasPrefix(c.text, "needs Kubernetes"), strings.HasPrefix(c.text, "runs on"), strings.HasPrefix(c.text, "does not support"):
		if e := t.runnable(c); e != nil {
			add("", fmt.Sprintf("%s (channel %q) would run", e.Name(), e.Channel().Name()))
		}
		if strings.HasPrefix(c.text, "does not support") {
			if g := w.space(c.ns).group; g != nil {
				add(g.Pos.String(), "let the OperatorGroup of namespace "+c.ns+" watch what the bundle can")
			}
		}
		add("", "set requirements: warn in quayside.yaml to install it nevertheless")
	case strings.HasPrefix(c.text, "is not what the lock"):
		add("", "bring the catalogs in step with the ones that the lock to follow was made from")
	}
}

// runnable returns the newest entry of the banned bundle's package that would
// run where it is to go.
func (t *teller) runnable(c cause) *catalog.Entry {
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
				if t.b.w.cannotRun(a) == "" && !t.blames(e.Name()) && (best == nil || e.Bundle().Version().GT(best.Bundle().Version())) {
					best = e
				}
			}
		}
	}
	return best
}

// blames reports whether the bundle of that name is part of the conflict.
func (t *teller) blames(name string) bool {
	return slices.ContainsFunc(t.causes, func(x tagged) bool { return x.bundle == name })
}

// oneOf offers to give up one of the subscriptions that want the same place.
func (t *teller) oneOf(c cause, add func(at, text string)) {
	var wants []tagged
	for _, x := range t.causes {
		if x.kind == causeWant && x.fault == nil {
			wants = append(wants, x)
		}
	}
	if len(wants) < 2 {
		return
	}
	slices.SortStableFunc(wants, func(a, b tagged) int { return cmp.Compare(a.tag, b.tag) })
	for _, x := range wants {
		others := "another namespace"
		if c.kind == causePackage && x.want.pkg == c.pkg && x.want.approval == subscription.Manual {
			others += " (it is Manual)"
		}
		add(t.where(x.cause), "remove subscription "+x.want.key()+", or move it to "+others)
	}
}
