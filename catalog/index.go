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
