// Package cache gives fast access to catalogs. It stores an index of each
// catalog and detects outdated indexes. It then reads the catalog and writes
// the index again.
//
// An index is never trusted blindly: one that is damaged, of another version
// or older than its catalog is ignored. A failure to write an index only
// costs time in the next run.
//
// Start from [Cache], [Cache.Open] and [CatalogSet.Pick]. [Index] is the file
// format.
package cache

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/store"
	"github.com/quayside/quayside/internal/model"
)

// Cache holds the store of the indexes and the place to find catalogs.
type Cache struct {
	Store   *store.Store
	Place   source.Place
	Version string // of the program; indexes of other versions are ignored

	Progress func(Catalog, Phase) // called while a catalog is opened; may be nil
	Now      func() time.Time     // the clock that files are compared with; nil means time.Now
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
	Finding  Phase = iota // locating the catalog and its state; downloads images
	Known                 // the index is valid; final phase
	Indexing              // reading the catalog and writing its index
)

func (c *Cache) reportProgress(cat Catalog, phase Phase) {
	if c.Progress != nil {
		c.Progress(cat, phase)
	}
}

// Catalog is a catalog to open, with its settings.
type Catalog struct {
	ID       model.ID
	Source   source.Ref // reference to record; empty if the catalog is unavailable
	At       source.Ref // reference to read: Source, possibly by digest
	Why      string     // reason for an empty Source
	Priority int
	Labels   map[string]string
	Pos      diag.Pos // position of the declaration
}

// Fill copies the settings of the catalog to c.
func (cat Catalog) Fill(c *model.Content) {
	c.ID, c.Priority, c.Labels, c.Source = cat.ID, cat.Priority, cat.Labels, string(cat.Source)
}

// CatalogSet is a set of opened catalogs.
type CatalogSet struct {
	books  []*catalogReader
	broken map[model.ID]error
}

// Open opens catalogs. It records a catalog that cannot be read as broken,
// with the error, and leaves the decision to the caller. digests requests the
// digests of the catalogs; for directories this hashes all files.
func (c *Cache) Open(ctx context.Context, cats []Catalog, digests bool) *CatalogSet {
	sh := &CatalogSet{broken: map[model.ID]error{}}
	for _, cat := range cats {
		c.reportProgress(cat, Finding)
		b, err := c.open(ctx, cat, digests)
		if err != nil {
			sh.AddBroken(cat, err)
			continue
		}
		sh.books = append(sh.books, b)
	}
	return sh
}

// Add adds a catalog that is already loaded.
func (sh *CatalogSet) Add(cat Catalog, whole *model.Catalog) {
	sh.books = append(sh.books, &catalogReader{Catalog: cat, whole: whole})
}

// AddBroken adds a catalog that could not be loaded.
func (sh *CatalogSet) AddBroken(cat Catalog, err error) {
	sh.broken[cat.ID] = diag.Errorf(cat.Pos, "%w", err)
}

// Broken returns the error of a broken catalog, or nil.
func (sh *CatalogSet) Broken(id model.ID) error { return sh.broken[id] }

// Close closes all catalogs.
func (sh *CatalogSet) Close() {
	for _, b := range sh.books {
		b.close()
	}
}

// Pick returns the catalogs with the parts that pick selects, and the names
// of all packages. It ignores a damaged index and loads its catalog instead.
func (sh *CatalogSet) Pick(ctx context.Context, pick Picker) (*model.Index, error) {
	for {
		cats, err := sh.tryPick(pick)
		var damaged *faultError
		if errors.As(err, &damaged) {
			b := sh.books[slices.IndexFunc(sh.books, func(b *catalogReader) bool { return b.index == damaged.index })]
			if err := b.readAll(ctx); err != nil {
				sh.AddBroken(b.Catalog, err)
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		x, err := model.NewIndex(cats...)
		if err != nil {
			return nil, err
		}
		for id, err := range sh.broken {
			x = x.WithBroken(id, err)
		}
		return x, nil
	}
}

// tryPick runs pick once. It returns a *faultError for a damaged index.
func (sh *CatalogSet) tryPick(pick Picker) (cats []*model.Catalog, err error) {
	var beside model.Needs
	var books []*catalogReader
	var indexes []*Index
	for _, b := range sh.books {
		switch {
		case b.whole != nil:
			cats = append(cats, b.whole)
			beside = beside.Union(b.whole.Needs())
		case b.index != nil:
			books, indexes = append(books, b), append(indexes, b.index)
		}
	}
	contents, err := pick(indexes, beside)
	if err != nil {
		return nil, err
	}
	for i, c := range contents {
		books[i].Fill(&c)
		c.Digest = books[i].digest
		cat, err := model.New(c)
		if err != nil {
			return nil, indexes[i].faultf("%v", err)
		}
		cats = append(cats, cat)
	}
	return cats, nil
}

// Summary is a package with its catalog.
type Summary struct {
	model.Summary
	Catalog model.ID
}

// Search returns the packages with a search text that passes match (nil:
// all), by name, then by catalog.
func (sh *CatalogSet) Search(ctx context.Context, match func(text string) bool) ([]Summary, error) {
	var out []Summary
	for _, b := range sh.books {
		found, err := b.search(match)
		if err != nil { // damage is only detected on reading
			if err := b.readAll(ctx); err != nil {
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

// Contents gives access to the content of a catalog's bundles.
type Contents struct {
	catalog *source.Catalog
	book    *catalogReader
}

// OpenContents opens a catalog for reading the content of bundles. It does not
// load the catalog, but takes positions of bundles from the index if there is
// one.
func (c *Cache) OpenContents(ctx context.Context, ref source.Ref) (*Contents, error) {
	src, err := source.Find(ctx, c.Place, ref)
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
	c.book.close()
}

// Bundle returns the content of a bundle embedded in the catalog, or an error
// that wraps fs.ErrNotExist if it is not embedded.
func (c *Contents) Bundle(ctx context.Context, pkg, name string) (fs.FS, error) {
	return c.catalog.Bundle(ctx, pkg, name, c.book.bundle(pkg, name))
}
