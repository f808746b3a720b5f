// Package image reads the files of catalog images and bundle images.
//
// It reads only the directories that the image labels name. It streams the layers in order and
// applies whiteouts. It never uses a path of an image as a path in the file system, and executes
// nothing. [Limits] bounds memory, disk space and time.
//
// The package does not interpret the content of catalogs and bundles.
//
// Start from [Open], [Image.FS] and [Limits].
//
// There is no compatibility promise yet: exported names may change in any release.
package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
)

// Kind is the kind of content of an image.
type Kind string

// The kinds of images.
const (
	Catalog  Kind = "catalog"  // a file-based catalog
	Database Kind = "database" // a catalog as an SQLite database, the format before file-based catalogs
	Bundle   Kind = "bundle"   // one version of an operator, registry+v1
)

// LabelConfigs is the label with the directory of a file-based catalog.
const LabelConfigs = "operators.operatorframework.io.index.configs.v1"

const (
	labelDatabase  = "operators.operatorframework.io.index.database.v1"
	labelManifests = "operators.operatorframework.io.bundle.manifests.v1"
	labelMetadata  = "operators.operatorframework.io.bundle.metadata.v1"
)

// OpenOptions are the options of [Open]. The zero value means the default limits.
type OpenOptions struct {
	Limits Limits
}

// Image is an opened image. It is safe for concurrent use.
type Image struct {
	from  *oci.Image
	temp  func() (spoolFile, error)
	limit Limits

	mu   sync.Mutex
	tree *tree
}

// DatabaseError is the error of [Image.FS] for an image with an SQLite catalog. Use
// [Image.Database] instead.
type DatabaseError struct {
	Image string
	Path  string // path of the database in the image
}

func (e *DatabaseError) Error() string {
	return fmt.Sprintf("image %q contains an SQLite catalog (%s) instead of a file-based catalog", e.Image, e.Path)
}

// Open opens the image that source refers to, in any form that [oci.ParseReference] accepts. It
// reads the manifest and the labels but no layers. The caller must close the image.
func Open(ctx context.Context, c *oci.Client, source string, opt OpenOptions) (*Image, error) {
	from, err := c.Open(ctx, source)
	if err != nil {
		return nil, err
	}
	im := &Image{from: from, limit: opt.Limits.withDefaults(), temp: tempFile}
	if c.Store != nil {
		im.temp = func() (spoolFile, error) { return c.Store.Temp("files-") }
	}
	return im, nil
}

// Digest returns the digest of the image index, or of the manifest if there is no index.
func (im *Image) Digest() catalog.Digest { return catalog.Digest(im.from.Digest()) }

// Name returns the full reference of the image.
func (im *Image) Name() string { return im.from.Name() }

// Labels returns a copy of the image's labels.
func (im *Image) Labels() map[string]string { return im.from.Labels() }

// Kind returns the kind of the image according to its labels. If no label determines the kind, it
// returns Bundle. [Image.FS] then returns an error if the image is not a bundle.
func (im *Image) Kind() Kind {
	labels := im.Labels()
	switch {
	case labels[LabelConfigs] != "":
		return Catalog
	case labels[labelDatabase] != "":
		return Database
	default:
		return Bundle
	}
}

// FS returns the files of the image. For a catalog, the root is the catalog directory; for a
// bundle, the root contains the manifests and metadata directories. The files also implement
// io.ReaderAt and io.Seeker, and can be read until the image is closed. The first call reads the
// layers. If the stored copy of a layer is damaged, FS fetches that layer once more.
func (im *Image) FS(ctx context.Context) (fs.FS, error) {
	labels := im.Labels()
	switch im.Kind() {
	case Catalog:
		return im.catalogFS(ctx, labels[LabelConfigs])
	case Database:
		return nil, &DatabaseError{Image: im.Name(), Path: labels[labelDatabase]}
	default:
		return im.bundleFS(ctx, labels)
	}
}

