package disk

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// File is an open index. It reads what it is asked for, when it is asked.
type File struct {
	r        io.ReaderAt
	size     int64
	digest   catalog.Digest
	warnings []diag.Warning
	sections [4]place
	packages []entry // by name
	tables   *tables // read when first needed
}

// entry is what the directory says of a package.
type entry struct {
	segment place
	summary catalog.Summary
}

// The numbers of the sections.
const (
	directory = iota
	needs
	providers
	search
)

// Open opens the index of size bytes in r, which must have been written with
// this key. The error is a *FaultError where it was not, or where the part
// that Open reads (the directory of packages) is damaged.
func Open(r io.ReaderAt, size int64, key string) (*File, error) {
	f := &File{r: r, size: size}
	header, err := f.header()
	if err != nil {
		return nil, err
	}
	d := newDecoder(header)
	made := d.text()
	f.digest = catalog.Digest(d.text())
	f.warnings = list(d, d.warning)
	for i := range f.sections {
		f.sections[i] = d.place()
	}
	switch {
	case d.bad:
		return nil, faultf("malformed header")
	case made != key:
		return nil, faultf("made from something else")
	}
	if err := f.readDirectory(); err != nil {
		return nil, err
	}
	return f, nil
}

// header reads the trailer and what it points to.
func (f *File) header() ([]byte, error) {
	if f.size < int64(trailerSize) || f.size > maxIndex {
		return nil, faultf("a file of %d bytes", f.size)
	}
	var buf [trailerSize]byte
	if _, err := f.r.ReadAt(buf[:], f.size-int64(trailerSize)); err != nil {
		return nil, faultf("reading: %v", err)
	}
	if string(buf[12:]) != magic {
		return nil, faultf("cut short, or no index")
	}
	if v := binary.LittleEndian.Uint32(buf[8:]); v != version {
		return nil, faultf("version %d: want %d", v, version)
	}
	size := int64(binary.LittleEndian.Uint32(buf[:]))
	return f.read("header", place{f.size - int64(trailerSize) - size, size, binary.LittleEndian.Uint32(buf[4:])})
}

// read returns the bytes at p, verified.
func (f *File) read(what string, p place) ([]byte, error) {
	if p.offset < 0 || p.size < 0 || p.size > maxSection || p.offset > f.size-p.size {
		return nil, faultf("%s: outside the file", what)
	}
	data := make([]byte, p.size)
	if _, err := f.r.ReadAt(data, p.offset); err != nil {
		return nil, faultf("%s: reading: %v", what, err)
	}
	if checksum(data) != p.sum {
		return nil, faultf("%s: checksum differs", what)
	}
	return data, nil
}

func faultf(format string, args ...any) error { return &FaultError{fmt.Sprintf(format, args...)} }

func (d *decoder) place() place {
	return place{int64(d.int()), int64(d.int()), uint32(d.uint())}
}

func (f *File) readDirectory() error {
	data, err := f.read("directory", f.sections[directory])
	if err != nil {
		return err
	}
	d := newDecoder(data)
	f.packages = make([]entry, d.count(1))
	for i := range f.packages {
		name := d.text()
		segment := d.place()
		f.packages[i] = entry{segment, d.summary(name)}
	}
	if d.bad {
		return faultf("malformed directory")
	}
	return nil
}

// Digest returns the digest that the index was written with.
func (f *File) Digest() catalog.Digest { return f.digest }

// Names returns the names of all packages, sorted.
func (f *File) Names() []string {
	names := make([]string, len(f.packages))
	for i := range f.packages {
		names[i] = f.packages[i].summary.Name
	}
	return names
}

// Summaries returns what a list tells of each package, by name.
func (f *File) Summaries() []catalog.Summary {
	out := make([]catalog.Summary, len(f.packages))
	for i := range f.packages {
		out[i] = f.packages[i].summary
	}
	return out
}

// Search returns the summaries of the packages whose search text passes match,
// by name.
func (f *File) Search(match func(text string) bool) ([]catalog.Summary, error) {
	data, err := f.read("search", f.sections[search])
	if err != nil {
		return nil, err
	}
	d := newDecoder(data)
	var out []catalog.Summary
	for i := range f.packages {
		if text := d.text(); match(text) {
			out = append(out, f.packages[i].summary)
		}
	}
	if d.bad {
		return nil, faultf("malformed search texts")
	}
	return out, nil
}

// number returns the number of a package in the directory.
func (f *File) number(name string) (int, bool) {
	return slices.BinarySearchFunc(f.packages, name, func(e entry, name string) int {
		return compareText(e.summary.Name, name)
	})
}

// content returns what the index holds of the packages with these numbers,
// ascending. ID, Priority, Labels and Source are the caller's to fill.
func (f *File) content(numbers []int) (catalog.Content, error) {
	c := catalog.Content{Digest: f.digest, Warnings: f.warnings}
	next := 0
	for i := range f.packages {
		e := &f.packages[i]
		if next == len(numbers) || numbers[next] != i {
			c.Unread = append(c.Unread, e.summary.Name)
			continue
		}
		next++
		what := fmt.Sprintf("segment of package %q", e.summary.Name)
		data, err := f.read(what, e.segment)
		if err != nil {
			return catalog.Content{}, err
		}
		d := newDecoder(data)
		p := d.pkg()
		if d.bad || p.Name != e.summary.Name {
			return catalog.Content{}, faultf("malformed %s", what)
		}
		c.Packages = append(c.Packages, p)
	}
	return c, nil
}
