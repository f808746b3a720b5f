package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/disk"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/trust"
	"github.com/quayside/quayside/workspace"
)

// Where the store keeps the indexes of catalogs, and the names of the files of
// catalogs that are directories.
const (
	indexKind = "catalog-index"
	namesKind = "catalog-files"

	digestKind = "catalog-digest" // of a directory, where its index holds none
)

// shelf is a set of catalogs that can be asked for parts of themselves.
type shelf struct {
	space  *space
	books  []*book
	broken map[catalog.ID]error
}

// book is one catalog: an index of it from an earlier run, or all of it.
type book struct {
	src    source
	index  *disk.File
	key    string           // of the index
	digest catalog.Digest   // where the index has none
	whole  *catalog.Catalog // where there was no index
	again  func() (*catalog.Catalog, error)
	close  func()
}

// shelf opens the catalogs. One that cannot be read is kept as broken, with
// the reason: resolve decides whether that matters. One without the signature
// that quayside.yaml demands is an error in any case. Where locked holds a
// catalog by tag, what is read is the digest that was locked. Directories are
// hashed only where digests are asked for.
func (s *space) shelf(ctx context.Context, sources []source, locked *lockfile.File, offline, digests bool) (*shelf, error) {
	client, err := s.client(offline)
	if err != nil {
		return nil, err
	}
	if _, err := s.trusted(); err != nil {
		return nil, err
	}
	sh := &shelf{space: s, broken: map[catalog.ID]error{}}
	var faults diag.List
	for _, src := range sources {
		s.talk.progress("reading catalog %s", src.id)
		b, err := s.book(ctx, client, src, pinned(locked, src), digests)
		var unsigned *trust.Error
		if errors.As(err, &unsigned) {
			faults.Addf(src.pos, "catalog %q: %w", src.id, unsigned)
			continue
		}
		if err != nil {
			sh.broken[src.id] = diag.Errorf(src.pos, "%w", err)
			continue
		}
		sh.books = append(sh.books, b)
	}
	s.talk.done()
	if err := faults.Err(); err != nil {
		sh.close()
		return nil, err
	}
	return sh, nil
}

func (sh *shelf) close() {
	for _, b := range sh.books {
		b.close()
	}
}

