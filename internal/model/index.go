package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Compare orders by namespace, then name.
func (id ID) Compare(other ID) int {
	return cmp.Or(strings.Compare(id.Namespace, other.Namespace), strings.Compare(id.Name, other.Name))
}

// Index is a set of catalogs, some of which may be known to be broken. It does
// not change.
type Index struct {
	catalogs []*Catalog // by ID
	byID     map[ID]*Catalog
	broken   map[ID]error
}

// NewIndex returns an index of cats, given in any order. Two catalogs with the
// same ID are an error.
func NewIndex(cats ...*Catalog) (*Index, error) {
	x := &Index{catalogs: slices.Clone(cats), byID: make(map[ID]*Catalog, len(cats)), broken: map[ID]error{}}
	slices.SortFunc(x.catalogs, func(a, b *Catalog) int { return a.id.Compare(b.id) })
	for _, c := range x.catalogs {
		if _, ok := x.byID[c.id]; ok {
			return nil, fmt.Errorf("catalog %q is given twice", c.id)
		}
		x.byID[c.id] = c
	}
	return x, nil
}

// Catalogs returns the catalogs by ID.
func (x *Index) Catalogs() []*Catalog { return slices.Clone(x.catalogs) }

// Catalog returns the catalog of that ID. One that is broken is not found.
func (x *Index) Catalog(id ID) (*Catalog, bool) {
	c, ok := x.byID[id]
	return c, ok
}

// WithBroken returns an index that also knows that the catalog id could not be
// read, and why. A catalog of that ID is no longer found in it. x stays as it
// is.
func (x *Index) WithBroken(id ID, err error) *Index {
	next := &Index{catalogs: slices.Clone(x.catalogs), byID: maps.Clone(x.byID), broken: maps.Clone(x.broken)}
	next.broken[id] = err
	if c, ok := next.byID[id]; ok {
		delete(next.byID, id)
		next.catalogs = slices.DeleteFunc(next.catalogs, func(d *Catalog) bool { return d == c })
	}
	return next
}

// Broken returns the catalogs that could not be read, and why.
func (x *Index) Broken() map[ID]error { return maps.Clone(x.broken) }

// Having returns the catalogs that hold a package of that name, whether it was
// read or not, by ID.
func (x *Index) Having(pkg string) []*Catalog {
	var having []*Catalog
	for _, c := range x.catalogs {
		if _, ok := slices.BinarySearch(c.names, pkg); ok {
			having = append(having, c)
		}
	}
	return having
}
