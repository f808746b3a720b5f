package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Compare orders IDs by namespace, then by name.
func (id ID) Compare(other ID) int {
	return cmp.Or(strings.Compare(id.Namespace, other.Namespace), strings.Compare(id.Name, other.Name))
}

// Index is an immutable set of catalogs for resolution. A catalog that could not be read is
// recorded as broken.
type Index struct {
	catalogs []*Catalog // by ID
	byID     map[ID]*Catalog
	broken   map[ID]error
}

// NewIndex returns an index of cats, which may be in any order. It returns an error if two catalogs
// have the same ID.
func NewIndex(cats ...*Catalog) (*Index, error) {
	x := &Index{catalogs: slices.Clone(cats), byID: make(map[ID]*Catalog, len(cats)), broken: map[ID]error{}}
	slices.SortFunc(x.catalogs, func(a, b *Catalog) int { return a.id.Compare(b.id) })
	for _, c := range x.catalogs {
		if _, ok := x.byID[c.id]; ok {
			return nil, fmt.Errorf("duplicate catalog %q", c.id)
		}
		x.byID[c.id] = c
	}
	return x, nil
}

// Catalogs returns the catalogs sorted by ID, without broken ones.
func (x *Index) Catalogs() []*Catalog { return slices.Clone(x.catalogs) }

// Catalog returns the catalog with this ID, and whether it exists. Broken catalogs are not
// returned.
func (x *Index) Catalog(id ID) (*Catalog, bool) {
	c, ok := x.byID[id]
	return c, ok
}

// WithBroken returns a copy of x that records catalog id as broken, with err as the reason.
func (x *Index) WithBroken(id ID, err error) *Index {
	next := &Index{catalogs: slices.Clone(x.catalogs), byID: maps.Clone(x.byID), broken: maps.Clone(x.broken)}
	next.broken[id] = err
	if c, ok := next.byID[id]; ok {
		delete(next.byID, id)
		next.catalogs = slices.DeleteFunc(next.catalogs, func(d *Catalog) bool { return d == c })
	}
	return next
}

// Broken returns the errors of the unreadable catalogs by ID.
func (x *Index) Broken() map[ID]error { return maps.Clone(x.broken) }

// CatalogsWith returns the catalogs that have a package of this name, sorted by ID. Packages in
// Content.Unread are included.
func (x *Index) CatalogsWith(pkg string) []*Catalog {
	var having []*Catalog
	for _, c := range x.catalogs {
		if _, ok := slices.BinarySearch(c.names, pkg); ok {
			having = append(having, c)
		}
	}
	return having
}

// WithAPIs returns a copy of x in which bundles of a package provide exactly the given APIs. It is for
// bundles, such as charts, whose APIs are not in the catalog. It returns x if nothing changes.
func (x *Index) WithAPIs(id ID, pkg string, bundles []string, apis []GVK) (*Index, error) {
	return x.withBundles(id, pkg, func(b *Bundle) bool {
		return slices.Contains(bundles, b.Name()) && !slices.Equal(b.facts.Provides, apis)
	}, func(b *BundleData) { b.Properties = withGVKs(b.Properties, apis) })
}

// WithKubeVersions returns a copy of x in which a bundle supports exactly the versions of Kubernetes in a range. It
// is for bundles whose catalog does not list the range, such as charts in a registry. It returns x if nothing changes.
func (x *Index) WithKubeVersions(id ID, pkg, bundle, versions string) (*Index, error) {
	return x.withBundles(id, pkg, func(b *Bundle) bool {
		return b.Name() == bundle && b.data.Metadata.KubeVersions != versions
	}, func(b *BundleData) { b.Metadata.KubeVersions = versions })
}

// withBundles returns a copy of x in which the selected bundles of a package are changed. It returns x if none is selected.
func (x *Index) withBundles(id ID, pkg string, selected func(*Bundle) bool, change func(*BundleData)) (*Index, error) {
	c, ok := x.byID[id]
	if !ok || c.byName[pkg] == nil {
		return x, nil
	}
	names := map[string]bool{}
	for _, b := range c.byName[pkg].bundles {
		if selected(b) {
			names[b.Name()] = true
		}
	}
	if len(names) == 0 {
		return x, nil
	}
	content := Content{ID: c.id, Priority: c.priority, Labels: c.labels, Source: c.source, Digest: c.digest, Unread: c.names, Warnings: c.warnings}
	for _, p := range c.packages {
		data := *p.data
		if data.Name == pkg {
			data.Bundles = slices.Clone(data.Bundles)
			for i, b := range data.Bundles {
				if names[b.Name] {
					change(&data.Bundles[i])
				}
			}
		}
		content.Packages = append(content.Packages, data)
	}
	next, err := New(content)
	if err != nil {
		return nil, err
	}
	out := &Index{catalogs: slices.Clone(x.catalogs), byID: maps.Clone(x.byID), broken: x.broken}
	out.byID[id] = next
	out.catalogs[slices.Index(out.catalogs, c)] = next
	return out, nil
}

// withGVKs returns a copy of ps in which the olm.gvk properties are replaced by those of apis.
func withGVKs(ps []Property, apis []GVK) []Property {
	out := slices.DeleteFunc(slices.Clone(ps), func(p Property) bool { return p.Type == TypeGVK })
	for _, g := range apis {
		out = append(out, GVKProperty(g))
	}
	return out
}
