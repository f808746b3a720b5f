package cache

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/source"
)

// Kinds of items in the store. The key of an item is the unique name of its source.
const (
	indexKind  = "catalog-index"
	digestKind = "catalog-digest" // state of a catalog and its digest in this state
)

// catalogReader reads one catalog: from its index, or if there is no valid index, from the whole
// catalog in memory.
type catalogReader struct {
	CatalogSpec
	cache   *Cache
	source  *source.Source
	digests bool // the caller requested the digest

	index  *Index
	file   io.Closer        // the index file
	whole  *catalog.Catalog // the whole catalog; nil if there is an index
	at     state            // state of the catalog for which index or whole is valid
	digest catalog.Digest   // digest of the catalog; may be empty if it was not requested
}

// open opens a catalog. Without a valid index, it loads the whole catalog and writes an index for
// the next run.
func (c *Cache) open(ctx context.Context, cat CatalogSpec, digests bool) (*catalogReader, error) {
	if cat.Source == "" {
		return nil, errors.New(cat.Why)
	}
	src, err := source.Find(ctx, c.Resolver, cat.At)
	if err != nil {
		return nil, err
	}
	b := &catalogReader{CatalogSpec: cat, cache: c, source: src, digests: digests}
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
		_ = b.file.Close() // ignore the error: the file is only read
	}
	b.index, b.file = nil, nil
}

// openIndex opens the stored index and reports whether it is valid for the current state of the
// catalog.
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

// readAll loads the whole catalog and writes an index for the next run.
func (b *catalogReader) readAll(ctx context.Context) error {
	b.dropIndex()
	b.at = b.currentState() // before loading, so that a change during loading makes the index out of date
	c, err := b.source.Open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	b.cache.reportProgress(b.CatalogSpec, Indexing)
	content, err := c.Content(ctx)
	if err != nil {
		return err
	}
	if b.digests || b.source.Files == nil || b.source.File != "" { // hashing a directory takes long: only on request
		if err := b.addDigest(c); err != nil {
			return err
		}
	}
	b.Fill(&content)
	content.Digest = b.digest
	if b.whole, err = catalog.New(content); err != nil || !b.at.keep {
		return err
	}
	_ = b.cache.Store.PutFile(indexKind, b.source.Name, func(f *os.File) error { // ignore an error: the next run loads the catalog again
		return WriteIndex(f, b.at.key, b.whole)
	})
	return nil
}

// findDigest sets the digest of a catalog that was opened by its index, if the caller of Open requested digests.
func (b *catalogReader) findDigest(ctx context.Context) error {
	if !b.digests {
		return nil
	}
	known, err := b.cache.Store.Record(digestKind, b.source.Name)
	if digest, ok := strings.CutPrefix(string(known), b.at.key+"\n"); err == nil && ok {
		b.digest = catalog.Digest(digest)
		return nil
	}
	c, err := b.source.Open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return b.addDigest(c)
}

// addDigest computes the digest of a catalog and stores it for the next run.
func (b *catalogReader) addDigest(c *source.OpenedCatalog) error {
	digest, err := c.Digest()
	if err != nil {
		return err
	}
	if b.currentState().key != b.at.key {
		return errors.New("the catalog changed while it was being read: run the command again")
	}
	b.digest = digest
	if b.at.keep {
		_ = b.cache.Store.PutRecord(digestKind, b.source.Name, []byte(b.at.key+"\n"+string(digest))) // ignore an error: the next run computes the digest again
	}
	return nil
}

// state identifies a state of the files of a catalog.
type state struct {
	key  string // different states have different keys
	keep bool   // an index for this state may be stored
}

// currentState returns the current state of the catalog's files. The key of the state also contains
// the version of the program.
func (b *catalogReader) currentState() state {
	src := b.source
	key := b.cache.Version + " " + src.Name
	if src.Files == nil {
		return state{key: key, keep: true}
	}
	st, err := stampOf(src.Files, src.File, b.cache.clock())
	if err != nil {
		return state{} // ignore the error: loading the catalog reports it
	}
	return state{key + " " + st.sum(), st.isSettled()}
}

// search returns the packages whose search text satisfies match, sorted by name.
func (b *catalogReader) search(match func(text string) bool) ([]Summary, error) {
	if b.index != nil {
		return b.index.Search(match)
	}
	var out []Summary
	if b.whole != nil {
		for _, p := range b.whole.Packages() {
			s := Summary{Summary: p.Summary(), APIs: rowOf(p).APIs}
			if match != nil {
				s.Text = p.SearchText()
			}
			if match == nil || match(s.Text) {
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// bundle returns a bundle from the index. It returns nil if there is no index, if the index is
// damaged, or if the bundle does not exist.
func (b *catalogReader) bundle(pkg, name string) *catalog.Bundle {
	if b.index == nil {
		return nil
	}
	found, err := PickNames(pkg)([]*Index{b.index}, catalog.Needs{})
	if err != nil {
		return nil
	}
	cat, err := catalog.New(found[0])
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
