package catalog

import (
	"slices"
)

// Needs lists the packages, APIs and labels in the requirements of bundles, but not how "all", "any" and "not"
// combine them. A bundle that provides none of the items cannot meet any of the requirements. A bundle that
// provides some items does not necessarily meet a requirement.
type Needs struct {
	Anything bool // a requirement may be met by any bundle of any package
	Packages []string
	APIs     []GVK
	Labels   []string
}

// Add adds the packages, APIs and labels in r.
func (n *Needs) Add(r Requirement) {
	switch r.Kind {
	case RequireGVK:
		n.APIs = append(n.APIs, r.GVK)
	case RequirePackage:
		n.Packages = append(n.Packages, r.Package)
	case RequireLabel:
		n.Labels = append(n.Labels, r.Label)
	case RequireAny:
		for _, sub := range r.Of {
			n.Add(sub)
		}
	case RequireAll:
		n.addAll(r.Of)
	default: // a negation or a CEL expression, which any bundle may meet
		n.Anything = true
	}
}

// addAll adds the items of a RequireAll. It finds the first part that restricts the candidates, and adds only
// the items of this part: a bundle must meet all parts, so one part is enough to find the candidates.
func (n *Needs) addAll(parts []Requirement) {
	for _, sub := range parts {
		var one Needs
		one.Add(sub)
		if !one.Anything {
			n.merge(one)
			return
		}
	}
	n.Anything = true
}

func (n *Needs) merge(m Needs) {
	n.Anything = n.Anything || m.Anything
	n.Packages = append(n.Packages, m.Packages...)
	n.APIs = append(n.APIs, m.APIs...)
	n.Labels = append(n.Labels, m.Labels...)
}

// Union returns the items in n or m, sorted.
func (n Needs) Union(m Needs) Needs {
	var both Needs
	both.merge(n)
	both.merge(m)
	return both.Sorted()
}

// Sorted returns n with all lists sorted and without duplicates.
func (n Needs) Sorted() Needs {
	slices.Sort(n.Packages)
	slices.SortFunc(n.APIs, GVK.Compare)
	slices.Sort(n.Labels)
	n.Packages, n.APIs, n.Labels = slices.Compact(n.Packages), slices.Compact(n.APIs), slices.Compact(n.Labels)
	return n
}

// Needs returns the combined needs of all bundles of p, sorted.
func (p *Package) Needs() Needs {
	var n Needs
	for _, b := range p.bundles {
		for _, r := range b.facts.Requires {
			n.Add(r)
		}
	}
	return n.Sorted()
}

// Needs returns the combined needs of all bundles of c, sorted.
func (c *Catalog) Needs() Needs {
	var n Needs
	for _, p := range c.packages {
		n.merge(p.Needs())
	}
	return n.Sorted()
}
