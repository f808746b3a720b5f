package source

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/internal/oci"
)

// dirScheme is the scheme of "dir:path", a directory with a file-based catalog. It is the default
// for a directory that no other scheme claims.
const dirScheme = "dir"

func findFileBased(_ context.Context, at Resolver, r Ref, rest string) (*Source, error) {
	return findDir(at, dirScheme, rest, func(c *OpenedCatalog) (Format, error) {
		if _, err := fs.Stat(c.FS, ".indexignore"); err != nil && IsLayout(c.FS) {
			return nil, fmt.Errorf("%q is an OCI layout with images: use %q", r, string(oci.Layout)+":"+rest)
		}
		return fileBased{c.FS}, nil
	})
}

// fileBased is the format of file-based catalogs.
type fileBased struct{ fsys fs.FS }

func (f fileBased) Content(context.Context) (catalog.Content, error) {
	return fbc.LoadFS(f.fsys)
}

func (f fileBased) Bundle(_ context.Context, pkg, name string, known *catalog.Bundle) (fs.FS, error) {
	if known != nil {
		return newEmbeddedBundle(pkg)(fbc.ObjectsOf(f.fsys, known))
	}
	return newEmbeddedBundle(pkg)(fbc.Objects(f.fsys, pkg, name))
}

// newEmbeddedBundle returns a function that converts the embedded manifests of a bundle of pkg to a bundle
// directory. If its argument err is not nil, the function returns err.
func newEmbeddedBundle(pkg string) func(objects [][]byte, err error) (fs.FS, error) {
	return func(objects [][]byte, err error) (fs.FS, error) {
		switch {
		case err != nil:
			return nil, err
		case len(objects) == 0:
			return nil, fs.ErrNotExist
		default:
			return bundle.FSFromObjects(objects, pkg)
		}
	}
}
