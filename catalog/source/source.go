// Package source knows every way to name a catalog: as an image, a layout, an
// archive, a directory or a database. What stands before the colon of
// "oci:catalogs/prod" is a [Scheme]: each is an entry in the table of [Schemes],
// and nobody else decides by its name.
//
// A source is found first ([Find]), which reads no more than it takes to know
// what it is, and then opened ([Source.Open]). The package does not know what
// was read before: that is catalog/cache.
//
// Start from [Ref], [Find] and [Catalog].
package source

import (
	"context"
	"io/fs"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/catalog/image"
)

// Scheme is one way to name a catalog.
type Scheme struct {
	Name string // what stands before the colon: "oci-archive"
	Kind Kind   // what an argument of this scheme is to a command that takes a directory or an image

	// prefix returns what stands before the names of the catalog's files where
	// they are named as the user does: a directory. It is nil for an image, where
	// nothing does.
	prefix func(rest string) string
	// claims reports whether a directory that is named without a scheme is of
	// this one. Where several claim it, the first in the table has it. Nil claims
	// none.
	claims func(fsys fs.FS) (bool, error)
	// find finds what a reference names, behind whose scheme rest stands.
	find func(ctx context.Context, at Place, r Ref, rest string) (*Source, error)
}

// Kind says what a source is to a command that knows directories and images.
type Kind int

// The kinds of source.
const (
	Other     Kind = iota // neither, or more than a directory
	Directory             // a directory, as it is
	Image                 // an image, wherever it lies
)

// Place is where sources are looked for.
type Place struct {
	// Lookup finds a file or directory. Paths in references are relative to what
	// it decides; see Below.
	Lookup func(path string) (File, error)
	// Image opens an image. What must be signed is not opened unless it is.
	Image func(ctx context.Context, ref string) (*image.Image, error)
}

// Source is a catalog that was found and not read. Name and Files say what an
// index of it is kept by.
type Source struct {
	Name  string // differs from that of any other catalog; empty where no index is kept
	Files fs.FS  // what the catalog is read from; nil where Name alone says what it holds
	File  string // the only file of Files that it is read from; empty for all of them

	// Open opens the catalog. It can be read until it is closed, or the source is.
	Open  func(ctx context.Context) (*Catalog, error)
	close func() error
}

// Close releases what finding has taken.
func (s *Source) Close() {
	if s.close != nil {
		_ = s.close() // only read from
	}
}

// Catalog is an opened catalog.
type Catalog struct {
	Form
	FS fs.FS // its files, in that form

	// Digest returns the digest of what was named: that of the image, or one
	// over all files. It reads what was not read before.
	Digest func() (catalog.Digest, error)

	sums  *hashedFS // where FS hashes what is read
	close []func() error
}

// Form is how the files of a catalog are read.
type Form interface {
	// Content decodes the whole catalog. ID, Priority, Labels, Source and Digest
	// are the caller's to fill. The error is a diag.List of every fault, with the
	// names of files as they are in the catalog.
	Content(ctx context.Context) (catalog.Content, error)
	// Bundle returns the content of a bundle that the catalog itself holds, and an
	// error that wraps fs.ErrNotExist where it holds none. known is what an index
	// says of the bundle, which spares a search; it may be nil.
	Bundle(ctx context.Context, pkg, name string, known *catalog.Bundle) (fs.FS, error)
}

// IsFileBased reports whether the catalog is a file-based one, which
// [Catalog.Stream] reads package by package.
func (c *Catalog) IsFileBased() bool {
	_, ok := c.Form.(fileBased)
	return ok
}

// IsBundles reports whether FS holds directories of bundles.
func (c *Catalog) IsBundles() bool {
	_, ok := c.Form.(bundleDirs)
	return ok
}

// DigestIsLate reports whether the digest is known only once all was read,
// though the catalog is read package by package.
func (c *Catalog) DigestIsLate() bool { return c.sums != nil && c.IsFileBased() }

// Stream reads a file-based catalog as [fbc.StreamFS] does. hash says whether
// Digest will be asked for: else nothing is hashed on the way.
func (c *Catalog) Stream(sink fbc.Sink, hash bool) (catalog.Content, error) {
	if c.sums != nil {
		c.sums.off = !hash
		defer func() { c.sums.off = false }()
	}
	return fbc.StreamFS(c.FS, sink)
}

// Close releases what opening has taken.
func (c *Catalog) Close() {
	for _, f := range c.close {
		_ = f() // only read from
	}
}
