package disk

import (
	"fmt"
	"io"
	"slices"

	"github.com/quayside/quayside/catalog"
)

// Builder writes the index of a catalog that is not held as a whole: packages
// are put in one by one, in any order.
type Builder struct {
	w    *writer
	file io.ReaderAt
}

// Output is what a Builder writes to, from its beginning.
type Output interface {
	io.Writer
	io.ReaderAt
}

// NewBuilder returns a builder that writes to out.
func NewBuilder(out Output) *Builder { return &Builder{w: newWriter(out), file: out} }

// Put checks a package and writes it. It reports false, and has done nothing,
// where the package is no valid one by itself.
func (b *Builder) Put(p *catalog.PackageData) bool {
	c, err := catalog.New(catalog.Content{Packages: []catalog.PackageData{*p}})
	if err != nil {
		return false
	}
	b.w.add(c.Packages()[0])
	return true
}

// Back returns a package that was put in, and takes it out. What was written of
// it stays in the file, and nothing refers to it.
func (b *Builder) Back(name string) (catalog.PackageData, error) {
	i := slices.IndexFunc(b.w.rows, func(r row) bool { return r.name == name })
	if i < 0 {
		return catalog.PackageData{}, fmt.Errorf("package %q was not put into the index", name)
	}
	at := b.w.rows[i].segment
	b.w.rows = slices.Delete(b.w.rows, i, i+1)
	if b.w.err != nil {
		return catalog.PackageData{}, b.w.err
	}
	data, err := (&File{r: b.file, size: b.w.at}).read("segment", at)
	if err != nil {
		return catalog.PackageData{}, err
	}
	d := newDecoder(data)
	return d.pkg(), nil
}

// Finish adds what was not put in and completes the index. key and digest are
// as in Write.
// The error is a diag.List of what makes the catalog invalid, all of it, or says
// that writing failed.
func (b *Builder) Finish(key string, digest catalog.Digest, rest catalog.Content) error {
	for i := range b.w.rows {
		rest.Unread = append(rest.Unread, b.w.rows[i].name)
	}
	c, err := catalog.New(rest)
	if err != nil {
		return err
	}
	for _, p := range c.Packages() {
		if slices.Contains(rest.Unread, p.Name()) {
			return fmt.Errorf("package %q is in the index already", p.Name())
		}
		b.w.add(p)
	}
	return b.w.finish(key, digest, c.Warnings())
}
