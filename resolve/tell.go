package resolve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
)

// teller puts the causes of one conflict into words.
type teller struct {
	b      *builder
	causes []tagged
	told   map[int]bool // by tag
	in     map[int]bool // atoms that the conflict is about
	ways   []remedy
}

type tagged struct {
	cause
	tag int
	of  []int // the atoms that can meet it, or that it holds apart
}

// chain returns the lines, root first: each declaration with what its
// candidates need below it, then the rules that they break.
func (t *teller) chain() []Link {
	var out []Link
	for _, x := range t.causes {
		if o := x.order(); o == whoAsks || o == whatIsThere {
			out = append(out, Link{At: x.where(), Text: x.tell(t, x.of)})
			out = append(out, t.below(x.of, 1)...)
			t.told[x.tag] = true
		}
	}
	for _, x := range t.causes { // what was not told below what it constrains
		if !t.told[x.tag] {
			t.told[x.tag] = true
			out = append(out, Link{Text: x.tell(t, x.of)})
		}
	}
	return out
}

// below returns what the bundles of the atoms need or why they cannot be
// chosen, as far as it is part of the conflict, and what that leads to. What
// several bundles have in common appears once.
func (t *teller) below(atoms []int, depth int) []Link {
	names := map[fact]bool{}
	for _, id := range atoms {
		names[fact{t.b.atoms[id].ns, t.b.atoms[id].bundle()}] = true
	}
	type group struct {
		common  cause
		bundles []string
		atoms   []int
	}
	var groups []*group
	for _, x := range t.causes {
		var common cause
		switch c := x.cause.(type) {
		case needing:
			common = needing{req: c.req}
		case banning:
			common = banning{why: c.why}
		}
		if common == nil || t.told[x.tag] || !names[x.about()] {
			continue
		}
		t.told[x.tag] = true
		i := slices.IndexFunc(groups, func(g *group) bool { return g.common == common })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{common: common})
		}
		groups[i].bundles = append(groups[i].bundles, x.about().bundle)
		groups[i].atoms = append(groups[i].atoms, x.of...)
	}
	var out []Link
	for _, g := range groups {
		switch c := g.common.(type) {
		case banning:
			out = append(out, Link{Depth: depth, Text: list(g.bundles) + " " + plural(c.why.text, len(g.bundles))})
		case needing:
			out = append(out, Link{Depth: depth, Text: t.requires(g.bundles, c.req, g.atoms)})
			if depth < 20 {
				out = append(out, t.below(g.atoms, depth+1)...)
			}
		}
	}
	return out
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
		return text + ", which no visible catalog offers" + t.otherVersions(r)
	case 1:
		return text + ": only " + names[0] + " meets it"
	}
	return text + ": " + list(names) + " meet it"
}

// otherVersions says what offers another version of the APIs of r, where nothing
// at all offers them: "; b.v1.0.0 offers b.example.com/v1 B".
func (t *teller) otherVersions(r *requirement) string {
	text := ""
	for _, g := range r.where.apis {
		offers := map[catalog.GVK][]string{} // names of bundles
		for _, c := range t.b.w.x.Catalogs() {
			for _, p := range c.Packages() {
				for _, b := range p.Bundles() {
					for _, other := range b.Provides() {
						if other.Group == g.Group && other.Kind == g.Kind && !slices.Contains(offers[other], b.Name()) {
							offers[other] = append(offers[other], b.Name())
						}
					}
				}
			}
		}
		if len(offers[g]) > 0 {
			continue
		}
		for _, other := range slices.SortedFunc(maps.Keys(offers), catalog.GVK.Compare) {
			text += "; the API " + other.String() + " is offered by " + list(offers[other])
		}
	}
	return text
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