// book opens the index of a catalog; where there is none that fits, it reads
// the catalog and leaves an index for the next run.
func (s *space) book(ctx context.Context, client *registry.Client, src source, ref string, digests bool) (*book, error) {
	if src.ref == "" {
		return nil, fmt.Errorf("%s: give it a source in %s, under spec.catalogs", src.why, workspace.FileName)
	}
	sub, err := s.subject(ctx, client, ref)
	if err != nil {
		return nil, err
	}
	b := &book{src: src, close: sub.close}
	b.again = func() (*catalog.Catalog, error) { return sub.read(ctx, client, src) }
	if sub.name != "" && b.openIndex(client, sub) && (!digests || b.addDigest(client, sub)) {
		return b, nil
	}
	if err := b.read(ctx, client, sub, digests); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// openIndex opens the index of sub where there is one of the state that sub is
// in, and reports whether there is.
func (b *book) openIndex(client *registry.Client, sub *subject) bool {
	for _, look := range sub.looks {
		if b.openKey(client, sub, look().key) {
			return true
		}
	}
	return false
}

// openKey opens the index of sub if it has that key.
func (b *book) openKey(client *registry.Client, sub *subject, key string) bool {
	f, size, err := client.Store.OpenFile(indexKind, sub.name)
	if err != nil {
		return false
	}
	index, err := disk.Open(f, size, key)
	if err != nil {
		f.Close()
		return false
	}
	b.index, b.key, b.close = index, key, func() { f.Close(); sub.close() }
	return true
}

// addDigest finds the digest of a directory, which its index does not hold, and
// reports false where the directory is no longer what the index is of. The
// digest is remembered, and so nothing is hashed twice.
func (b *book) addDigest(client *registry.Client, sub *subject) bool {
	if b.index.Digest() != "" {
		return true
	}
	known, err := client.Store.Record(digestKind, sub.name)
	if digest, ok := strings.CutPrefix(string(known), b.key+"\n"); err == nil && ok {
		b.digest = catalog.Digest(digest)
		return true
	}
	t, err := sub.tree()
	if err != nil {
		return false
	}
	defer t.close()
	if b.digest, err = t.digest(); err != nil {
		return false
	}
	now := sub.now()
	if !now.keep || now.key != b.key {
		return false // the files that were hashed may be others
	}
	sub.keepDigest(client, now, b.digest)
	return true
}

// read reads the catalog: package by package into an index where one can be
// kept, which it opens, else as a whole.
func (b *book) read(ctx context.Context, client *registry.Client, sub *subject, digests bool) error {
	b.index = nil
	now := sub.now() // before the first byte is read
	t, err := sub.tree()
	if err != nil {
		return err
	}
	defer t.close()
	if now.keep && t.streams() {
		t.unhashed(!digests)
		built, err := b.build(client, sub, t, now, digests)
		if built || err != nil {
			return err
		}
		t.unhashed(false)
	}
	b.whole, err = sub.whole(ctx, client, b.src, t, now)
	return err
}

// build writes and opens an index of the file-based catalog t. It reports false
// where that is not possible; an error is what is wrong with the catalog.
func (b *book) build(client *registry.Client, sub *subject, t *tree, now state, digests bool) (bool, error) {
	var digest catalog.Digest
	err := client.Store.PutFile(indexKind, sub.name, func(f *os.File) error {
		index := disk.NewBuilder(f)
		rest, err := fbc.StreamFS(t.FS, index)
		if err == nil && (digests || t.hashed == nil) {
			digest, err = t.digest()
		}
		if err == nil {
			err = index.Finish(now.key, t.kept(digest), rest)
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
	sub.keepRecords(client, t, now, digest)
	b.digest = digest
	return b.openKey(client, sub, now.key), nil
}

// fill writes into c what the workspace says of the catalog.
func (src source) fill(c *catalog.Content) {
	c.ID, c.Priority, c.Labels, c.Source = src.id, src.priority, src.labels, src.ref
}

// picker takes from indexes what is wanted. beside is what other catalogs,
// which have no index, need of them.
type picker func(files []*disk.File, beside catalog.Needs) ([]catalog.Content, error)

// closure picks whatever could meet want.
func closure(want catalog.Needs) picker {
	return func(files []*disk.File, beside catalog.Needs) ([]catalog.Content, error) {
		return disk.Load(files, want.And(beside))
	}
}

// only picks packages by name, or none.
func only(names ...string) picker {
	return func(files []*disk.File, _ catalog.Needs) ([]catalog.Content, error) {
		return disk.Select(files, names...)
	}
}

// pick returns the catalogs with what pick takes from each, and the names of
// all packages. A damaged index is put aside and its catalog read anew.
func (sh *shelf) pick(pick picker) (*catalog.Index, error) {
	for {
		cats, damaged, err := sh.try(pick)
		if err == nil {
			return sh.assemble(cats)
		}
		var at *disk.LoadError
		if damaged == nil || !errors.As(err, &at) {
			return nil, err
		}
		damaged.index = nil
		if damaged.whole, err = damaged.again(); err != nil {
			sh.broken[damaged.src.id] = diag.Errorf(damaged.src.pos, "%w", err)
		}
	}
}

// try picks once. Where an index is damaged it returns the book as well.
func (sh *shelf) try(pick picker) (cats []*catalog.Catalog, damaged *book, err error) {
	var beside catalog.Needs
	var books []*book
	var files []*disk.File
	for _, b := range sh.books {
		switch {
		case b.index != nil:
			books, files = append(books, b), append(files, b.index)
		case b.whole != nil:
			cats = append(cats, b.whole)
			beside = beside.And(b.whole.Needs())
		}
	}
	contents, err := pick(files, beside)
	var at *disk.LoadError
	if errors.As(err, &at) {
		return nil, books[at.Index], err
	}
	if err != nil {
		return nil, nil, err
	}
	for i, c := range contents {
		books[i].src.fill(&c)
		c.Digest = cmp.Or(c.Digest, books[i].digest)
		cat, err := catalog.New(c)
		if err != nil {
			return nil, books[i], &disk.LoadError{Index: i, Err: err}
		}
		cats = append(cats, cat)
	}
	return cats, nil, nil
}

func (sh *shelf) assemble(cats []*catalog.Catalog) (*catalog.Index, error) {
	x, err := catalog.NewIndex(cats...)
	if err != nil {
		return nil, err
	}
	for id, err := range sh.broken {
		x = x.WithBroken(id, err)
	}
	return x, nil
}

// rows returns the packages whose search text passes match (nil: all), by name,
// then by catalog, and the catalogs without any package.
func (sh *shelf) rows(match func(text string) bool) ([]packageRow, *catalog.Index, error) {
	x, err := sh.pick(only())
	if err != nil {
		return nil, nil, err
	}
	var rows []packageRow
	for _, b := range sh.books {
		found, err := b.summaries(match)
		if err != nil { // only now is the index known to be damaged
			if b.whole, err = b.again(); err != nil {
				return nil, nil, err
			}
			b.index = nil
			found, _ = b.summaries(match)
		}
		for _, s := range found {
			rows = append(rows, newPackageRow(s, b.src.id))
		}
	}
	slices.SortStableFunc(rows, func(a, b packageRow) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.Catalog, b.Catalog))
	})
	return rows, x, nil
}

func (b *book) summaries(match func(text string) bool) ([]catalog.Summary, error) {
	if b.index != nil {
		if match == nil {
			return b.index.Summaries(), nil
		}
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
