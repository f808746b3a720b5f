package resolve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/model"
	"github.com/quayside/quayside/resolve/explain"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// teller renders the causes of one conflict as text.
type teller struct {
	b      *builder
	causes []tagged
	told   map[int]bool // by tag
	in     map[int]bool // atoms that take part in the conflict
	ways   []remedy
}

type tagged struct {
	cause
	tag int
	of  []int // the atoms that can meet it, or that it excludes from each other
}

// teller returns a teller for a core of p. Rule 2.
func (b *builder) teller(p solve.Problem, core []int) *teller {
	t := &teller{b: b, told: map[int]bool{}, in: map[int]bool{}}
	for _, tag := range core {
		of := b.of[tag]
		if i := slices.IndexFunc(p.Roots, func(c solve.Choice) bool { return c.Tag == tag }); i >= 0 {
			of = p.Roots[i].Of
		}
		t.causes = append(t.causes, tagged{b.causes[tag], tag, of})
	}
	slices.SortStableFunc(t.causes, func(x, y tagged) int { return cmp.Compare(x.order(), y.order()) })
	for _, x := range t.causes {
		for _, id := range x.of {
			t.in[id] = t.in[id] || x.order() != whatForbids
		}
	}
	return t
}

// conflict returns the core as a conflict without changes.
func (t *teller) conflict() *explain.Conflict {
	c := &explain.Conflict{Subscriptions: []string{}, Changes: []explain.Change{}}
	argued := ""
	for _, x := range t.causes {
		c.Namespace = cmp.Or(c.Namespace, x.about().ns)
		if by, ok := x.cause.(asking); ok {
			c.Subscriptions = append(c.Subscriptions, by.want.key())
			c.At = cmp.Or(c.At, by.where())
			if n := t.b.w.boundTarget(by.want); n != nil && argued == "" {
				argued = n.At.String()
			}
			c.Waits = append(c.Waits, t.b.w.unreadableNeeds(by.want)...)
		}
	}
	c.At = cmp.Or(argued, c.At)
	slices.Sort(c.Subscriptions)
	c.Subscriptions = slices.Compact(c.Subscriptions)
	c.Chain = t.chain()
	return c
}

// uniqueConflicts sorts conflicts and drops duplicates from later rounds.
func uniqueConflicts(cs []*explain.Conflict) []*explain.Conflict {
	slices.SortStableFunc(cs, func(a, b *explain.Conflict) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), slices.Compare(a.Subscriptions, b.Subscriptions))
	})
	return slices.CompactFunc(cs, func(a, b *explain.Conflict) bool { return a.Error() == b.Error() })
}

// chain returns the lines, root first: each declaration with its candidates' requirements below
// it, then the broken rules.
func (t *teller) chain() []explain.Link {
	var out []explain.Link
	for _, x := range t.causes {
		if o := x.order(); o == whoAsks || o == whatIsThere {
			out = append(out, explain.Link{At: x.where(), Text: x.describe(t, x.of)})
			out = append(out, t.consequences(x.of, 1)...)
			t.told[x.tag] = true
		}
	}
	for _, x := range t.causes { // causes without a line yet
		if !t.told[x.tag] {
			t.told[x.tag] = true
			out = append(out, explain.Link{Text: x.describe(t, x.of)})
		}
	}
	return out
}

// consequences returns the requirements and bans of the atoms' bundles that are part of the
// conflict, with their consequences. Causes shared by several bundles appear once.
func (t *teller) consequences(atoms []int, depth int) []explain.Link {
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
	var out []explain.Link
	for _, g := range groups {
		switch c := g.common.(type) {
		case banning:
			out = append(out, explain.Link{Depth: depth, Text: list(g.bundles) + " " + pluralize(c.why.text, len(g.bundles))})
		case needing:
			out = append(out, explain.Link{Depth: depth, Text: t.requires(g.bundles, c.req, g.atoms)})
			if depth < 20 {
				out = append(out, t.consequences(g.atoms, depth+1)...)
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

// requires describes the requirement of some bundles and the atoms that meet it.
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
		return text + ", which is in no visible catalog" + t.otherVersions(r)
	case 1:
		return text + ": only " + names[0] + " meets it"
	}
	return text + ": " + list(names) + " meet it"
}

// otherVersions lists the bundles that provide another version of the APIs of r, for APIs that no
// bundle provides: "; the API b.example.com/v1 B is offered by b.v1.0.0".
func (t *teller) otherVersions(r *requirement) string {
	text := ""
	for _, g := range r.where.apis {
		offers := map[model.GVK][]string{} // names of bundles
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
		for _, other := range slices.SortedFunc(maps.Keys(offers), model.GVK.Compare) {
			text += "; the API " + other.String() + " is offered by " + list(offers[other])
		}
	}
	return text
}

// takingPart lists the atoms that take part in the conflict.
func (t *teller) takingPart(atoms []int) string {
	names := t.names(slices.DeleteFunc(slices.Clone(atoms), func(id int) bool { return !t.in[id] }))
	if len(names) < 2 {
		// The bundle occurs twice: as the installed one and as a catalog's entry.
		names = nil
		for _, id := range atoms {
			if t.in[id] {
				names = append(names, t.b.atoms[id].origin())
			}
		}
	}
	return list(names)
}

// origin names an atom with its source: installed, or its channel and catalog.
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

// pluralize adapts "is …", "needs …" and similar texts to several subjects.
func pluralize(text string, n int) string {
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
