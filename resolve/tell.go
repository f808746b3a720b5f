package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/subscription"
)

// teller puts the causes of one conflict into words.
type teller struct {
	b      *builder
	causes []tagged
	told   map[int]bool // by tag
	in     map[int]bool // atoms that the conflict is about
}

type tagged struct {
	tag int
	cause
}

// chain returns the lines, root first: each declaration with what its
// candidates need below it, then the rules that they break.
func (t *teller) chain() []Link {
	var out []Link
	for _, x := range t.causes {
		switch x.kind {
		case causeWant:
			out = append(out, Link{At: t.where(x.cause), Text: t.asks(x.cause)})
			out = append(out, t.below(x.atoms, 1)...)
		case causeStays:
			out = append(out, Link{At: t.where(x.cause), Text: x.bundle + " is installed in namespace " + x.ns + " and no subscription asks for it, so it stays"})
			out = append(out, t.below([]int{t.b.installedAtom(x.inst)}, 1)...)
		default: // told below what they constrain, or at the end
		}
	}
	for _, x := range t.causes {
		if t.told[x.tag] || x.kind == causeWant || x.kind == causeStays {
			continue
		}
		t.told[x.tag] = true
		out = append(out, Link{Text: t.rule(x.cause)})
	}
	return out
}

// below returns what the bundles of the atoms need or why they cannot be
// chosen, as far as it is part of the conflict, and what that leads to.
func (t *teller) below(atoms []int, depth int) []Link {
	names := map[string]bool{}
	for _, id := range atoms {
		names[t.b.atoms[id].ns+"/"+t.b.atoms[id].bundle()] = true
	}
	var out []Link
	type group struct {
		bundles []string
		first   tagged
		atoms   []int
	}
	var groups []*group
	for _, x := range t.causes {
		if t.told[x.tag] || !names[x.ns+"/"+x.bundle] || x.kind != causeNeed && x.kind != causeBanned {
			continue
		}
		t.told[x.tag] = true
		i := slices.IndexFunc(groups, func(g *group) bool {
			return g.first.kind == x.kind && g.first.req == x.req && g.first.text == x.text
		})
		if i < 0 {
			groups = append(groups, &group{first: x})
			i = len(groups) - 1
		}
		groups[i].bundles = append(groups[i].bundles, x.bundle)
		groups[i].atoms = append(groups[i].atoms, x.atoms...)
	}
	for _, g := range groups {
		if g.first.kind == causeBanned {
			out = append(out, Link{Depth: depth, Text: list(g.bundles) + " " + plural(g.first.text, len(g.bundles))})
			continue
		}
		out = append(out, Link{Depth: depth, Text: t.requires(g.bundles, g.first.req, g.atoms)})
		if depth < 20 {
			out = append(out, t.below(g.atoms, depth+1)...)
		}
	}
	return out
}

// asks tells what a subscription wants.
func (t *teller) asks(c cause) string {
	s := c.want
	if c.fault != nil {
		return "subscription " + s.key() + ": " + c.fault.msg
	}
	text := "subscription " + s.key() + " asks for package " + s.pkg
	if len(s.channels) > 0 {
		text += ", channel " + strings.Join(s.channels, " or ")
	}
	if s.cat != nil {
		text += ", from catalog " + s.cat.String()
	}
	if s.generated {
		text = "generated " + text
	}
	return text + ": " + t.candidates(c.atoms)
}

// candidates lists the bundles that can answer, once each.
func (t *teller) candidates(atoms []int) string {
	names := t.names(atoms)
	switch len(names) {
	case 0:
		return "nothing answers it"
	case 1:
		return "only " + names[0] + " answers it"
	}
	return list(names) + " answer it"
}

func (t *teller) names(atoms []int) []string {
	var names []string
	for _, id := range atoms {
		if n := t.b.atoms[id].bundle(); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// requires tells what bundles need, and what would meet it.
func (t *teller) requires(bundles []string, r *requirement, atoms []int) string {
	verb := " requires "
	if len(bundles) > 1 {
		verb = " require "
	}
	text := list(bundles) + verb + r.words
	if r.note != "" {
		text += fmt.Sprintf(" (%q)", r.note)
	}
	names := t.names(atoms)
	switch len(names) {
	case 0:
		return text + ", which no visible catalog offers"
	case 1:
		return text + ": only " + names[0] + " meets it"
	}
	return text + ": " + list(names) + " meet it"
}

// rule tells a rule that the candidates break.
func (t *teller) rule(c cause) string {
	switch c.kind {
	case causePackage:
		return fmt.Sprintf("namespace %s holds at most one bundle of package %s, not %s", c.ns, c.pkg, t.both(c.atoms))
	case causeAPI:
		return fmt.Sprintf("namespace %s holds at most one provider of the API %s, not %s", c.ns, c.api, t.both(c.atoms))
	case causeReplaced:
		return fmt.Sprintf("%s takes the place of %s: not both are installed", c.bundle, c.inst.bundle)
	case causeOverlap:
		return fmt.Sprintf("the API %s would be provided in namespaces %s and %s, which watch the same namespaces", c.api, c.ns, c.other)
	case causeNeed:
		return t.requires([]string{c.bundle}, c.req, c.atoms)
	default:
		return c.bundle + " " + c.text
	}
}

// both lists those of the atoms that the conflict is about.
func (t *teller) both(atoms []int) string {
	names := t.names(slices.DeleteFunc(slices.Clone(atoms), func(id int) bool { return !t.in[id] }))
	if len(names) < 2 {
		// The same bundle twice: what is installed, and a catalog's entry.
		names = nil
		for _, id := range atoms {
			if t.in[id] {
				names = append(names, t.b.atoms[id].origin())
			}
		}
	}
	return list(names)
}

// origin names an atom with where it comes from.
func (a *atom) origin() string {
	if a.inst != nil {
		return a.bundle() + " (installed)"
	}
	return a.bundle() + " (channel " + a.entry.Channel().Name() + " of catalog " + a.catalog().ID().String() + ")"
}

// where returns the position that a cause points at.
func (t *teller) where(c cause) string {
	switch {
	case c.fault != nil && !c.fault.pos.IsZero():
		return c.fault.pos.String()
	case c.want != nil && c.want.decl != nil:
		field := "spec.channel"
		if _, ok := c.want.decl.Fields[field]; !ok {
			field = packageField(c.want)
		}
		return c.want.pos(field).String()
	case c.inst != nil && c.inst.csv != nil:
		return c.inst.csv.Pos.String()
	case c.inst != nil && c.inst.pin != nil:
		return c.inst.pin.Pos.String()
	}
	return ""
}

// list joins names, at most five of them.
func list(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most-1], ", ") + fmt.Sprintf(" and %d more", len(names)-most+1)
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// plural turns "is …", "needs …" and the like for several subjects.
func plural(text string, n int) string {
	if n == 1 {
		return text
	}
	for _, v := range [][2]string{{"is ", "are "}, {"needs ", "need "}, {"runs ", "run "}, {"does not ", "do not "}} {
		if rest, ok := strings.CutPrefix(text, v[0]); ok {
			return v[1] + rest
		}
	}
	return text
}

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
	add("", "add a catalog that offers "+c.req.words)
	for _, x := range t.causes {
		if x.kind == causeWant {
			add(t.where(x.cause), "ask for another version of package "+x.want.pkg+", or remove subscription "+x.want.key())
		}
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
				if t.b.w.cannotRun(a) == "" && (best == nil || e.Bundle().Version().GT(best.Bundle().Version())) {
					best = e
				}
			}
		}
	}
	return best
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
