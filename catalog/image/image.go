// Package image gives access to the files of catalog and bundle images.
//
// Only the directory that the image's labels name is read: layers are streamed
// in order, whiteouts are applied, and everything else is passed over. Nothing
// of an image touches the file system by its own name, nothing is executed,
// and what an image can make the reader do is bounded by [Limits].
//
// The package knows where an image keeps what it is for; it does not know what
// a catalog or a bundle says.
//
// Start from [Open], [Image.FS] and [Limits].
package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/registry"
)

// Kind says what an image is for.
type Kind string

// The kinds of image.
const (
	Catalog  Kind = "catalog"  // a file-based catalog
	Database Kind = "database" // a catalog as SQLite database, the form before file-based catalogs
	Bundle   Kind = "bundle"   // one version of an operator, registry+v1
)

const (
	labelConfigs   = "operators.operatorframework.io.index.configs.v1"
	labelDatabase  = "operators.operatorframework.io.index.database.v1"
	labelManifests = "operators.operatorframework.io.bundle.manifests.v1"
	labelMetadata  = "operators.operatorframework.io.bundle.metadata.v1"
)

// Options says how an image is read. The zero value has the default limits.
type Options struct {
	Limits Limits
}

// Image is an opened image. It may be used by several goroutines.
type Image struct {
	from  *registry.Image
	temp  func() (spoolFile, error)
	limit Limits

	mu   sync.Mutex
	tree *tree
}

// DatabaseError says that an image holds a catalog in the old form, which
// [Image.FS] does not read.
type DatabaseError struct {
	Image string
	Path  string // of the database within the image
}

// Error names the image.
func (e *DatabaseError) Error() string {
	return fmt.Sprintf("image %q: an SQLite catalog (%s), not a file-based one", e.Image, e.Path)
}

// Open opens the image that source names, in any form that
// [registry.ParseSource] reads. Its manifest and labels are read, its layers
// are not. The caller closes it.
func Open(ctx context.Context, c *registry.Client, source string, opt Options) (*Image, error) {
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

// Digest returns the digest of what the reference names.
func (im *Image) Digest() catalog.Digest { return catalog.Digest(im.from.Digest()) }

// Name returns the image's reference in its full form.
func (im *Image) Name() string { return im.from.Name() }

// Labels returns a copy of the image's labels.
func (im *Image) Labels() map[string]string { return im.from.Labels() }

// Kind returns what the labels say the image is for. An image without any of
// the labels is taken for a bundle, and [Image.FS] finds out.
func (im *Image) Kind() Kind {
	labels := im.Labels()
	switch {
	case labels[labelConfigs] != "":
		return Catalog
	case labels[labelDatabase] != "":
		return Database
	default:
		return Bundle
	}
}

// FS returns the image's files: a catalog's directory as the root, or a
// bundle's manifests and metadata directories. Its files also implement
// io.ReaderAt and io.Seeker. They can be read until the image is closed. The
// layers are read by the first call; one whose stored copy turns out to be
// damaged is fetched again once.
func (im *Image) FS(ctx context.Context) (fs.FS, error) {
	labels := im.Labels()
	switch im.Kind() {
	case Catalog:
		return im.catalogFS(ctx, labels[labelConfigs])
	case Database:
		return nil, &DatabaseError{Image: im.Name(), Path: labels[labelDatabase]}
	default:
		return im.bundleFS(ctx, labels)
	}
}

// Database returns the file system that holds an SQLite catalog, and its name
// there. It is for images of that kind; see [Image.FS] for how long it lives.
func (im *Image) Database(ctx context.Context) (fs.FS, string, error) {
	name, err := clean(im.Labels()[labelDatabase])
	if err != nil || name == "." {
		return nil, "", im.errorf("label %s: %q is not a file's path", labelDatabase, im.Labels()[labelDatabase])
	}
	t, err := im.read(ctx, path.Dir(name))
	if err != nil {
		return nil, "", err
	}
	return t.files(map[string]string{".": t.at(path.Dir(name))}), path.Base(name), nil
}

func (im *Image) catalogFS(ctx context.Context, dir string) (fs.FS, error) {
	dir, err := clean(dir)
	if err != nil {
		return nil, im.errorf("label %s: %w", labelConfigs, err)
	}
	t, err := im.read(ctx, dir)
	if err != nil {
		return nil, err
	}
	if !t.isDir(t.at(dir)) {
		return nil, im.errorf("no directory %q, which label %s names", "/"+dir, labelConfigs)
	}
	return t.files(map[string]string{".": t.at(dir)}), nil
}

func (im *Image) bundleFS(ctx context.Context, labels map[string]string) (fs.FS, error) {
	manifests, err := cleanOr(labels[labelManifests], "manifests")
	if err != nil {
		return nil, im.errorf("label %s: %w", labelManifests, err)
	}
	metadata, err := cleanOr(labels[labelMetadata], "metadata")
	if err != nil {
		return nil, im.errorf("label %s: %w", labelMetadata, err)
	}
	t, err := im.read(ctx, manifests, metadata)
	if err != nil {
		return nil, err
	}
	if t.isDir(t.at(manifests)) {
		return t.files(map[string]string{"manifests": t.at(manifests), "metadata": t.at(metadata)}), nil
	}
	if labels[labelManifests] == "" {
		return nil, im.errorf("neither a catalog nor a bundle: it has none of the labels %s, %s, %s, and no directory /manifests",
			labelConfigs, labelDatabase, labelManifests)
	}
	return nil, im.errorf("no directory %q, which label %s names", "/"+manifests, labelManifests)
}

// Close releases what reading has taken.
func (im *Image) Close() error {
	im.mu.Lock()
	defer im.mu.Unlock()
	var err error
	if im.tree != nil {
		err = im.tree.spool.close()
	}
	return errors.Join(err, im.from.Close())
}

// read returns the files below dirs, which are the same at each call.
func (im *Image) read(ctx context.Context, dirs ...string) (*tree, error) {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.tree != nil {
		return im.tree, nil
	}
	t, err := im.extract(ctx, dirs)
	var damaged *store.CorruptError
	if errors.As(err, &damaged) { // gone from the store by now
		t, err = im.extract(ctx, dirs)
	}
	if err != nil {
		return nil, err
	}
	im.tree = t
	return t, nil
}

func (im *Image) errorf(format string, args ...any) error {
	return &registry.Error{Image: im.Name(), Err: fmt.Errorf(format, args...)}
}

// clean turns a label's or an entry's path into one below the image's root,
// "." for the root itself.
func clean(p string) (string, error) {
	if strings.ContainsRune(p, 0) {
		return "", fmt.Errorf("path %q holds a zero byte", p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return "", fmt.Errorf("path %q points outside the image", p)
		}
	}
	return path.Join(".", path.Clean("/" + p)[1:]), nil
}

func cleanOr(p, fallback string) (string, error) {
	if p == "" {
		p = fallback
	}
	return clean(p)
}
