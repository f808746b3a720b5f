package fbc

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
)

// objectLists are objects of a catalog, in whatever order they come.
type objectLists struct {
	packages     []catalog.PackageData // without what belongs to them
	channels     []of[catalog.ChannelData]
	bundles      []of[catalog.BundleData]
	deprecations []of[[]catalog.DeprecationData]
}

// of is something that belongs to a package.
type of[T any] struct {
	pkg  string
	data T
}

// of returns the objects of one package.
func (l *objectLists) of(pkg string) objectLists {
	return objectLists{
		packages:     only(l.packages, func(p *catalog.PackageData) bool { return p.Name == pkg }),
		channels:     only(l.channels, func(c *of[catalog.ChannelData]) bool { return c.pkg == pkg }),
		bundles:      only(l.bundles, func(x *of[catalog.BundleData]) bool { return x.pkg == pkg }),
		deprecations: only(l.deprecations, func(x *of[[]catalog.DeprecationData]) bool { return x.pkg == pkg }),
	}
}

// remove removes the objects of one package.
func (l *objectLists) remove(pkg string) {
	l.packages = slices.DeleteFunc(l.packages, func(p catalog.PackageData) bool { return p.Name == pkg })
	l.channels = slices.DeleteFunc(l.channels, func(c of[catalog.ChannelData]) bool { return c.pkg == pkg })
	l.bundles = slices.DeleteFunc(l.bundles, func(x of[catalog.BundleData]) bool { return x.pkg == pkg })
	l.deprecations = slices.DeleteFunc(l.deprecations, func(x of[[]catalog.DeprecationData]) bool { return x.pkg == pkg })
}

func only[T any](list []T, want func(*T) bool) []T {
	var out []T
	for i := range list {
		if want(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

// again returns the lists of next in the memory of l, as far as that is worth
// it. Nothing in l may be in use.
func (l *objectLists) again(next objectLists) objectLists {
	clear(l.channels)
	clear(l.bundles)
	next.channels = append(l.channels[:0], next.channels...)
	next.bundles = append(l.bundles[:0], next.bundles...)
	return next
}

// add adds a package and what belongs to it, one by one.
func (l *objectLists) add(p *catalog.PackageData) {
	if !p.Undeclared {
		bare := *p
		bare.Channels, bare.Bundles, bare.Deprecations = nil, nil, nil
		l.packages = append(l.packages, bare)
	}
	for _, c := range p.Channels {
		l.channels = append(l.channels, of[catalog.ChannelData]{p.Name, c})
	}
	for _, x := range p.Bundles {
		l.bundles = append(l.bundles, of[catalog.BundleData]{p.Name, x})
	}
	if len(p.Deprecations) > 0 {
		l.deprecations = append(l.deprecations, of[[]catalog.DeprecationData]{p.Name, p.Deprecations})
	}
}

// gather puts everything in its package, sorted by name. It takes over what the
// lists hold.
func (l *objectLists) gather() []catalog.PackageData {
	byName := func(p, q catalog.PackageData) int {
		return cmp.Or(strings.Compare(p.Name, q.Name), p.Pos.Compare(q.Pos))
	}
	all := l.packages
	slices.SortFunc(all, byName)
	first := make(map[string]int, len(all))
	for i := range all {
		if _, ok := first[all[i].Name]; !ok {
			first[all[i].Name] = i
		}
	}
	pkg := func(name string) *catalog.PackageData {
		i, ok := first[name]
		if !ok {
			i = len(all)
			first[name] = i
			all = append(all, catalog.PackageData{Name: name, Undeclared: true})
		}
		return &all[i]
	}
	if len(all) == 1 && len(l.bundles) > 0 {
		all[0].Bundles = make([]catalog.BundleData, 0, len(l.bundles)) // most likely all are its
	}
	for _, c := range l.channels {
		p := pkg(c.pkg)
		p.Channels = append(p.Channels, c.data)
	}
	for _, x := range l.bundles {
		p := pkg(x.pkg)
		p.Bundles = append(p.Bundles, x.data)
	}
	for _, x := range l.deprecations {
		p := pkg(x.pkg)
		p.Deprecations = append(p.Deprecations, x.data...)
	}
	slices.SortFunc(all, byName)
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
	p.Channels, p.Bundles = slices.Clip(p.Channels), slices.Clip(p.Bundles)
}
