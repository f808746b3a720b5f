// Package cache opens catalogs quickly. It stores an index of each catalog. If the index is missing
// or out of date, it loads the whole catalog and writes a new index.
//
// An index is used only if its checksums are correct and if this version of the program wrote it
// for the current state of the catalog. If an index cannot be written, the next run is slower, but
// there is no error.
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

// Cache opens catalogs and keeps their indexes in a store.
type Cache struct {
	Store    *store.Store
	Resolver source.Resolver
	Version  string // version of the program; indexes written by other versions are not used

	Progress func(CatalogSpec, Phase) // called while a catalog is opened; may be nil
	Now      func() time.Time         // clock, compared with the modification times of files; nil means time.Now
}

func (c *Cache) clock() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// Phase is a phase of opening a catalog.
type Phase int

// The phases of opening a catalog, in order. Open reports Locating, then either Known or Indexing.
const (
	Locating Phase = iota // locating the catalog, which may download an image
	Known                 // a valid index was found
	Indexing              // reading the catalog and writing its index
)

func (c *Cache) reportProgress(cat CatalogSpec, phase Phase) {
	if c.Progress != nil {
		c.Progress(cat, phase)
	}
}

// CatalogSpec is a declared catalog to open.
type CatalogSpec struct {
	ID       catalog.ID
	Source   source.Ref // reference to record in the lock; empty if the catalog is unavailable
	At       source.Ref // reference to open: the same as Source, or Source with a digest
	Why      string     // reason why Source is empty
	Priority int
	Labels   map[string]string
	Pos      diag.Pos // position of the declaration of the catalog
}

// Fill sets ID, Priority, Labels and Source of c.
func (cat CatalogSpec) Fill(c *catalog.Content) {
	c.ID, c.Priority, c.Labels, c.Source = cat.ID, cat.Priority, cat.Labels, string(cat.Source)
}

// CatalogSet is a set of opened catalogs.
type CatalogSet struct {
	readers []*catalogReader
	broken  map[catalog.ID]error
}

// Open opens catalogs. If a catalog cannot be opened, it records the error: see
// [CatalogSet.Broken]. If digests is true, it also finds the digest of each catalog, which requires
// reading all files of a directory.
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

// AddBroken records that a catalog could not be loaded, with the reason.
func (set *CatalogSet) AddBroken(cat CatalogSpec, err error) {
	set.broken[cat.ID] = diag.Errorf(cat.Pos, "%w", err)
}

// Broken returns the error for a catalog that could not be opened, or nil.
func (set *CatalogSet) Broken(id catalog.ID) error { return set.broken[id] }

// Close closes all catalogs.
func (set *CatalogSet) Close() {
	for _, b := range set.readers {
		b.close()
	}
}

// Pick returns an index for resolution, with the packages that pick selects and the names of all
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

// tryPick calls pick once and returns the catalogs. If a stored index is damaged, the error is a
// *faultError.
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
	APIs    []catalog.GVK // APIs that its bundles provide, sorted; shared, must not be modified
	Text    string        // text that searches match; see [catalog.Package.SearchText]; empty without match
}

// Provides reports whether the package provides an API that matches all words; see [catalog.GVK.IsCalled].
func (s Summary) Provides(words ...string) bool {
	return slices.ContainsFunc(s.APIs, func(g catalog.GVK) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !g.IsCalled(word) })
	})
}

// Search returns the packages whose search text satisfies match, sorted by name, then by catalog.
// If match is nil, it returns all packages. The error is non-nil if a catalog cannot be read.
func (set *CatalogSet) Search(ctx context.Context, match func(text string) bool) ([]Summary, error) {
	var out []Summary
	for _, b := range set.readers {
		found, err := b.search(match)
		if err != nil { // damage of an index is only detected while reading
			if err := b.readAll(ctx); err != nil {
				return nil, err
			}
			if found, err = b.search(match); err != nil {
				return nil, err
			}
		}
		for _, s := range found {
			s.Catalog = b.ID
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b Summary) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Catalog.String(), b.Catalog.String()))
	})
	return out, nil
}

// Contents reads the manifests of bundles that are embedded in a catalog.
type Contents struct {
	catalog *source.OpenedCatalog
	reader  *catalogReader
}

// OpenContents opens a catalog for reading embedded bundles. It does not load the catalog. If there
// is a valid index, bundles are found by their recorded positions, without a search.
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

// Bundle returns the files of a bundle embedded in the catalog. If the bundle is not embedded, the
// error wraps fs.ErrNotExist.
func (c *Contents) Bundle(ctx context.Context, pkg, name string) (fs.FS, error) {
	return c.catalog.Bundle(ctx, pkg, name, c.reader.bundle(pkg, name))
}
