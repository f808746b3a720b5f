package source

import (
	"context"
	"errors"
	"io/fs"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/internal/oci"
)

// IsLayout reports whether the root of fsys is an OCI image layout.
func IsLayout(fsys fs.FS) bool {
	_, err := fs.Stat(fsys, "oci-layout")
	return err == nil
}

// AtDigest returns a reference to a registry with its tag replaced by digest d. Other references
// are returned unchanged.
func (r Ref) AtDigest(d catalog.Digest) Ref {
	if !r.IsRemote() {
		return r
	}
	parsed, err := oci.ParseReference(string(r))
	if err != nil || parsed.Digest != "" {
		return r
	}
	return ImageRef(parsed.Name + "@" + string(d))
}

// ImageRef returns the reference of an image in a registry, such as "image:quay.io/org/catalog:v1".
func ImageRef(name string) Ref { return Ref(string(oci.Remote) + ":" + name) }

// findImage returns the source for an image in a registry or OCI layout. The name of the source
// contains the digest, so an index is valid for all references to the same image.
func findImage(ctx context.Context, at Resolver, r Ref, _ string) (*Source, error) {
	im, err := at.Image(ctx, string(r))
	if err != nil {
		return nil, err
	}
	return &Source{
		Name:  "image " + string(im.Digest()),
		Open:  func(ctx context.Context) (*OpenedCatalog, error) { return catalogInImage(ctx, im) },
		close: im.Close,
	}, nil
}

// findArchive returns the source for an image in an OCI archive. The digest of the image is only
// known after reading the whole file.
func findArchive(_ context.Context, at Resolver, r Ref, _ string) (*Source, error) {
	src, err := oci.ParseReference(string(r))
	if err != nil {
		return nil, err
	}
	file, err := at.Lookup(src.Name)
	if err != nil {
		return nil, err
	}
	src.Name = file.Path
	return file.source(src.String(), func(ctx context.Context) (*OpenedCatalog, error) {
		im, err := at.Image(ctx, string(r))
		if err != nil {
			return nil, err
		}
		c, err := catalogInImage(ctx, im)
		if err != nil {
			return nil, errors.Join(err, im.Close())
		}
		c.close = append(c.close, im.Close)
		return c, nil
	}), nil
}

// catalogInImage returns the catalog in im. The caller must close im.
func catalogInImage(ctx context.Context, im *image.Image) (*OpenedCatalog, error) {
	c := &OpenedCatalog{Digest: func() (catalog.Digest, error) { return im.Digest(), nil }}
	var err error
	switch im.Kind() {
	case image.Catalog:
		c.FS, err = im.FS(ctx)
		c.Format = fileBased{c.FS}
	case image.Database:
		var file string
		c.FS, file, err = im.Database(ctx)
		c.Format = sqliteFormat{c.FS, file}
	case image.Bundle:
		c.FS, err = im.FS(ctx)
		c.Format = bundleDirs{c.FS, nil}
	}
	return c, err
}
