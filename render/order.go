package render

import (
	"slices"

	"github.com/quayside/quayside/render/profile"
)

// order is which operators come before which others, by "namespace/package".
type order struct {
	before map[string]map[string]bool // of an operator: those that run before it
	level  map[string]int             // how many of these stand in a row
}

// newOrder returns the order that is right for what each operator needs. Of
// operators that need one another in a circle none comes before another.
func newOrder(needs map[string][]string) order {
	reach := map[string]map[string]bool{}
	for from := range needs {
		reach[from] = reachable(needs, from)
	}
	o := order{before: map[string]map[string]bool{}, level: map[string]int{}}
	for from, all := range reach {
		o.before[from] = map[string]bool{}
		for to := range all {
			if !reach[to][from] {
				o.before[from][to] = true
			}
		}
	}
	for name := range needs {
		o.measure(name)
	}
	return o
}

// reachable returns what from needs, and what that needs in turn.
func reachable(needs map[string][]string, from string) map[string]bool {
	found := map[string]bool{}
	for open := slices.Clone(needs[from]); len(open) > 0; {
		name := open[len(open)-1]
		open = open[:len(open)-1]
		if !found[name] {
			found[name] = true
			open = append(open, needs[name]...)
		}
	}
	return found
}

// measure returns the level of an operator, once it is known of those before it.
func (o order) measure(name string) int {
	level, known := o.level[name]
	if known {
		return level
	}
	for earlier := range o.before[name] {
		level = max(level, o.measure(earlier)+1)
	}
	o.level[name] = level
	return level
}

// arrange finds out the order between the operators, and by it the place of each
// object: those that issue certificates first, then each of the rest after what
// it is pinned to require.
func (t *tree) arrange() {
	issues, needs := map[string]bool{}, map[string][]string{}
	providers := map[groupKind][]string{}
	for _, in := range t.installs {
		needs[in.name()] = nil
		for _, api := range in.provides() {
			issues[in.name()] = issues[in.name()] || profile.IssuesCertificates(api)
			kind := groupKind{api.Group, api.Kind}
			providers[kind] = append(providers[kind], in.name())
		}
	}
	for _, in := range t.installs {
		for _, r := range in.pin.Requires {
			if _, there := needs[r.Pin]; there && !issues[r.Pin] && !issues[in.name()] {
				needs[in.name()] = append(needs[in.name()], r.Pin)
			}
		}
	}
	order := newOrder(needs)
	t.places = map[Key]profile.Place{}
	if !t.byCluster() {
		t.alone()
		return
	}
	for _, in := range t.installs {
		for _, o := range slices.Concat(in.objects, in.others) {
			place := profile.Place{
				First: issues[in.name()], Level: order.level[in.name()],
				Whose: order.whose(in.name(), providers[groupKind{o.Group(), o.Kind()}]),
			}
			if other, shared := t.places[o.Key()]; shared {
				place = place.Earlier(other)
			}
			t.places[o.Key()] = place
		}
	}
	t.arrangeLeaving()
}

// alone sets the places of what must not work any more, in pieces of which none waits
// for another.
func (t *tree) alone() {
	for _, in := range t.leaving {
		for _, o := range in.objects {
			t.places[o.Key()] = profile.Place{Stopped: works(o)}
		}
	}
}

// arrangeLeaving finds out the places of what is left over, as early as it may have
// been before. So has what was handed over: an object that comes later than before
// is taken away first by a tool that applies in stages.
func (t *tree) arrangeLeaving() {
	for _, in := range t.leaving {
		first := slices.ContainsFunc(in.provides(), profile.IssuesCertificates)
		for _, o := range in.objects {
			t.places[o.Key()] = profile.Place{First: first, Stopped: works(o)}
		}
		for _, o := range in.others {
			if place := t.places[o.Key()]; !place.First && place.Level > 0 {
				place.Level, place.Moving = 0, true
				t.places[o.Key()] = place
			}
		}
	}
}

type groupKind struct{ group, kind string }

// whose returns whose API it is that an operator has an object of.
func (o order) whose(name string, providers []string) profile.Whose {
	switch {
	case len(providers) == 0:
		return profile.Nobodys
	case slices.Contains(providers, name):
		return profile.Own
	case slices.ContainsFunc(providers, func(p string) bool { return o.before[name][p] }):
		return profile.Required
	}
	return profile.Foreign
}
