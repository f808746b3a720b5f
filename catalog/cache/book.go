package cache

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache/index"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
)

// What the store keeps of a catalog, by the name of its source.
const (
	indexKind  = "catalog-index"
	namesKind  = "catalog-files"  // the names of the files of a directory
	digestKind = "catalog-digest" // of a directory, where its index holds none
)

// book is one catalog: an index of it from an earlier run, or all of it.
type book struct {
	Catalog
	cache  *Cache
	source *source.Source

	index  *index.File
	file   io.Closer        // that the index is in
	key    string           // of the index
	digest catalog.Digest   // where the index has none
	whole  *catalog.Catalog // where there is no index
}

// open opens the index of a catalog; where there is none that fits, it reads
// the catalog and leaves an index for the next run.
func (c *Cache) open(ctx context.Context, cat Catalog, digests bool) (*book, error) {
	if cat.Source == "" {
		return nil, errors.New(cat.Why)
	}
	src, err := source.Find(ctx, c.Place, cat.At)
	if err != nil {
		return nil, err
	}
	b := &book{Catalog: cat, cache: c, source: src}
	if b.openIndex() && (!digests || b.addDigest(ctx)) {
		c.tell(cat, Known)
		return b, nil
	}
	if err := b.read(ctx, digests, false); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *book) close() {
	b.dropIndex()
	if b.source != nil {
		b.source.Close()
	}
}

func (b *book) dropIndex() {
	if b.file != nil {
		_ = b.file.Close() // only read from
	}
	b.index, b.file = nil, nil
}

// openIndex opens the index where there is one of the state that the catalog is
// in, and reports whether there is.
func (b *book) openIndex() bool {
	return b.openKey(b.now(true).key) || b.openKey(b.now(false).key)
}

// openKey opens the index if it has that key.
func (b *book) openKey(key string) bool {
	f, size, err := b.cache.Store.OpenFile(indexKind, b.source.Name)
	if err != nil {
		return false
	}
	x, err := index.Open(f, size, key)
	if err != nil {
		f.Close()
		return false
	}
	b.index, b.file, b.key = x, f, key
	return true
}

// addDigest finds the digest of a directory, which its index does not hold, and
// reports false where the directory is no longer what the index is of. The
// digest is remembered, and so nothing is hashed twice.
func (b *book) addDigest(ctx context.Context) bool {
	if b.index.Digest() != "" {
		return true
	}
	known, err := b.cache.Store.Record(digestKind, b.source.Name)
	if digest, ok := strings.CutPrefix(string(known), b.key+"\n"); err == nil && ok {
		b.digest = catalog.Digest(digest)
		return true
	}
	c, err := b.source.Open(ctx)
	if err != nil {
		return false
	}
	defer c.Close()
	if b.digest, err = c.Digest(); err != nil {
		return false
	}
	now := b.now(false)
	if !now.keep || now.key != b.key {
		return false // the files that were hashed may be others
	}
	b.keepDigest(now, b.digest)
	return true
}

// read reads the catalog: package by package into an index where one can be
// kept, which it opens, else as a whole. whole leaves out the former.
func (b *book) read(ctx context.Context, digests, whole bool) error {
	b.dropIndex()
	now := b.now(false) // before the first byte is read
	c, err := b.source.Open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	b.cache.tell(b.Catalog, Indexing)
	if now.keep && c.IsFileBased() && !whole {
		if built, err := b.build(c, now, digests); built || err != nil {
			return err
		}
	}
	return b.readWhole(ctx, c, now)
}

// again reads the catalog whose index is damaged. It does not rely on another
// index.
func (b *book) again(ctx context.Context) error { return b.read(ctx, true, true) }

