package source

import (
	"context"
	"errors"
	"io/fs"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/registry"
)

// IsLayout reports whether a directory is an OCI layout.
func IsLayout(fsys fs.FS) bool {
	_, err := fs.Stat(fsys, "oci-layout")
	return err == nil
}

// Remote returns the reference of an image in a registry, without its scheme.
// It is false where r names something else.
func (r Ref) Remote() (name string, ok bool) {
	return registry.CutRemote(string(r))
}

// AtDigest returns a reference to an image in a registry by digest, where r has
// a tag. Any other comes back as it is.
func (r Ref) AtDigest(d catalog.Digest) Ref {
	if _, ok := r.Remote(); !ok {
		return r
	}
	parsed, err := registry.ParseSource(string(r))
	if err != nil || parsed.Digest != "" {
		return r
	}
	return OfImage(parsed.Name + "@" + string(d))
}

// OfImage returns a reference to an image in a registry.
func OfImage(name string) Ref { return Ref(string(registry.Remote) + ":" + name) }

// findImage finds an image by its digest, which is all that an index depends on.
func findImage(ctx context.Context, at Place, r Ref, _ string) (*Source, error) {
	im, err := at.Image(ctx, string(r))
	if err != nil {
		return nil, err
	}
	return &Source{
		Name:  "image " + string(im.Digest()),
		Open:  func(ctx context.Context) (*Catalog, error) { return ofImage(ctx, im) },
		close: im.Close,
	}, nil
}

// findArchive finds an image in a file, whose digest is only known by reading
// all of it.
func findArchive(_ context.Context, at Place, r Ref, _ string) (*Source, error) {
	src, err := registry.ParseSource(string(r))
	if err != nil {
		return nil, err
	}
	file, err := at.Lookup(src.Name)
	if err != nil {
		return nil, err
	}
	src.Name = file.Path
	return file.source(src.String(), func(ctx context.Context) (*Catalog, error) {
		im, err := at.Image(ctx, string(r))
		if err != nil {
			return nil, err
		}
		c, err := ofImage(ctx, im)
		if err != nil {
			return nil, errors.Join(err, im.Close())
		}
		c.close = append(c.close, im.Close)
		return c, nil
	}), nil
}

// ofImage returns the catalog in an image, which stays the caller's to close.
func ofImage(ctx context.Context, im *image.Image) (*Catalog, error) {
	c := &Catalog{Digest: func() (catalog.Digest, error) { return im.Digest(), nil }}
	var err error
	switch im.Kind() {
	case image.Catalog:
		c.FS, err = im.FS(ctx)
		c.Form = fileBased{c.FS}
	case image.Database:
		var file string
		c.FS, file, err = im.Database(ctx)
		c.Form = inDatabase{c.FS, file}
	case image.Bundle:
		c.FS, err = im.FS(ctx)
		c.Form = bundleDirs{c.FS, nil}
	}
	return c, err
}
