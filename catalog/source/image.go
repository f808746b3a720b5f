package source

import (
	"context"
	"errors"
	"io/fs"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/internal/oci"
)

// IsLayout reports whether a directory is an OCI layout.
func IsLayout(fsys fs.FS) bool {
	_, err := fs.Stat(fsys, "oci-layout")
	return err == nil
}

// AtDigest replaces the tag of a reference to a registry by a digest. It
// returns other references unchanged.
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

// ImageRef returns a reference to an image in a registry.
func ImageRef(name string) Ref { return Ref(string(oci.Remote) + ":" + name) }

// findImage finds an image in a registry or a layout. Its index depends only on the digest.
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

// findArchive finds an image in a file. Finding its digest requires reading the whole file.
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

// catalogInImage returns the catalog in an image. The caller must close the image.
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
