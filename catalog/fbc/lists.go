package fbc

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
)

// packages are packages of a catalog, with what belongs to them so far, in
// whatever order it comes. The zero value holds none.
type packages struct {
	byName map[string]*catalog.PackageData
	again  []catalog.PackageData // further objects for the same package, which hold nothing else
}

// of returns the package of that name, which nothing may have declared yet.
func (ps *packages) of(name string) *catalog.PackageData {
	p, ok := ps.byName[name]
	if !ok {
		if ps.byName == nil {
			ps.byName = map[string]*catalog.PackageData{}
		}
		p = &catalog.PackageData{Name: name, Undeclared: true}
		ps.byName[name] = p
	}
	return p
}

// add adds a package, or more of one. Of several objects for the same package,
// the first in the catalog has all that belongs to it.
func (ps *packages) add(more catalog.PackageData) {
	p := ps.of(more.Name)
	first, second := *p, more
	if p.Undeclared || !more.Undeclared && more.Pos.Compare(p.Pos) < 0 {
		first, second = more, *p
	}
	first.Channels, first.Bundles = append(p.Channels, more.Channels...), append(p.Bundles, more.Bundles...)
	first.Deprecations = append(p.Deprecations, more.Deprecations...)
	first.Lifecycles = append(p.Lifecycles, more.Lifecycles...)
	*p = first
	if !second.Undeclared {
		second.Channels, second.Bundles, second.Deprecations, second.Lifecycles = nil, nil, nil, nil
		ps.again = append(ps.again, second)
	}
}

// sorted returns all packages, everything by name. It takes over what ps holds.
func (ps *packages) sorted() []catalog.PackageData {
	all := ps.again
	for _, p := range ps.byName {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(p, q catalog.PackageData) int {
		return cmp.Or(strings.Compare(p.Name, q.Name), p.Pos.Compare(q.Pos))
	})
	for i := range all {
		sortPackage(&all[i])
	}
	return all
}

func sortPackage(p *catalog.PackageData) {
	slices.SortFunc(p.Channels, func(a, b catalog.ChannelData) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), a.Pos.Compare(b.Pos))
	})
	slices.SortFunc(p.Bundles, func(a, b catalog.BundleData) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), a.Pos.Compare(b.Pos))
	})
	slices.SortFunc(p.Deprecations, func(a, b catalog.DeprecationData) int {
		return cmp.Or(strings.Compare(a.Schema, b.Schema), strings.Compare(a.Name, b.Name), a.Pos.Compare(b.Pos))
	})
	slices.SortFunc(p.Lifecycles, func(a, b catalog.LifecycleData) int { return a.Pos.Compare(b.Pos) })
	p.Channels, p.Bundles = slices.Clip(p.Channels), slices.Clip(p.Bundles)
}
