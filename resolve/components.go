package resolve

import (
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
)

// components returns the connected components of the parts, in the order of their first parts. Two
// parts are connected, directly or through others, if
//
//   - both change the same operator,
//   - one provides, before or after the upgrade, a package or API that the other provides or requires,
//   - an unchanged pin requires packages or APIs of both,
//   - together they close a cycle of requirements,
//   - Git cannot merge their locks, or
//   - pairs contains their indexes.
func (s *splitter) components(pairs [][2]int) [][]*Part {
	component := make([]int, len(s.parts))
	for i := range component {
		component[i] = i
	}
	connect := func(a, b int) {
		from, to := max(component[a], component[b]), min(component[a], component[b])
		for i, c := range component {
			if c == from {
				component[i] = to
			}
		}
	}
	for _, p := range pairs {
		connect(p[0], p[1])
	}
	read := newReader()
	subjects := make([]map[string]bool, len(s.parts))
	for i, p := range s.parts {
		subjects[i] = p.subjects(read, s.prev)
		for j := range i {
			if intersects(subjects[i], subjects[j]) || !lockfile.CanMerge(s.prev, s.parts[j].Result.Partial, p.Result.Partial) {
				connect(i, j)
			}
		}
	}
	s.connectByPins(read, subjects, connect)
	s.connectCycles(connect)
	var out [][]*Part
	index := map[int]int{} // component → its index in out
	for i, p := range s.parts {
		n, known := index[component[i]]
		if !known {
			n = len(out)
			index[component[i]], out = n, append(out, nil)
		}
		out[n] = append(out[n], p)
	}
	return out
}

// connectByPins connects parts if they change packages or APIs that the same pin requires. The parts need not
// change this pin.
func (s *splitter) connectByPins(read *factReader, subjects []map[string]bool, connect func(a, b int)) {
	for _, pin := range s.prev.Pins {
		var needed map[string]bool
		for _, r := range read.fromProperties(pin.Properties).needs {
			needed = r.scope.subjects(needed)
		}
		first := -1
		for i := range s.parts {
			switch {
			case !intersects(subjects[i], needed):
			case first < 0:
				first = i
			default:
				connect(first, i)
			}
		}
	}
}

// connectCycles connects parts whose operators would require each other in a cycle after all upgrades. render
// puts such operators into one unit of the tree.
func (s *splitter) connectCycles(connect func(a, b int)) {
	all := &lockfile.File{Pins: slices.Clone(s.prev.Pins)} // a lock with all pins, before and after the upgrades
	changers := map[string][]int{}
	for i, p := range s.parts {
		for _, c := range lockfile.Diff(s.prev, p.Result.Partial) {
			key := c.Namespace + "/" + c.Package
			changers[key] = append(changers[key], i)
			if pin, there := p.Result.Partial.Pin(c.Namespace, c.Package); there {
				all.Pins = append(all.Pins, pin)
			}
		}
	}
	for key, of := range changers {
		for needed := range all.Needed(key) {
			if all.Needed(needed)[key] {
				of = append(of, changers[needed]...)
			}
		}
		for _, i := range of[1:] {
			connect(of[0], i)
		}
	}
}

// anySubject is the subject of a requirement that is not limited to packages or APIs, such as a
// label or a CEL rule. It stands for every package and API.
const anySubject = "*"

// intersects reports whether two sets of packages and APIs have a common element.
func intersects(a, b map[string]bool) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	if a[anySubject] || b[anySubject] {
		return true
	}
	for subject := range a {
		if b[subject] {
			return true
		}
	}
	return false
}

// subjects returns the packages and APIs that the changed pins of a part provide or require, either before or
// after the change, as a set.
func (p *Part) subjects(read *factReader, prev *lockfile.File) map[string]bool {
	out := map[string]bool{}
	for _, c := range lockfile.Diff(prev, p.Result.Partial) {
		for _, f := range []*lockfile.File{prev, p.Result.Partial} {
			pin, ok := f.Pin(c.Namespace, c.Package)
			if !ok {
				continue
			}
			facts := read.fromProperties(pin.Properties)
			out["package "+pin.Package] = true
			for _, g := range facts.apis {
				out[apiSubject(g)] = true
			}
			for _, r := range facts.needs {
				out = r.scope.subjects(out)
			}
		}
	}
	return out
}

// subjects adds the packages and APIs of the scope to the set `to`, and returns the set. If the argument is
// nil, it creates a set.
func (h searchScope) subjects(to map[string]bool) map[string]bool {
	if to == nil {
		to = map[string]bool{}
	}
	if h.anywhere {
		to[anySubject] = true
	}
	for _, pkg := range h.packages {
		to["package "+pkg] = true
	}
	for _, g := range h.apis {
		to[apiSubject(g)] = true
	}
	return to
}

func apiSubject(g catalog.GVK) string { return "API " + g.Kind + "." + g.Group }
