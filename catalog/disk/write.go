package disk

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
	iw := newWriter(w)
	for _, p := range c.Packages() {
		iw.add(p)
	}
	return iw.finish(key, digest, c.Warnings())
}

// row is what the tables say of a package.
type row struct {
	name    string
	segment place
	summary catalog.Summary
	needs   catalog.Needs
	apis    []catalog.GVK // that its bundles provide, sorted
	labels  []string      // that its bundles have, sorted
	search  string
}

// add writes the segment of a package and notes what the tables need.
func (w *writer) add(p *catalog.Package) {
	data := p.Data()
	r := row{
		name: p.Name(), segment: w.section(func(e *encoder) { e.pkg(&data) }),
		summary: p.Summary(), needs: p.Needs(), search: p.SearchText(),
	}
	for _, b := range p.Bundles() {
		r.apis = append(r.apis, b.Provides()...)
		r.labels = append(r.labels, b.Labels()...)
	}
	slices.SortFunc(r.apis, catalog.GVK.Compare)
	slices.Sort(r.labels)
	r.apis, r.labels = slices.Clip(slices.Compact(r.apis)), slices.Clip(slices.Compact(r.labels))
	w.rows = append(w.rows, r)
}

// finish writes all that follows the segments.
func (w *writer) finish(key string, digest catalog.Digest, warnings []diag.Warning) error {
	slices.SortFunc(w.rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	sections := []place{
		w.section(func(e *encoder) { e.directory(w.rows) }),
		w.section(func(e *encoder) {
			for i := range w.rows {
				e.needs(w.rows[i].needs)
			}
		}),
		w.section(func(e *encoder) { e.providers(w.rows) }),
		w.section(func(e *encoder) {
			for i := range w.rows {
				e.text(w.rows[i].search)
			}
		}),
	}
	header := w.section(func(e *encoder) {
		e.text(key)
		e.text(string(digest))
		e.list(len(warnings), warnings == nil, func(i int) { e.warning(warnings[i]) })
		for _, s := range sections {
			e.place(s)
		}
	})
	w.trailer(header)
	if w.err == nil && w.at > maxIndex {
		w.err = fmt.Errorf("more than %d GiB", maxIndex>>30)
	}
	if w.err != nil {
		return fmt.Errorf("writing a catalog index: %w", w.err)
	}
	return nil
}

// place is where a part of the file lies, and the checksum of its bytes.
type place struct {
	offset, size int64
	sum          uint32
}

// checksum finds any flipped bit, and any run of up to 32 damaged ones.
func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

func (e *encoder) place(p place) {
	e.uint(uint64(p.offset))
	e.uint(uint64(p.size))
	e.uint(uint64(p.sum))
}

func (e *encoder) directory(rows []row) {
	e.int(len(rows))
	for i := range rows {
		e.text(rows[i].name)
		e.place(rows[i].segment)
		e.summary(rows[i].summary)
	}
}

// providers writes, for every API and every label, which packages have a
// bundle with it, by their number in the directory.
func (e *encoder) providers(rows []row) {
	apis, labels := map[catalog.GVK][]int{}, map[string][]int{}
	for i := range rows {
		for _, g := range rows[i].apis {
			apis[g] = append(apis[g], i)
		}
		for _, l := range rows[i].labels {
			labels[l] = append(labels[l], i)
		}
	}
	e.int(len(apis))
	for _, g := range slices.SortedFunc(maps.Keys(apis), catalog.GVK.Compare) {
		e.gvk(g)
		e.numbers(apis[g])
	}
	e.int(len(labels))
	for _, l := range slices.Sorted(maps.Keys(labels)) {
		e.text(l)
		e.numbers(labels[l])
	}
}

func (e *encoder) numbers(list []int) {
	e.list(len(list), false, func(i int) { e.int(list[i]) })
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// writer writes the parts one after the other. After the first fault it writes
// nothing.
type writer struct {
	out io.Writer
	enc *encoder
	buf []byte
	at  int64
	err error

	rows []row
}

func newWriter(w io.Writer) *writer { return &writer{out: w, enc: newEncoder()} }

func (w *writer) section(fill func(e *encoder)) place {
	w.enc.reset()
	fill(w.enc)
	w.buf = w.enc.appendTo(w.buf[:0])
	p := place{offset: w.at, size: int64(len(w.buf)), sum: checksum(w.buf)}
	if w.err == nil && p.size > maxSection {
		w.err = fmt.Errorf("a part of %d bytes: want at most %d", p.size, maxSection)
	}
	w.write(w.buf)
	return p
}

func (w *writer) write(data []byte) {
	if w.err != nil {
		return
	}
	_, w.err = w.out.Write(data)
	w.at += int64(len(data))
}

func (w *writer) trailer(header place) {
	buf := binary.LittleEndian.AppendUint32(nil, uint32(header.size))
	buf = binary.LittleEndian.AppendUint32(buf, header.sum)
	buf = binary.LittleEndian.AppendUint32(buf, version)
	w.write(append(buf, magic...))
}
