package resolve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/resolve/explain"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// explainer formats the causes of one conflict as text, and finds remedies for the conflict.
type explainer struct {
	b         *builder
	causes    []taggedCause
	explained map[int]bool // tags of the causes that already have a line
	involved  map[int]bool // atoms that take part in the conflict
	suggested []remedy
}

type taggedCause struct {
	cause
	tag int
	of  []int // atoms of its constraint, of which at least one or at most one must be chosen
}

// newExplainer returns an explainer for core, an unsatisfiable core of p. It implements Rule 2 of the package comment.
func (b *builder) newExplainer(p solve.Problem, core []int) *explainer {
	t := &explainer{b: b, explained: map[int]bool{}, involved: map[int]bool{}}
	for _, tag := range core {
		of := b.atomsByTag[tag]
		if i := slices.IndexFunc(p.Roots, func(c solve.Choice) bool { return c.Tag == tag }); i >= 0 {
			of = p.Roots[i].Of
		}
		t.causes = append(t.causes, taggedCause{b.causes[tag], tag, of})
	}
	slices.SortStableFunc(t.causes, func(x, y taggedCause) int { return cmp.Compare(x.order(), y.order()) })
	for _, x := range t.causes {
		for _, id := range x.of {
			t.involved[id] = t.involved[id] || x.order() != orderExclusion
		}
	}
	return t
}

// conflict returns the unsatisfiable core as a Conflict without remedies.
func (t *explainer) conflict() *explain.Conflict {
	c := &explain.Conflict{Subscriptions: []string{}, Changes: []explain.Remedy{}}
	targetPos := ""
	for _, x := range t.causes {
		c.Namespace = cmp.Or(c.Namespace, x.about().ns)
		if by, ok := x.cause.(requestCause); ok {
			c.Subscriptions = append(c.Subscriptions, by.want.key())
			c.At = cmp.Or(c.At, by.position())
			if n := t.b.w.boundTarget(by.want); n != nil && targetPos == "" {
				targetPos = n.At.String()
			}
			c.UnreadableCatalogs = append(c.UnreadableCatalogs, t.b.w.unreadableNeeds(by.want)...)
		}
	}
	c.At = cmp.Or(targetPos, c.At)
	slices.Sort(c.Subscriptions)
	c.Subscriptions = slices.Compact(c.Subscriptions)
	c.Chain = t.chain()
	return c
}

// uniqueConflicts sorts conflicts and removes duplicates. Of conflicts that differ only in the suggested
// changes, it keeps the conflict of the last round: its changes were tried on the lock that the run returns.
func uniqueConflicts(cs []*explain.Conflict) []*explain.Conflict {
	var out []*explain.Conflict
	for _, c := range cs {
		i := slices.IndexFunc(out, func(o *explain.Conflict) bool {
			return o.Namespace == c.Namespace && slices.Equal(o.Subscriptions, c.Subscriptions) && slices.Equal(o.Chain, c.Chain)
		})
		if i < 0 {
			out = append(out, c)
		} else {
			out[i] = c
		}
	}
	slices.SortStableFunc(out, func(a, b *explain.Conflict) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), slices.Compare(a.Subscriptions, b.Subscriptions))
	})
	return out
}

// chain returns the lines of the explanation. They contain each declaration, below it the requirements of its
// candidates, and at the end the violated rules.
func (t *explainer) chain() []explain.Link {
	var out []explain.Link
	for _, x := range t.causes {
		if o := x.order(); o == orderRequest || o == orderInstalled {
			out = append(out, explain.Link{At: x.position(), Text: x.describe(t, x.of)})
			out = append(out, t.consequences(x.of, 1)...)
			t.explained[x.tag] = true
		}
	}
	for _, x := range t.causes { // the causes that have no line yet
		if !t.explained[x.tag] {
			t.explained[x.tag] = true
			out = append(out, explain.Link{Text: x.describe(t, x.of)})
		}
	}
	return out
}

// consequences returns the lines below the given atoms: the requirements and bans of their bundles, if they are
// part of the conflict. Below each requirement are its own consequences. A cause that several bundles share has
// one line.
func (t *explainer) consequences(atoms []int, depth int) []explain.Link {
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
		case requirementCause:
			common = requirementCause{req: c.req}
		case banCause:
			common = banCause{why: c.why}
		}
		if common == nil || t.explained[x.tag] || !names[x.about()] {
			continue
		}
		t.explained[x.tag] = true
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
		case banCause:
			out = append(out, explain.Link{Depth: depth, Text: joinNames(g.bundles) + " " + pluralize(c.why.text, len(g.bundles))})
		case requirementCause:
			out = append(out, explain.Link{Depth: depth, Text: t.describeRequirement(g.bundles, c.req, g.atoms)})
			if depth < 20 {
				out = append(out, t.consequences(g.atoms, depth+1)...)
			}
		}
	}
	return out
}

func (t *explainer) names(atoms []int) []string {
	var names []string
	for _, id := range atoms {
		if n := t.b.atoms[id].bundle(); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// describeRequirement returns a text about requirement r, which the given bundles have and the given atoms meet.
func (t *explainer) describeRequirement(bundles []string, r *requirement, atoms []int) string {
	verb := " requires "
	if len(bundles) > 1 {
		verb = " require "
	}
	text := joinNames(bundles) + verb + r.text
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
	return text + ": " + joinNames(names) + " meet it"
}

// otherVersions returns a message suffix about the APIs in r that no bundle provides. It lists the
// bundles that provide another version of the same API: "; the API b.example.com/v1 B is offered by
// b.v1.0.0".
func (t *explainer) otherVersions(r *requirement) string {
	text := ""
	for _, g := range r.scope.apis {
		offers := map[catalog.GVK][]string{} // API → names of the bundles that provide it
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
			text += "; the API " + other.String() + " is offered by " + joinNames(offers[other])
		}
	}
	return text
}

// listInvolved lists the atoms that take part in the conflict, for a message.
func (t *explainer) listInvolved(atoms []int) string {
	names := t.names(slices.DeleteFunc(slices.Clone(atoms), func(id int) bool { return !t.involved[id] }))
	if len(names) < 2 {
		// All atoms are one bundle: as the installed bundle, and as catalog entries.
		names = nil
		for _, id := range atoms {
			if t.involved[id] {
				names = append(names, t.b.atoms[id].origin())
			}
		}
	}
	return joinNames(names)
}

// origin returns where the bundle of an atom is from: "installed", or its channel and catalog.
func (a *atom) origin() string {
	if a.inst != nil {
		return a.bundle() + " (installed)"
	}
	return a.bundle() + " (channel " + a.entry.Channel().Name() + " of catalog " + a.catalog().ID().String() + ")"
}

// joinNames joins names for a message. If there are more than five, it lists four names and the number of
// omitted names.
func joinNames(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most-1], ", ") + fmt.Sprintf(" and %d more", len(names)-most+1)
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// pluralize converts a text such as "is …" or "needs …" to the plural if n is not 1.
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
