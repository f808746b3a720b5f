package cache

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// Index is an open index file of a catalog. It opens in milliseconds and reads single packages on
// demand. The file is a zip archive; its entries are CBOR values, compressed by zstd and with a
// checksum.
type Index struct {
	entries   map[string]*zip.File
	head      head
	providers *providers // built on first use
}

// Entries of the zip archive.
const (
	headEntry      = "head"
	searchEntry    = "search"    // []string: the search text of each package, in the order of head.Packages
	packageEntries = "packages/" // prefix of the entry of each package: catalog.PackageData
	method         = zstd.ZipMethodWinZip
	maxEntry       = 128 << 20 // maximum uncompressed bytes of an entry
	maxWindow      = 8 << 20   // maximum bytes of the zstd window
	layout         = "6"       // version of the file format: increment it when the entries or the decoding of catalogs change
)

// head is the entry that OpenIndex reads. It lists all packages.
type head struct {
	Key      string
	Warnings []diag.Warning
	Packages []row // sorted by name
}

// row describes one package in the head.
type row struct {
	Summary catalog.Summary
	Needs   catalog.Needs
	APIs    []catalog.GVK // APIs that its bundles provide, sorted
	Labels  []string      // labels of its bundles, sorted
}

// faultError is the reason why an index cannot be used: it is damaged, or it was written by another
// version or for another state of the catalog. The caller must load the catalog instead.
type faultError struct {
	index  *Index
	reason string
}

// Error returns the reason.
func (e *faultError) Error() string { return "catalog index: " + e.reason }

func (x *Index) faultf(format string, args ...any) error {
	return &faultError{x, fmt.Sprintf(format, args...)}
}

// WriteIndex writes the index of a whole catalog. The index does not contain ID, Priority, Labels,
// Source and Digest. key identifies the program version and the state of the catalog. The same input
// gives the same bytes.
func WriteIndex(w io.Writer, key string, c *catalog.Catalog) error {
	mode, err := cbor.EncOptions{Sort: cbor.SortBytewiseLexical}.EncMode()
	if err != nil {
		return err
	}
	z := zip.NewWriter(w)
	z.RegisterCompressor(method, zstd.ZipCompressor(zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)))
	put := func(name string, value any) {
		var entry io.Writer
		if err == nil {
			entry, err = z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		}
		if err == nil {
			err = mode.NewEncoder(entry).Encode(value)
		}
	}
	h := head{Key: layout + key, Warnings: c.Warnings()}
	var texts []string
	for _, p := range c.Packages() {
		h.Packages, texts = append(h.Packages, rowOf(p)), append(texts, p.SearchText())
		put(packageEntries+p.Name(), p.Data())
	}
	put(searchEntry, texts)
	put(headEntry, h)
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return fmt.Errorf("writing a catalog index: %w", err)
	}
	return nil
}

func rowOf(p *catalog.Package) row {
	r := row{Summary: p.Summary(), Needs: p.Needs()}
	for _, b := range p.Bundles() {
		r.APIs = append(r.APIs, b.Provides()...)
		r.Labels = append(r.Labels, b.Labels()...)
	}
	slices.SortFunc(r.APIs, catalog.GVK.Compare)
	slices.Sort(r.Labels)
	r.APIs, r.Labels = slices.Compact(r.APIs), slices.Compact(r.Labels)
	return r
}

// OpenIndex opens an index of size bytes. If the index is damaged or was written with another key,
// the error is a *faultError.
func OpenIndex(r io.ReaderAt, size int64, key string) (*Index, error) {
	x := &Index{entries: map[string]*zip.File{}}
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, x.faultf("%v", err)
	}
	z.RegisterDecompressor(method, zstd.ZipDecompressor(zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow)))
	for _, f := range z.File {
		x.entries[f.Name] = f
	}
	if err := x.read(headEntry, &x.head); err != nil {
		return nil, err
	}
	if x.head.Key != layout+key {
		return nil, x.faultf("out of date")
	}
	byName := func(a, b row) int { return strings.Compare(a.Summary.Name, b.Summary.Name) }
	if !slices.IsSortedFunc(x.head.Packages, byName) {
		return nil, x.faultf("packages are not sorted")
	}
	return x, nil
}

// read decodes the entry with this name into a value and verifies its checksum.
func (x *Index) read(name string, into any) error {
	entry := x.entries[name]
	switch {
	case entry == nil:
		return x.faultf("%s is missing", name)
	case entry.UncompressedSize64 > maxEntry:
		return x.faultf("%s: %d bytes exceed the limit of %d", name, entry.UncompressedSize64, maxEntry)
	}
	r, err := entry.Open()
	if err != nil {
		return x.faultf("%s: %v", name, err)
	}
	defer r.Close()
	var data bytes.Buffer
	data.Grow(int(entry.UncompressedSize64) + bytes.MinRead)
	_, err = data.ReadFrom(r) // reads at most the size in the zip header, and verifies the checksum
	if err == nil {
		err = cbor.Unmarshal(data.Bytes(), into)
	}
	if err != nil {
		return x.faultf("%s: %v", name, err)
	}
	return nil
}

// Search returns the summaries of the packages whose search text satisfies match, sorted by name. If match is
// nil, it returns all packages without reading the search texts.
func (x *Index) Search(match func(text string) bool) ([]Summary, error) {
	var texts []string
	if match != nil {
		if err := x.read(searchEntry, &texts); err != nil {
			return nil, err
		}
		if len(texts) != len(x.head.Packages) {
			return nil, x.faultf("%d search texts for %d packages", len(texts), len(x.head.Packages))
		}
	}
	var out []Summary
	for i, r := range x.head.Packages {
		s := Summary{Summary: r.Summary, APIs: r.APIs}
		if match != nil {
			s.Text = texts[i]
		}
		if match == nil || match(s.Text) {
			out = append(out, s)
		}
	}
	return out, nil
}

// number returns the index of a package in head.Packages, and whether it exists.
func (x *Index) number(name string) (int, bool) {
	return slices.BinarySearchFunc(x.head.Packages, name, func(r row, name string) int {
		return strings.Compare(r.Summary.Name, name)
	})
}

// content returns the catalog content with the packages for which chosen returns true. Unread lists the names
// of the omitted packages.
func (x *Index) content(chosen func(number int) bool) (catalog.Content, error) {
	c := catalog.Content{Warnings: x.head.Warnings}
	for i, r := range x.head.Packages {
		name := r.Summary.Name
		if !chosen(i) {
			c.Unread = append(c.Unread, name)
			continue
		}
		var p catalog.PackageData
		if err := x.read(packageEntries+name, &p); err != nil {
			return catalog.Content{}, err
		}
		if p.Name != name {
			return catalog.Content{}, x.faultf("entry %s%s contains package %q", packageEntries, name, p.Name)
		}
		c.Packages = append(c.Packages, p)
	}
	return c, nil
}
