// Package source finds and opens catalogs wherever they are: an image in a registry, an OCI layout
// or archive, a directory, or a database. In a reference such as "oci:catalogs/prod", the part
// before the colon is the [Scheme]. [Schemes] lists all schemes.
//
// [Find] locates a catalog without loading it; [Source.Open] opens it. Package catalog/cache adds a
// cache.
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
	"github.com/quayside/quayside/internal/oci"
)

// Scheme is a kind of reference to a catalog.
type Scheme struct {
	Name string // part before the colon: "oci-archive"

	image  bool // references point to an image
	pulled bool // references point to an image in a registry
	served bool // references are URLs of a server, but not images
	dir    bool // references point to a directory with the files of the catalog
	plain  bool // references point to a directory, and commands with a directory argument accept it

	// prefix returns the path to prepend to the names of the catalog's files in messages, such as
	// the path of an archive. It is nil for images and directories.
	prefix func(rest string) string
	// claims reports whether fsys, a directory given without a scheme, has the format of this
	// scheme. If several schemes claim a directory, the first in the order of Schemes is used. If
	// claims is nil, references must always contain the scheme.
	claims func(fsys fs.FS) (bool, error)
	// find returns the source of reference r. rest is the part of r after the colon.
	find func(ctx context.Context, at Resolver, r Ref, rest string) (*Source, error)
}

// Resolver finds the files and images that references point to.
type Resolver struct {
	// Lookup returns a file or directory. [LookupIn] returns the usual implementation.
	Lookup func(path string) (File, error)
	// Image opens an image. It returns an error if a required signature is missing.
	Image func(ctx context.Context, ref string) (*image.Image, error)
	// Tags returns the tags of a repository in a registry; see [oci.Client.Tags].
	Tags func(ctx context.Context, repository string) ([]string, error)
	// Download returns the file at a URL; see [oci.Client.Download].
	Download func(ctx context.Context, url, digest string, limit int64) (*oci.Downloaded, error)
	// VerifyArchive verifies the archive at a URL with this digest, if the policy requires a signature. chart
	// is the name of the chart, such as "charts.example.com/lamp". VerifyArchive may be nil.
	VerifyArchive func(ctx context.Context, chart, version, url, digest string) error
	// GitTags returns the commits of the tags of a repository; see [oci.Client.GitTags].
	GitTags func(ctx context.Context, url string) (map[string]string, error)
	// GitFiles returns the files that choose selects from the commit of a tag; see [oci.Client.GitFiles].
	GitFiles func(ctx context.Context, url, tag, commit, key string, choose func(commit fs.FS) (map[string][]byte, error)) (fs.FS, error)
}

// Source is a catalog that was found but not loaded.
type Source struct {
	Name  string // unique key of the catalog's index; empty: no index is stored
	Files fs.FS  // files whose changes invalidate an index; nil: the content never changes for this Name
	File  string // the only file in Files that belongs to the catalog; empty: all files

	// Open opens the catalog. The catalog can be read until the catalog or the source is closed.
	Open  func(ctx context.Context) (*OpenedCatalog, error)
	close func() error
}

// Close releases all resources of the source.
func (s *Source) Close() {
	if s.close != nil {
		_ = s.close() // ignore the error: files were only read
	}
}

// OpenedCatalog is a catalog whose files can be read.
type OpenedCatalog struct {
	Format
	FS fs.FS // files of the catalog, after conversion to Format

	// Digest returns the digest of the image. For other catalogs, it computes a digest of all files.
	Digest func() (catalog.Digest, error)

	close []func() error
}

// Format decodes a catalog of one format.
type Format interface {
	// Content decodes the whole catalog. The caller sets ID, Priority, Labels, Source and
	// Digest. The error is a diag.List of all faults, with file names relative to the catalog.
	Content(ctx context.Context) (catalog.Content, error)
	// Bundle returns the files of a bundle embedded in the catalog. If the bundle is not embedded,
	// the error wraps fs.ErrNotExist. known is the bundle as found in an index, which makes a
	// search unnecessary; it may be nil.
	Bundle(ctx context.Context, pkg, name string, known *catalog.Bundle) (fs.FS, error)
}

// IsFileBased reports whether the catalog is a file-based catalog.
func (c *OpenedCatalog) IsFileBased() bool {
	_, ok := c.Format.(fileBased)
	return ok
}

// IsBundles reports whether the catalog is a directory of bundle directories.
func (c *OpenedCatalog) IsBundles() bool {
	_, ok := c.Format.(bundleDirs)
	return ok
}

// IsOne reports whether the catalog is a directory with one chart or release.
func (c *OpenedCatalog) IsOne() bool {
	_, ok := c.Format.(oneVersion)
	return ok
}

// Close releases all resources of the catalog.
func (c *OpenedCatalog) Close() {
	for _, f := range c.close {
		_ = f() // ignore the error: files were only read
	}
}