// Archive returns the only layer of an artifact such as a chart, as stored and verified. A layer of more
// than limit bytes is an error.
func (im *Image) Archive(ctx context.Context, limit int64) ([]byte, error) {
	layers := im.from.Layers()
	if len(layers) != 1 {
		return nil, im.errorf("%d layers, expected one with the archive", len(layers))
	}
	if layers[0].Size > limit {
		return nil, im.errorf("layer %s: %d bytes exceed the limit of %d", layers[0].Digest, layers[0].Size, limit)
	}
	r, err := layers[0].Stored(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	return data, im.wrapLayerError(layers[0], err)
}

// Database returns a file system with the SQLite catalog of the image, and the name of the file in
// it. The kind of the image must be Database. The file can be read until the image is closed.
func (im *Image) Database(ctx context.Context) (fs.FS, string, error) {
	name, err := cleanPath(im.Labels()[labelDatabase])
	if err != nil || name == "." {
		return nil, "", im.errorf("label %s: %q is not the path of a file", labelDatabase, im.Labels()[labelDatabase])
	}
	t, err := im.read(ctx, path.Dir(name))
	if err != nil {
		return nil, "", err
	}
	return t.files(map[string]string{".": t.resolvedDir(path.Dir(name))}), path.Base(name), nil
}

func (im *Image) catalogFS(ctx context.Context, dir string) (fs.FS, error) {
	dir, err := cleanPath(dir)
	if err != nil {
		return nil, im.errorf("label %s: %w", LabelConfigs, err)
	}
	t, err := im.read(ctx, dir)
	if err != nil {
		return nil, err
	}
	if !t.isDir(t.resolvedDir(dir)) {
		return nil, im.errorf("no directory %q, which label %s names", "/"+dir, LabelConfigs)
	}
	return t.files(map[string]string{".": t.resolvedDir(dir)}), nil
}

func (im *Image) bundleFS(ctx context.Context, labels map[string]string) (fs.FS, error) {
	manifests, err := cleanPathOr(labels[labelManifests], "manifests")
	if err != nil {
		return nil, im.errorf("label %s: %w", labelManifests, err)
	}
	metadata, err := cleanPathOr(labels[labelMetadata], "metadata")
	if err != nil {
		return nil, im.errorf("label %s: %w", labelMetadata, err)
	}
	t, err := im.read(ctx, manifests, metadata)
	if err != nil {
		return nil, err
	}
	if t.isDir(t.resolvedDir(manifests)) {
		return t.files(map[string]string{"manifests": t.resolvedDir(manifests), "metadata": t.resolvedDir(metadata)}), nil
	}
	if labels[labelManifests] == "" {
		return nil, im.errorf("neither a catalog nor a bundle: it has none of the labels %s, %s, %s, and no directory /manifests",
			LabelConfigs, labelDatabase, labelManifests)
	}
	return nil, im.errorf("no directory %q, which label %s names", "/"+manifests, labelManifests)
}

// Close releases all resources of the image.
func (im *Image) Close() error {
	im.mu.Lock()
	defer im.mu.Unlock()
	var err error
	if im.tree != nil {
		err = im.tree.spool.close()
	}
	return errors.Join(err, im.from.Close())
}

// read returns the files below dirs. All calls for the same image must pass the same dirs.
func (im *Image) read(ctx context.Context, dirs ...string) (*tree, error) {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.tree != nil {
		return im.tree, nil
	}
	t, err := im.extract(ctx, dirs)
	var damaged *store.CorruptError
	if errors.As(err, &damaged) { // the store has already removed the damaged layer: fetch it again
		t, err = im.extract(ctx, dirs)
	}
	if err != nil {
		return nil, err
	}
	im.tree = t
	return t, nil
}

func (im *Image) errorf(format string, args ...any) error {
	return &oci.Error{Image: im.Name(), Err: fmt.Errorf(format, args...)}
}

// cleanPath converts a path from a label or a tar entry to a clean path relative to the root of the
// image. The root itself is ".".
func cleanPath(p string) (string, error) {
	if strings.ContainsRune(p, 0) {
		return "", fmt.Errorf("path %q contains a zero byte", p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return "", fmt.Errorf("path %q points outside the image", p)
		}
	}
	return path.Join(".", path.Clean("/" + p)[1:]), nil
}

func cleanPathOr(p, fallback string) (string, error) {
	if p == "" {
		p = fallback
	}
	return cleanPath(p)
}
