package fbc

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
)

// packages collects packages and their objects, which may come in any order. The zero value is
// empty.
type packages struct {
	byName     map[string]*catalog.PackageData
	duplicates []catalog.PackageData // second and further olm.package objects with the same name
}

// getOrAdd returns the package with this name. It adds the package if it does not exist.
func (ps *packages) getOrAdd(name string) *catalog.PackageData {
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

// declare adds an olm.package. If several olm.package objects have the same name, the first in file order
// gets the channels, bundles and other objects.
func (ps *packages) declare(declared catalog.PackageData) {
	p := ps.getOrAdd(declared.Name)
	first, second := *p, declared
	if p.Undeclared || declared.Pos.Compare(p.Pos) < 0 {
		first, second = declared, *p
	}
	first.Channels, first.Bundles, first.Deprecations, first.Lifecycles = p.Channels, p.Bundles, p.Deprecations, p.Lifecycles
	*p = first
	if !second.Undeclared {
		second.Channels, second.Bundles, second.Deprecations, second.Lifecycles = nil, nil, nil, nil
		ps.duplicates = append(ps.duplicates, second)
	}
}

// sorted returns all packages, sorted by name. Do not use ps afterwards.
func (ps *packages) sorted() []catalog.PackageData {
	all := ps.duplicates
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
