package source

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/registry"
)

// dir is "dir:path": a directory with a file-based catalog. It claims what nobody
// else does.
const dir = "dir"

func findFileBased(_ context.Context, at Place, r Ref, rest string) (*Source, error) {
	return findDir(at, dir, rest, func(c *Catalog) (Form, error) {
		if _, err := fs.Stat(c.FS, ".indexignore"); err != nil && IsLayout(c.FS) {
			return nil, fmt.Errorf("%q is an OCI layout, which holds images: want %q", r, string(registry.Layout)+":"+rest)
		}
		return fileBased{c.FS}, nil
	})
}

// fileBased is the form of file-based catalogs.
type fileBased struct{ fsys fs.FS }

func (f fileBased) Content(context.Context) (catalog.Content, error) {
	return fbc.LoadFS(f.fsys)
}

func (f fileBased) Bundle(_ context.Context, pkg, name string, known *catalog.Bundle) (fs.FS, error) {
	if known != nil {
		return embedded(pkg)(fbc.ObjectsOf(f.fsys, known))
	}
	return embedded(pkg)(fbc.Objects(f.fsys, pkg, name))
}

// embedded returns a function that makes a bundle of the manifests that a
// catalog embeds.
func embedded(pkg string) func(objects [][]byte, err error) (fs.FS, error) {
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
