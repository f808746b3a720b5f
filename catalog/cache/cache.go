// Package cache answers questions about catalogs without reading them, where
// they were read before: it keeps an index of each in the store, knows when it
// still holds, and reads the catalog and writes the index anew when it does not.
//
// What an index cannot be is wrong: one that is damaged, of another version or
// of files that have changed is as good as none. That none can be written costs
// the next run time and no more.
//
// Start from [Cache], [Cache.Open] and [Shelf.Pick]. How an index is written is
// in catalog/cache/index.
package cache

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache/index"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/store"
)

// Cache is where indexes are kept, and where the catalogs are that they are of.
type Cache struct {
	Store   *store.Store
	Place   source.Place
	Version string // of the program: an index of another one is not used

	Progress func(Catalog, Phase) // called as a catalog is opened; may be nil
}

// Phase is what becomes of a catalog that is opened.
type Phase int

// The phases, in their order.
const (
	Finding  Phase = iota // where it is, and in which state; images are fetched now
	Known                 // it was read before, and its index holds: the last one
	Indexing              // it is read, and an index of it written
)

func (c *Cache) tell(cat Catalog, phase Phase) {
	if c.Progress != nil {
		c.Progress(cat, phase)
	}
}

// Catalog is a catalog that is wanted, and how it stands among others.
type Catalog struct {
	ID       catalog.ID
	Source   source.Ref // as it is recorded; empty where nobody can read it
	At       source.Ref // what is read of it: Source, or that by digest
	Why      string     // why Source is empty
	Priority int
	Labels   map[string]string
	Pos      diag.Pos // of what declares it
}

// Fill writes into c what is said of the catalog.
func (cat Catalog) Fill(c *catalog.Content) {
	c.ID, c.Priority, c.Labels, c.Source = cat.ID, cat.Priority, cat.Labels, string(cat.Source)
}

// Shelf is a set of catalogs that can be asked for parts of themselves.
type Shelf struct {
	books  []*book
	broken map[catalog.ID]error
}

// Open opens catalogs. One that cannot be read is kept as broken, with the
// reason: whether that matters is for others to say. digests says whether the
// digests of catalogs are wanted, which directories have to be hashed for.
func (c *Cache) Open(ctx context.Context, cats []Catalog, digests bool) *Shelf {
	sh := &Shelf{broken: map[catalog.ID]error{}}
	for _, cat := range cats {
		c.tell(cat, Finding)
		b, err := c.open(ctx, cat, digests)
		if err != nil {
			sh.AddBroken(cat, err)
			continue
		}
		sh.books = append(sh.books, b)
	}
	return sh
}

// Add puts a catalog on the shelf that was read elsewhere.
func (sh *Shelf) Add(cat Catalog, whole *catalog.Catalog) {
	sh.books = append(sh.books, &book{Catalog: cat, whole: whole})
}

// AddBroken puts one on the shelf that could not be read.
func (sh *Shelf) AddBroken(cat Catalog, err error) {
	sh.broken[cat.ID] = diag.Errorf(cat.Pos, "%w", err)
}

// Broken returns why a catalog could not be read, nil where it could.
func (sh *Shelf) Broken(id catalog.ID) error { return sh.broken[id] }

// Close releases what opening has taken.
func (sh *Shelf) Close() {
	for _, b := range sh.books {
		b.close()
	}
}

// Picker takes from indexes what is wanted. beside is what other catalogs,
// which have no index, need of them.
type Picker func(files []*index.File, beside catalog.Needs) ([]catalog.Content, error)

// Closure picks whatever could meet want.
func Closure(want catalog.Needs) Picker {
	return func(files []*index.File, beside catalog.Needs) ([]catalog.Content, error) {
		return index.Load(files, want.And(beside))
	}
}

// Only picks packages by name, or none.
func Only(names ...string) Picker {
	return func(files []*index.File, _ catalog.Needs) ([]catalog.Content, error) {
		return index.Select(files, names...)
	}
}

// Pick returns the catalogs with what pick takes from each, and the names of
// all packages. A damaged index is put aside and its catalog read anew.
func (sh *Shelf) Pick(ctx context.Context, pick Picker) (*catalog.Index, error) {
	for {
		cats, err := sh.try(pick)
		var damaged *index.FaultError
		if errors.As(err, &damaged) {
			b := sh.indexed()[damaged.Index]
			if err := b.again(ctx); err != nil {
				sh.AddBroken(b.Catalog, err)
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		x, err := catalog.NewIndex(cats...)
		if err != nil {
			return nil, err
		}
		for id, err := range sh.broken {
			x = x.WithBroken(id, err)
		}
		return x, nil
	}
}

// indexed returns the books that have an index.
func (sh *Shelf) indexed() []*book {
	return slices.DeleteFunc(slices.Clone(sh.books), func(b *book) bool { return b.index == nil })
}

// try picks once. A damaged index is an *index.FaultError, by its number among
// those that are indexed.
func (sh *Shelf) try(pick Picker) (cats []*catalog.Catalog, err error) {
	var beside catalog.Needs
	for _, b := range sh.books {
		if b.whole != nil {
			cats = append(cats, b.whole)
			beside = beside.And(b.whole.Needs())
		}
	}
	books := sh.indexed()
	files := make([]*index.File, len(books))
	for i, b := range books {
		files[i] = b.index
	}
	contents, err := pick(files, beside)
	if err != nil {
		return nil, err
	}
	for i, c := range contents {
		books[i].Fill(&c)
		c.Digest = cmp.Or(c.Digest, books[i].digest)
		cat, err := catalog.New(c)
		if err != nil {
			return nil, &index.FaultError{Index: i, Reason: err.Error()}
		}
		cats = append(cats, cat)
	}
	return cats, nil
}

// Summary is a package of one of several catalogs.
type Summary struct {
	catalog.Summary
	Catalog catalog.ID
}

// Search returns the packages whose search text passes match (nil: all), by
// name, then by catalog.
func (sh *Shelf) Search(ctx context.Context, match func(text string) bool) ([]Summary, error) {
	var out []Summary
	for _, b := range sh.books {
		found, err := b.search(match)
		if err != nil { // only now is the index known to be damaged
			if err := b.again(ctx); err != nil {
				return nil, err
			}
			found, _ = b.search(match)
		}
		for _, s := range found {
			out = append(out, Summary{s, b.ID})
		}
	}
	slices.SortStableFunc(out, func(a, b Summary) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Catalog.String(), b.Catalog.String()))
	})
	return out, nil
}

// Contents is a catalog that the content of bundles is taken from.
type Contents struct {
	catalog *source.Catalog
	book    *book
}

// Contents opens a catalog to take the content of bundles from it. It is not
// read for that; where there is an index, that says where each bundle is.
func (c *Cache) Contents(ctx context.Context, ref source.Ref) (*Contents, error) {
	src, err := source.Find(ctx, c.Place, ref)
	if err != nil {
		return nil, err
	}
	opened, err := src.Open(ctx)
	if err != nil {
		src.Close()
		return nil, err
	}
	b := &book{cache: c, source: src}
	b.openIndex()
	return &Contents{opened, b}, nil
}

// Close releases what opening has taken.
func (c *Contents) Close() {
	c.catalog.Close()
	c.book.close()
}

// Bundle returns the content of a bundle that the catalog itself holds, and an
// error that wraps fs.ErrNotExist where it holds none.
func (c *Contents) Bundle(ctx context.Context, pkg, name string) (fs.FS, error) {
	return c.catalog.Bundle(ctx, pkg, name, c.book.bundle(pkg, name))
}
