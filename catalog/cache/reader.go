package cache

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/model"
)

// Kinds of store records. Their keys are names of sources.
const (
	indexKind  = "catalog-index"
	digestKind = "catalog-digest" // with the state of the catalog
)

// catalogReader gives access to one catalog: through an index from an earlier run, or
// the whole catalog.
type catalogReader struct {
	Catalog
	cache   *Cache
	source  *source.Source
	digests bool // the digest is wanted

	index  *Index
	file   io.Closer      // contains the index
	whole  *model.Catalog // nil if there is an index
	at     state          // of the index or of the whole catalog
	digest model.Digest   // if requested or cheap
}

// open opens the index of a catalog. Without a valid index, it loads the
// catalog and writes an index for the next run.
func (c *Cache) open(ctx context.Context, cat Catalog, digests bool) (*catalogReader, error) {
	if cat.Source == "" {
		return nil, errors.New(cat.Why)
	}
	src, err := source.Find(ctx, c.Place, cat.At)
	if err != nil {
		return nil, err
	}
	b := &catalogReader{Catalog: cat, cache: c, source: src, digests: digests}
	if b.openIndex() {
		c.reportProgress(cat, Known)
		err = b.findDigest(ctx)
	} else {
		err = b.readAll(ctx)
	}
	if err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *catalogReader) close() {
	b.dropIndex()
	if b.source != nil {
		b.source.Close()
	}
}

func (b *catalogReader) dropIndex() {
	if b.file != nil {
		_ = b.file.Close() // only read
	}
	b.index, b.file = nil, nil
}

// openIndex opens the index for the current state of the catalog and reports
// whether there is one.
func (b *catalogReader) openIndex() bool {
	f, size, err := b.cache.Store.OpenFile(indexKind, b.source.Name)
	if err != nil {
		return false
	}
	now := b.currentState()
	x, err := OpenIndex(f, size, now.key)
	if err != nil {
		f.Close()
		return false
	}
	b.index, b.file, b.at = x, f, now
	return true
}

// readAll loads the whole catalog because there is no valid index, and writes
// an index for the next run.
func (b *catalogReader) readAll(ctx context.Context) error {
	b.dropIndex()
	b.at = b.currentState() // before reading, to detect later changes
	c, err := b.source.Open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	b.cache.reportProgress(b.Catalog, Indexing)
	content, err := c.Content(ctx)
	if err != nil {
		return err
	}
	if b.digests || b.source.Files == nil || b.source.File != "" { // avoid hashing a directory needlessly
		if err := b.addDigest(c); err != nil {
			return err
		}
	}
	b.Fill(&content)
	content.Digest = b.digest
	if b.whole, err = model.New(content); err != nil || !b.at.keep {
		return err
	}
	_ = b.cache.Store.PutFile(indexKind, b.source.Name, func(f *os.File) error { // without the index the next run is only slower
		return WriteIndex(f, b.at.key, b.whole)
	})
	return nil
}

// findDigest sets the digest of a catalog with an index, if requested.
func (b *catalogReader) findDigest(ctx context.Context) error {
	if !b.digests {
		return nil
	}
	known, err := b.cache.Store.Record(digestKind, b.source.Name)
	if digest, ok := strings.CutPrefix(string(known), b.at.key+"\n"); err == nil && ok {
		b.digest = model.Digest(digest)
		return nil
	}
	c, err := b.source.Open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return b.addDigest(c)
}

// addDigest computes the digest of a catalog and stores it.
func (b *catalogReader) addDigest(c *source.Catalog) error {
	digest, err := c.Digest()
	if err != nil {
		return err
	}
	if b.currentState().key != b.at.key {
		return errors.New("the catalog changed while it was being read: run the command again")
	}
	b.digest = digest
	if b.at.keep {
		_ = b.cache.Store.PutRecord(digestKind, b.source.Name, []byte(b.at.key+"\n"+string(digest))) // on failure the next run computes it again
	}
	return nil
}

// state identifies a state of a catalog.
type state struct {
	key  string // unique to the state
	keep bool   // whether to store an index of this state
}

// currentState returns the current state of the catalog.
func (b *catalogReader) currentState() state {
	src := b.source
	key := b.cache.Version + " " + src.Name
	if src.Files == nil {
		return state{key: key, keep: true}
	}
	st, err := stampOf(src.Files, src.File, b.cache.clock())
	if err != nil {
		return state{} // reading the catalog reports the error
	}
	return state{key + " " + st.sum(), st.isSettled()}
}

// search returns the packages with a search text that passes match, by name.
func (b *catalogReader) search(match func(text string) bool) ([]model.Summary, error) {
	if b.index != nil {
		return b.index.Search(match)
	}
	var out []model.Summary
	if b.whole != nil {
		for _, p := range b.whole.Packages() {
			if match == nil || match(p.SearchText()) {
				out = append(out, p.Summary())
			}
		}
	}
	return out, nil
}

// bundle returns a bundle from the index, or nil if it is unknown or
// unreadable.
func (b *catalogReader) bundle(pkg, name string) *model.Bundle {
	if b.index == nil {
		return nil
	}
	found, err := PickNames(pkg)([]*Index{b.index}, model.Needs{})
	if err != nil {
		return nil
	}
	cat, err := model.New(found[0])
	if err != nil {
		return nil
	}
	p, ok := cat.Package(pkg)
	if !ok {
		return nil
	}
	bundle, _ := p.Bundle(name)
	return bundle
}
