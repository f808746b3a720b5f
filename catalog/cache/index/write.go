package index

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// Write writes the index of a whole catalog. key says what it was read from,
// and must be given to Open; digest is what File.Digest tells, and may be empty.
// The catalog's ID, Priority, Labels, Source and Digest are not in the index.
// The same arguments give the same bytes.
func Write(w io.Writer, key string, digest catalog.Digest, c *catalog.Catalog) error {
	b := &Builder{out: w, enc: newEncoder()}
	for _, p := range c.Packages() {
		b.add(p)
	}
	return b.complete(key, digest, c.Warnings())
}

// Builder writes the index of a catalog that is not held as a whole: packages
// are put in one by one, in any order. After the first fault it writes nothing,
// and Finish tells it.
type Builder struct {
	out  io.Writer
	file io.ReaderAt // the same
	enc  *codec
	buf  []byte
	at   int64
	err  error
	rows []row
}

// row is what the tables say of a package.
type row struct {
	entry
	needs  catalog.Needs
	apis   []catalog.GVK // that its bundles provide
	labels []string      // that its bundles have
	search string
}

// Output is what a Builder writes to, from its beginning.
type Output interface {
	io.Writer
	io.ReaderAt
}

// NewBuilder returns a builder that writes to out.
func NewBuilder(out Output) *Builder { return &Builder{out: out, file: out, enc: newEncoder()} }

// Put checks a package and writes it. It reports false, and has done nothing,
// where the package is no valid one by itself.
func (b *Builder) Put(p *catalog.PackageData) bool {
	c, err := catalog.New(catalog.Content{Packages: []catalog.PackageData{*p}})
	if err != nil {
		return false
	}
	b.add(c.Packages()[0])
	return true
}

// Back returns a package that was put in, and takes it out. What was written of
// it stays in the file, and nothing refers to it.
func (b *Builder) Back(name string) (p catalog.PackageData, err error) {
	i := slices.IndexFunc(b.rows, func(r row) bool { return r.summary.Name == name })
	if i < 0 {
		return p, fmt.Errorf("package %q was not put into the index", name)
	}
	at := b.rows[i].segment
	b.rows = slices.Delete(b.rows, i, i+1)
	if b.err != nil {
		return p, b.err
	}
	d, err := (&File{r: b.file, size: b.at}).read("segment", at)
	if err == nil {
		d.pkg(&p)
	}
	return p, err
}

// Finish adds what was not put in and completes the index. key and digest are
// as in Write.
// The error is a diag.List of what makes the catalog invalid, all of it, or says
// that writing failed.
func (b *Builder) Finish(key string, digest catalog.Digest, rest catalog.Content) error {
	for i := range b.rows {
		rest.Unread = append(rest.Unread, b.rows[i].summary.Name)
	}
	c, err := catalog.New(rest)
	if err != nil {
		return err
	}
	for _, p := range c.Packages() {
		if slices.Contains(rest.Unread, p.Name()) {
			return fmt.Errorf("package %q is in the index already", p.Name())
		}
		b.add(p)
	}
	return b.complete(key, digest, c.Warnings())
}

// add writes the segment of a package and notes what the tables need.
func (b *Builder) add(p *catalog.Package) {
	data := p.Data()
	r := row{entry: entry{b.section(func(c *codec) { c.pkg(&data) }), p.Summary()}, needs: p.Needs(), search: p.SearchText()}
	for _, bundle := range p.Bundles() {
		r.apis = append(r.apis, bundle.Provides()...)
		r.labels = append(r.labels, bundle.Labels()...)
	}
	slices.SortFunc(r.apis, catalog.GVK.Compare)
	slices.Sort(r.labels)
	r.apis, r.labels = slices.Clip(slices.Compact(r.apis)), slices.Clip(slices.Compact(r.labels))
	b.rows = append(b.rows, r)
}

// complete writes all that follows the segments.
func (b *Builder) complete(key string, digest catalog.Digest, warnings []diag.Warning) error {
	slices.SortFunc(b.rows, func(a, b row) int { return strings.Compare(a.summary.Name, b.summary.Name) })
	entries := make([]entry, len(b.rows))
	apis, labels := map[catalog.GVK][]int{}, map[string][]int{}
	for i, r := range b.rows {
		entries[i] = r.entry
		for _, g := range r.apis {
			apis[g] = append(apis[g], i)
		}
		for _, l := range r.labels {
			labels[l] = append(labels[l], i)
		}
	}
	byAPI, byLabel := sorted(apis, catalog.GVK.Compare), sorted(labels, strings.Compare)
	h := header{key: key, digest: digest, warnings: warnings, sections: [4]place{
		directory: b.section(func(c *codec) { c.directory(&entries) }),
		needs: b.section(func(c *codec) {
			for i := range b.rows {
				c.needs(&b.rows[i].needs)
			}
		}),
		providers: b.section(func(c *codec) { c.providers(&byAPI, &byLabel, len(b.rows)) }),
		search: b.section(func(c *codec) {
			for i := range b.rows {
				c.text(&b.rows[i].search)
			}
		}),
	}}
	b.trailer(b.section(func(c *codec) { c.header(&h) }))
	if b.err == nil && b.at > maxIndex {
		b.err = fmt.Errorf("more than %d GiB", maxIndex>>30)
	}
	if b.err != nil {
		return fmt.Errorf("writing a catalog index: %w", b.err)
	}
	return nil
}

// sorted returns who provides what, in the order of what is provided.
func sorted[T comparable](by map[T][]int, compare func(a, b T) int) []provider[T] {
	var out []provider[T]
	for _, what := range slices.SortedFunc(maps.Keys(by), compare) {
		out = append(out, provider[T]{what, by[what]})
	}
	return out
}

// place is where a part of the file lies, and the checksum of its bytes.
type place struct {
	offset, size int64
	sum          uint32
}

// checksum finds any flipped bit, and any run of up to 32 damaged ones.
func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

func (b *Builder) section(fill func(*codec)) place {
	b.enc.reset()
	fill(b.enc)
	b.buf = b.enc.appendTo(b.buf[:0])
	p := place{offset: b.at, size: int64(len(b.buf)), sum: checksum(b.buf)}
	if b.err == nil && p.size > maxSection {
		b.err = fmt.Errorf("a part of %d bytes: want at most %d", p.size, maxSection)
	}
	b.write(b.buf)
	return p
}

func (b *Builder) write(data []byte) {
	if b.err != nil {
		return
	}
	_, b.err = b.out.Write(data)
	b.at += int64(len(data))
}

func (b *Builder) trailer(header place) {
	buf := binary.LittleEndian.AppendUint32(nil, uint32(header.size))
	buf = binary.LittleEndian.AppendUint32(buf, header.sum)
	buf = binary.LittleEndian.AppendUint32(buf, version)
	b.write(append(buf, magic...))
}
