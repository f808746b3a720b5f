package index

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
)

// File is an open index. It reads what it is asked for, when it is asked.
type File struct {
	r        io.ReaderAt
	size     int64
	head     header
	packages []entry // by name
	tables   *tables // read when first needed
}

// Open opens the index of size bytes in r, which must have been written with
// this key. The error is a *FaultError where it was not, or where the part
// that Open reads (the directory of packages) is damaged.
func Open(r io.ReaderAt, size int64, key string) (*File, error) {
	f := &File{r: r, size: size}
	d, err := f.header()
	if err != nil {
		return nil, err
	}
	d.header(&f.head)
	switch {
	case d.bad:
		return nil, faultf("malformed header")
	case f.head.key != key:
		return nil, faultf("made from something else")
	}
	if d, err = f.read("directory", f.head.sections[directory]); err != nil {
		return nil, err
	}
	if d.directory(&f.packages); d.bad {
		return nil, faultf("malformed directory")
	}
	return f, nil
}

// header reads the trailer and what it points to.
func (f *File) header() (*codec, error) {
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

// read returns a reader of the bytes at p, verified.
func (f *File) read(what string, p place) (*codec, error) {
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
	return newDecoder(data), nil
}

// Digest returns the digest that the index was written with.
func (f *File) Digest() catalog.Digest { return f.head.digest }

// Search returns what a list tells of the packages whose search text passes match
// (nil: of all, which reads nothing), by name.
func (f *File) Search(match func(text string) bool) ([]catalog.Summary, error) {
	d := &codec{}
	if match != nil {
		var err error
		if d, err = f.read("search", f.head.sections[search]); err != nil {
			return nil, err
		}
	}
	var out []catalog.Summary
	for i := range f.packages {
		var text string
		if match != nil {
			d.text(&text)
		}
		if match == nil || match(text) {
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
		return strings.Compare(e.summary.Name, name)
	})
}

// content returns what the index holds of the packages that are chosen. ID,
// Priority, Labels and Source are the caller's to fill.
func (f *File) content(chosen func(number int) bool) (catalog.Content, error) {
	c := catalog.Content{Digest: f.head.digest, Warnings: f.head.warnings}
	for i := range f.packages {
		e := &f.packages[i]
		if !chosen(i) {
			c.Unread = append(c.Unread, e.summary.Name)
			continue
		}
		what := fmt.Sprintf("segment of package %q", e.summary.Name)
		d, err := f.read(what, e.segment)
		if err != nil {
			return catalog.Content{}, err
		}
		var p catalog.PackageData
		if d.pkg(&p); d.bad || p.Name != e.summary.Name {
			return catalog.Content{}, faultf("malformed %s", what)
		}
		c.Packages = append(c.Packages, p)
	}
	return c, nil
}