// build writes and opens an index of a file-based catalog. It reports false
// where that is not possible; an error is what is wrong with the catalog.
func (b *book) build(c *source.Catalog, now state, digests bool) (bool, error) {
	b.digest = ""
	err := b.cache.Store.PutFile(indexKind, b.source.Name, func(f *os.File) error {
		x := index.NewBuilder(f)
		rest, err := c.Stream(x, digests)
		if err == nil && (digests || !c.DigestIsLate()) {
			b.digest, err = c.Digest()
		}
		if err == nil {
			err = x.Finish(now.key, inIndex(c, b.digest), rest)
		}
		return err
	})
	var faults diag.List
	if errors.As(err, &faults) {
		return false, err
	}
	if err != nil {
		return false, nil //nolint:nilerr // reading the whole says it, if it matters
	}
	b.keepRecords(c, now, b.digest)
	return b.openKey(now.key), nil
}

// readWhole reads all of the catalog, and writes its index.
func (b *book) readWhole(ctx context.Context, c *source.Catalog, now state) error {
	content, err := c.Content(ctx)
	if err != nil {
		return err
	}
	if content.Digest, err = c.Digest(); err != nil {
		return err
	}
	b.Fill(&content)
	if b.whole, err = catalog.New(content); err != nil || !now.keep {
		return err
	}
	err = b.cache.Store.PutFile(indexKind, b.source.Name, func(f *os.File) error {
		return index.Write(f, now.key, inIndex(c, content.Digest), b.whole)
	})
	if err == nil {
		b.keepRecords(c, now, content.Digest)
	}
	return nil
}

// inIndex returns what the index of a catalog says of its digest: nothing where
// the digest may not be known when the index is written, so that it is always
// the same.
func inIndex(c *source.Catalog, digest catalog.Digest) catalog.Digest {
	if c.DigestIsLate() {
		return ""
	}
	return digest
}

// keepRecords keeps what belongs to an index but is not in it.
func (b *book) keepRecords(c *source.Catalog, now state, digest catalog.Digest) {
	if now.names != nil {
		_ = b.cache.Store.PutRecord(namesKind, b.source.Name, []byte(strings.Join(now.names, "\n")))
	}
	if digest != "" && c.DigestIsLate() {
		b.keepDigest(now, digest)
	}
}

// keepDigest remembers the digest of a directory.
func (b *book) keepDigest(now state, digest catalog.Digest) {
	_ = b.cache.Store.PutRecord(digestKind, b.source.Name, []byte(now.key+"\n"+string(digest)))
}

// state is what a catalog is at some time.
type state struct {
	key   string   // differs from that of any other state
	keep  bool     // an index of the state is of use later
	names []string // of a directory's files
}

// now returns the state that the catalog is in. Where quick, it looks at the
// files of a directory by the names that they had before: the state is that of
// an index if it is the same, and nothing else is known.
func (b *book) now(quick bool) state {
	src := b.source
	key := b.cache.Version + " " + src.Name
	if src.Files == nil {
		return state{key: key, keep: true}
	}
	var st stamp
	var err error
	switch {
	case src.File != "":
		st, err = stampNamed(src.Files, []string{src.File})
		st.names = nil // there is nothing to remember
	case quick:
		names, _ := b.cache.Store.Record(namesKind, src.Name) // any names will do, for they are checked
		st, err = stampNamed(src.Files, strings.Split(string(names), "\n"))
	default:
		st, err = stampAll(src.Files)
	}
	if err != nil {
		return state{} // reading it says what is wrong
	}
	return state{key + " " + st.sum(), st.settled(), st.names}
}

// search returns the packages whose search text passes match, by name.
func (b *book) search(match func(text string) bool) ([]catalog.Summary, error) {
	if b.index != nil {
		return b.index.Search(match)
	}
	var out []catalog.Summary
	if b.whole != nil {
		for _, p := range b.whole.Packages() {
			if match == nil || match(p.SearchText()) {
				out = append(out, p.Summary())
			}
		}
	}
	return out, nil
}

// bundle returns what the index says of a bundle, nil where it does not know it
// or cannot be read.
func (b *book) bundle(pkg, name string) *catalog.Bundle {
	if b.index == nil {
		return nil
	}
	found, err := index.Select([]*index.File{b.index}, pkg)
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
