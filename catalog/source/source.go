// Package source finds and opens catalogs in all their locations: an image, a
// layout, an archive, a directory or a database. The part before the colon of
// "oci:catalogs/prod" is a [Scheme]. The table of [Schemes] defines all of
// them; other packages do not depend on scheme names.
//
// [Find] locates a source and reads only its identity; [Source.Open] opens
// it. Caching is done by catalog/cache.
//
// Start from [Ref], [Find] and [Catalog].
package source

import (
	"context"
	"io/fs"

	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/internal/model"
)

// Scheme is a way to refer to a catalog.
type Scheme struct {
	Name string // the part before the colon: "oci-archive"

	image  bool // refers to an image
	pulled bool // refers to an image in a registry
	plain  bool // refers to a plain directory, which some commands accept for other purposes

	// prefix returns the directory to prepend to the names of the catalog's
	// files in messages. It is nil for images.
	prefix func(rest string) string
	// claims reports whether the scheme applies to a directory given without
	// a scheme. The first matching scheme of the table wins. Nil matches
	// nothing.
	claims func(fsys fs.FS) (bool, error)
	// find finds the source of a reference. rest follows the scheme.
	find func(ctx context.Context, at Place, r Ref, rest string) (*Source, error)
}

// Place is the environment to find sources in.
type Place struct {
	// Lookup finds a file or directory and defines the base of relative
	// paths; see Below.
	Lookup func(path string) (File, error)
	// Image opens an image. It fails if a required signature is missing.
	Image func(ctx context.Context, ref string) (*image.Image, error)
}

// Source is a catalog that was found but not read. Name and Files are the key
// of its index.
type Source struct {
	Name  string // unique; empty: the catalog is not indexed
	Files fs.FS  // files of the catalog; nil: Name determines the content
	File  string // the only file read; empty: all Files

	// Open opens the catalog. It is readable until it or the source is
	// closed.
	Open  func(ctx context.Context) (*Catalog, error)
	close func() error
}

// Close releases all resources of the source.
func (s *Source) Close() {
	if s.close != nil {
		_ = s.close() // only read
	}
}

// Catalog is an opened catalog.
type Catalog struct {
	Form
	FS fs.FS // files of the catalog in its form

	// Digest returns the digest of the image, or of all files. The latter
	// reads them.
	Digest func() (model.Digest, error)

	close []func() error
}

// Form is a catalog format.
type Form interface {
	// Content decodes the whole catalog. The caller sets ID, Priority,
	// Labels, Source and Digest. The error is a diag.List of all faults; file
	// names in it are relative to the catalog.
	Content(ctx context.Context) (model.Content, error)
	// Bundle returns the content of a bundle embedded in the catalog, or an
	// error that wraps fs.ErrNotExist if it is not embedded. known is the
	// bundle according to an index and saves a search; it may be nil.
	Bundle(ctx context.Context, pkg, name string, known *model.Bundle) (fs.FS, error)
}

// IsFileBased reports whether the catalog is a file-based one.
func (c *Catalog) IsFileBased() bool {
	_, ok := c.Form.(fileBased)
	return ok
}

// IsBundles reports whether FS contains bundle directories.
func (c *Catalog) IsBundles() bool {
	_, ok := c.Form.(bundleDirs)
	return ok
}

// Close releases all resources of the catalog.
func (c *Catalog) Close() {
	for _, f := range c.close {
		_ = f() // only read
	}
}
