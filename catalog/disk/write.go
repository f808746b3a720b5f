package disk

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/quayside/quayside/catalog"
)

// Write writes the index of a whole catalog. key says what it was read from,
// and must be given to Open. The catalog's ID, Priority, Labels and Source are
// not in the index. The same arguments give the same bytes.
func Write(w io.Writer, key string, c *catalog.Catalog) error {
	iw := &writer{out: w, enc: newEncoder()}
	pkgs := c.Packages()
	segments := make([]place, len(pkgs))
	for i, p := range pkgs {
		data := p.Data()
		segments[i] = iw.section(func(e *encoder) { e.pkg(&data) })
	}
	sections := []place{
		iw.section(func(e *encoder) { e.directory(pkgs, segments) }),
		iw.section(func(e *encoder) {
			for _, p := range pkgs {
				e.needs(p.Needs())
			}
		}),
		iw.section(func(e *encoder) { e.providers(pkgs) }),
		iw.section(func(e *encoder) {
			for _, p := range pkgs {
				e.text(p.SearchText())
			}
		}),
	}
	header := iw.section(func(e *encoder) {
		e.text(key)
		e.text(string(c.Digest()))
		warnings := c.Warnings()
		e.list(len(warnings), warnings == nil, func(i int) { e.warning(warnings[i]) })
		for _, s := range sections {
			e.place(s)
		}
	})
	iw.trailer(header)
	if iw.err == nil && iw.at > maxIndex {
		iw.err = fmt.Errorf("more than %d GiB", maxIndex>>30)
	}
	if iw.err != nil {
		return fmt.Errorf("writing a catalog index: %w", iw.err)
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

func (e *encoder) directory(pkgs []*catalog.Package, segments []place) {
	e.int(len(pkgs))
	for i, p := range pkgs {
		e.text(p.Name())
		e.place(segments[i])
		e.summary(p.Summary())
	}
}

// providers writes, for every API and every label, which packages have a
// bundle with it, by their number in the directory.
func (e *encoder) providers(pkgs []*catalog.Package) {
	apis, labels := map[catalog.GVK][]int{}, map[string][]int{}
	for i, p := range pkgs {
		for _, b := range p.Bundles() {
			for _, g := range b.Provides() {
				apis[g] = addNumber(apis[g], i)
			}
			for _, l := range b.Labels() {
				labels[l] = addNumber(labels[l], i)
			}
		}
	}
	e.int(len(apis))
	for _, g := range sortedKeys(apis, catalog.GVK.Compare) {
		e.gvk(g)
		e.numbers(apis[g])
	}
	e.int(len(labels))
	for _, l := range sortedKeys(labels, compareText) {
		e.text(l)
		e.numbers(labels[l])
	}
}

func (e *encoder) numbers(list []int) {
	e.list(len(list), false, func(i int) { e.int(list[i]) })
}

// addNumber appends n, which is not below any number of list.
func addNumber(list []int, n int) []int {
	if len(list) > 0 && list[len(list)-1] == n {
		return list
	}
	return append(list, n)
}

func sortedKeys[K comparable](m map[K][]int, compare func(a, b K) int) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compare)
	return keys
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
}

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
