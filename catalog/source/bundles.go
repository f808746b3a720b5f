package source

import (
	"context"
	"io/fs"
	"path"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/internal/diag"
)

// bundles is "bundles:path": a directory of bundle directories.
const bundles = "bundles"

func claimsBundles(fsys fs.FS) (bool, error) {
	return anyEntry(fsys, func(name string, e fs.DirEntry) bool {
		if !e.IsDir() {
			return false
		}
		_, err := fs.Stat(fsys, path.Join(name, "metadata/annotations.yaml"))
		return err == nil
	})
}

// anyEntry reports whether a directory holds an entry, at any depth, of which is
// is true.
func anyEntry(fsys fs.FS, is func(name string, e fs.DirEntry) bool) (bool, error) {
	found := false
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && is(name, e) {
			found = true
			return fs.SkipAll
		}
		return err
	})
	return found, err
}

func findBundles(_ context.Context, at Place, _ Ref, rest string) (*Source, error) {
	return findDir(at, bundles, rest, func(c *Catalog) (Form, error) { return bundleDirs{c.FS, nil}, nil })
}

// OfBundle returns the reference of the catalog that a bundle is by itself: a
// bundle's directory is one of bundles that holds one.
func OfBundle(ref string) Ref {
	if kind, rest := Ref(ref).Kind(); kind == Directory {
		return Ref(bundles + ":" + rest)
	}
	return Ref(ref)
}

// bundleDirs is the form of directories of bundle directories. original returns
// the place that a fault is told at, where they were made of something else.
type bundleDirs struct {
	fsys     fs.FS
	original func(diag.Pos) diag.Pos
}

func (d bundleDirs) Content(context.Context) (catalog.Content, error) {
	c, err := bundledir.LoadFS(d.fsys)
	if d.original != nil {
		for i := range c.Warnings {
			c.Warnings[i].Pos = d.original(c.Warnings[i].Pos)
		}
		err = diag.Moved(err, d.original)
	}
	return c, err
}

func (d bundleDirs) Bundle(_ context.Context, pkg, name string, _ *catalog.Bundle) (fs.FS, error) {
	return bundledir.Find(d.fsys, pkg, name)
}
