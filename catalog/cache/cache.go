// Package cache opens catalogs quickly. It stores an index of each catalog. If an index is
// missing or out of date, it loads the whole catalog and writes a new index.
//
// An index is never trusted blindly: it is ignored if it is damaged, of another version or older
// than its catalog. A failure to write an index only makes the next run slower.
//
// Start from [Cache], [Cache.Open] and [CatalogSet.Pick]. [Index] is the file format.
//
// There is no compatibility promise yet: exported names may change in any release.
package cache

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/store"
)

// Cache opens catalogs with the indexes in a store.
type Cache struct {
	Store    *store.Store
	Resolver source.Resolver
	Version  string // version of the program; indexes of other versions are ignored

	Progress func(CatalogSpec, Phase) // called while a catalog is opened; may be nil
	Now      func() time.Time         // current time, compared with the times of files; nil means time.Now
}

// clock returns the current time by the clock of the cache.
func (c *Cache) clock() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// Phase is a phase of opening a catalog.
type Phase int

// The phases, in order.
const (
	Locating Phase = iota // locating the catalog, which may download an image
	Known                 // the index is valid; final phase
	Indexing              // reading the catalog and writing its index
)

func (c *Cache) reportProgress(cat CatalogSpec, phase Phase) {
	if c.Progress != nil {
		c.Progress(cat, phase)
	}
}

// CatalogSpec is a catalog to open, with its settings.
type CatalogSpec struct {
	ID       catalog.ID
	Source   source.Ref // reference for the lock; empty if the catalog is unavailable
	At       source.Ref // reference to open: Source, possibly by digest
	Why      string     // reason for an empty Source
	Priority int
	Labels   map[string]string
	Pos      diag.Pos // position of the declaration
}

// Fill copies the settings of the catalog to c.
func (cat CatalogSpec) Fill(c *catalog.Content) {
	c.ID, c.Priority, c.Labels, c.Source = cat.ID, cat.Priority, cat.Labels, string(cat.Source)
}

// CatalogSet is a set of opened catalogs.
type CatalogSet struct {
	readers []*catalogReader
	broken  map[catalog.ID]error
}

// Open opens catalogs. It records a catalog that cannot be opened as broken; the caller decides
// whether that is an error. digests requests the digests of the catalogs; for directories, this
// hashes all files.
func (c *Cache) Open(ctx context.Context, cats []CatalogSpec, digests bool) *CatalogSet {
	set := &CatalogSet{broken: map[catalog.ID]error{}}
	for _, cat := range cats {
		c.reportProgress(cat, Locating)
		b, err := c.open(ctx, cat, digests)
		if err != nil {
			set.AddBroken(cat, err)
			continue
		}
		set.readers = append(set.readers, b)
	}
	return set
}

// Add adds a catalog that is already loaded.
func (set *CatalogSet) Add(cat CatalogSpec, whole *catalog.Catalog) {
	set.readers = append(set.readers, &catalogReader{CatalogSpec: cat, whole: whole})
}

// AddBroken adds a catalog that could not be loaded.
func (set *CatalogSet) AddBroken(cat CatalogSpec, err error) {
	set.broken[cat.ID] = diag.Errorf(cat.Pos, "%w", err)
}

// Broken returns the error of a broken catalog, or nil.
func (set *CatalogSet) Broken(id catalog.ID) error { return set.broken[id] }

// Close closes all catalogs.
func (set *CatalogSet) Close() {
	for _, b := range set.readers {
		b.close()
	}
}

// Pick returns an index of the catalogs, with the packages that pick selects and the names of all
// packages. If the stored index of a catalog is damaged, it loads the whole catalog instead.
func (set *CatalogSet) Pick(ctx context.Context, pick Picker) (*catalog.Index, error) {
	for {
		cats, err := set.tryPick(pick)
		var damaged *faultError
		if errors.As(err, &damaged) {
			b := set.readers[slices.IndexFunc(set.readers, func(b *catalogReader) bool { return b.index == damaged.index })]
			if err := b.readAll(ctx); err != nil {
				set.AddBroken(b.CatalogSpec, err)
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
		for id, err := range set.broken {
			x = x.WithBroken(id, err)
		}
		return x, nil
	}
}

// tryPick calls pick once. It returns a *faultError if an index is damaged.
func (set *CatalogSet) tryPick(pick Picker) (cats []*catalog.Catalog, err error) {
	var needs catalog.Needs
	var readers []*catalogReader
	var indexes []*Index
	for _, b := range set.readers {
		switch {
		case b.whole != nil:
			cats = append(cats, b.whole)
			needs = needs.Union(b.whole.Needs())
		case b.index != nil:
			readers, indexes = append(readers, b), append(indexes, b.index)
		}
	}
	contents, err := pick(indexes, needs)
	if err != nil {
		return nil, err
	}
	for i, c := range contents {
		readers[i].Fill(&c)
		c.Digest = readers[i].digest
		cat, err := catalog.New(c)
		if err != nil {
			return nil, indexes[i].faultf("%v", err)
		}
		cats = append(cats, cat)
	}
	return cats, nil
}

// Summary is a package with its catalog.
type Summary struct {
	catalog.Summary
	Catalog catalog.ID
}

// Search returns the packages whose search text passes match, sorted by name, then by catalog. A
// nil match selects all packages. The error is one of reading a catalog.
func (set *CatalogSet) Search(ctx context.Context, match func(text string) bool) ([]Summary, error) {
	var out []Summary
	for _, b := range set.readers {
		found, err := b.search(match)
		if err != nil { // damage is only detected while reading
			if err := b.readAll(ctx); err != nil {
				return nil, err
			}
			if found, err = b.search(match); err != nil {
				return nil, err
			}
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

// Contents reads the content of a catalog's bundles.
type Contents struct {
	catalog *source.OpenedCatalog
	reader  *catalogReader
}

// OpenContents opens a catalog for reading the content of bundles. It does not load the catalog;
// if there is an index, it finds bundles by their positions in it.
func (c *Cache) OpenContents(ctx context.Context, ref source.Ref) (*Contents, error) {
	src, err := source.Find(ctx, c.Resolver, ref)
	if err != nil {
		return nil, err
	}
	opened, err := src.Open(ctx)
	if err != nil {
		src.Close()
		return nil, err
	}
	b := &catalogReader{cache: c, source: src}
	b.openIndex()
	return &Contents{opened, b}, nil
}

// Close closes the catalog.
func (c *Contents) Close() {
	c.catalog.Close()
	c.reader.close()
}

// Bundle returns the content of a bundle embedded in the catalog, or an error
// that wraps fs.ErrNotExist if it is not embedded.
func (c *Contents) Bundle(ctx context.Context, pkg, name string) (fs.FS, error) {
	return c.catalog.Bundle(ctx, pkg, name, c.reader.bundle(pkg, name))
}
