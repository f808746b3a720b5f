package render

import (
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/profile/certificates"
)

// order is the order of applying operators. Names are "namespace/package".
type order struct {
	before map[string]map[string]bool // operators that are applied before each operator
	level  map[string]int             // length of the longest chain of operators before each operator
}

// newOrder returns the order in which each operator comes after the operators that it needs. Operators that
// need each other in a cycle have no order among themselves.
func newOrder(needs map[string][]string) order {
	reach := map[string]map[string]bool{}
	for from := range needs {
		reach[from] = reachableFrom(needs, from)
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
		o.computeLevel(name)
	}
	return o
}

// reachableFrom returns all operators that one operator (from) needs, directly or indirectly.
func reachableFrom(needs map[string][]string, from string) map[string]bool {
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

// computeLevel returns the level of an operator: 0, or one more than the highest level of the operators before it.
func (o order) computeLevel(name string) int {
	level, known := o.level[name]
	if known {
		return level
	}
	for earlier := range o.before[name] {
		level = max(level, o.computeLevel(earlier)+1)
	}
	o.level[name] = level
	return level
}

// applyPositions returns the position of each object in the order of application. Objects of certificate
// issuers come first, then the objects of other operators. Each operator comes after the operators that it
// needs. If pieces are applied separately, only leftover objects have a position.
func applyPositions(installs, replaced []operator, byCluster bool) map[Key]profile.ApplyPosition {
	positions := map[Key]profile.ApplyPosition{}
	if !byCluster {
		for _, in := range replaced {
			for _, o := range in.objects {
				positions[o.Key()] = profile.ApplyPosition{Stopped: isStoppable(o)}
			}
		}
		return positions
	}
	issues, needs := map[string]bool{}, map[string][]string{}
	providers := map[groupKind][]string{}
	for _, in := range installs {
		needs[in.name()] = nil
		for _, api := range in.b.Provides() {
			issues[in.name()] = issues[in.name()] || certificates.Issues(api.Group, api.Kind)
			kind := groupKind{api.Group, api.Kind}
			providers[kind] = append(providers[kind], in.name())
		}
	}
	for _, in := range installs {
		for _, r := range in.pin.Requires {
			if _, there := needs[r.Pin]; there && !issues[r.Pin] && !issues[in.name()] {
				needs[in.name()] = append(needs[in.name()], r.Pin)
			}
		}
	}
	order := newOrder(needs)
	for _, in := range installs {
		for _, o := range slices.Concat(in.objects, in.sharedObjects) {
			position := profile.ApplyPosition{
				Issuer: issues[in.name()], Level: order.level[in.name()],
				Provider: order.apiProvider(in.name(), providers[groupKind{o.Group(), o.Kind()}]),
			}
			if other, shared := positions[o.Key()]; shared {
				position = position.Earlier(other)
			}
			positions[o.Key()] = position
		}
	}
	addLeftoverPositions(positions, replaced)
	return positions
}

// addLeftoverPositions adds the positions of leftover objects. They are applied before the objects of the
// successor, or together with them. An object that the successor also ships keeps its early position: otherwise,
// a tool that applies in stages would delete and recreate the object.
func addLeftoverPositions(positions map[Key]profile.ApplyPosition, replaced []operator) {
	for _, in := range replaced {
		first := slices.ContainsFunc(in.b.Provides(), func(api catalog.GVK) bool { return certificates.Issues(api.Group, api.Kind) })
		for _, o := range in.objects {
			positions[o.Key()] = profile.ApplyPosition{Issuer: first, Stopped: isStoppable(o)}
		}
		for _, o := range in.sharedObjects {
			if position := positions[o.Key()]; !position.Issuer && position.Level > 0 {
				position.Level, position.MovesLater = 0, true
				positions[o.Key()] = position
			}
		}
	}
}

type groupKind struct{ group, kind string }

// apiProvider classifies the provider of an API that an operator uses: the operator itself, an operator before
// it, any other operator, or none.
func (o order) apiProvider(name string, providers []string) profile.APIProvider {
	switch {
	case len(providers) == 0:
		return profile.NoOperator
	case slices.Contains(providers, name):
		return profile.SameOperator
	case slices.ContainsFunc(providers, func(p string) bool { return o.before[name][p] }):
		return profile.EarlierOperator
	}
	return profile.OtherOperator
}

// markRecreated sets Recreated in the position of each object that an entry in recreate selects.
func markRecreated(positions map[Key]profile.ApplyPosition, installs []operator, recreate []profile.Recreation) {
	for _, in := range installs {
		for _, r := range recreate {
			if !r.IsFor(in.name(), in.pin.Version) {
				continue
			}
			for _, o := range slices.Concat(in.objects, in.sharedObjects) {
				if r.Selects(o.Key()) {
					position := positions[o.Key()]
					position.Recreated = true
					positions[o.Key()] = position
				}
			}
		}
	}
}
