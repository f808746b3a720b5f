package resolve

import (
	"fmt"
	"slices"
	"strings"
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
