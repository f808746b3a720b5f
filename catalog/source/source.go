// Package source finds and opens catalogs in all their locations: an image, a layout, an
// archive, a directory or a database. The part before the colon of "oci:catalogs/prod" is a
// [Scheme]. Only the table of [Schemes] contains the names of schemes.
//
// [Find] locates a source and reads only its identity; [Source.Open] opens it. catalog/cache
// caches catalogs.
//
// Start from [Ref], [Find] and [OpenedCatalog].
//
// There is no compatibility promise yet: exported names may change in any release.
package source

import (
	"context"
	"io/fs"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/image"
)

// Scheme is a kind of reference to a catalog.
type Scheme struct {
	Name string // part before the colon: "oci-archive"

	image  bool // refers to an image
	pulled bool // refers to an image in a registry
	plain  bool // refers to a plain directory, which some commands also accept for other purposes

	// prefix returns the directory to prepend to the names of the catalog's
	// files in messages. It is nil for images.
	prefix func(rest string) string
	// claims reports whether the scheme applies to a directory given without a scheme. The first
	// such scheme of the table wins. Nil means that the scheme never does.
	claims func(fsys fs.FS) (bool, error)
	// find finds the source of a reference. rest is the part after the scheme.
	find func(ctx context.Context, at Resolver, r Ref, rest string) (*Source, error)
}

// Resolver finds files and images for sources.
type Resolver struct {
	// Lookup finds a file or directory. See [LookupIn] for the base of relative paths.
	Lookup func(path string) (File, error)
	// Image opens an image. It fails if a required signature is missing.
	Image func(ctx context.Context, ref string) (*image.Image, error)
}

// Source is a catalog that was found but not loaded. Name and Files identify its index.
type Source struct {
	Name  string // unique name; empty: the catalog has no index
	Files fs.FS  // files of the catalog; nil: Name identifies the content
	File  string // the only file of the catalog; empty: all Files

	// Open opens the catalog. The catalog is readable until it or the source is closed.
	Open  func(ctx context.Context) (*OpenedCatalog, error)
	close func() error
}

// Close releases all resources of the source.
func (s *Source) Close() {
	if s.close != nil {
		_ = s.close() // ignore the error: the source is only read
	}
}

// OpenedCatalog is an opened catalog.
type OpenedCatalog struct {
	Format
	FS fs.FS // files of the catalog, in the form that Format reads

	// Digest returns the digest of the image, or after reading them, of all files.
	Digest func() (catalog.Digest, error)

	close []func() error
}

// Format is a catalog format.
type Format interface {
	// Content decodes the whole catalog. The caller sets ID, Priority, Labels, Source and
	// Digest. The error is a diag.List of all faults, with file names relative to the catalog.
	Content(ctx context.Context) (catalog.Content, error)
	// Bundle returns the content of a bundle embedded in the catalog. The error wraps
	// fs.ErrNotExist if the bundle is not embedded. known is the bundle according to an index,
	// which saves a search; it may be nil.
	Bundle(ctx context.Context, pkg, name string, known *catalog.Bundle) (fs.FS, error)
}

// IsFileBased reports whether the format is that of file-based catalogs.
func (c *OpenedCatalog) IsFileBased() bool {
	_, ok := c.Format.(fileBased)
	return ok
}

// IsBundles reports whether FS contains bundle directories.
func (c *OpenedCatalog) IsBundles() bool {
	_, ok := c.Format.(bundleDirs)
	return ok
}

// Close releases all resources of the catalog.
func (c *OpenedCatalog) Close() {
	for _, f := range c.close {
		_ = f() // ignore the error: the catalog is only read
	}
}
