package source

import (
	"context"
	"io/fs"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/catalog/charts"
	"github.com/quayside/quayside/internal/diag"
)

// bundlesScheme is the scheme of "bundles:path", a directory of bundle directories.
const bundlesScheme = "bundles"

func claimsBundles(fsys fs.FS) (bool, error) {
	return anyEntry(fsys, func(name string, e fs.DirEntry) bool {
		return e.IsDir() && bundle.IsDir(fsys, name)
	})
}

// anyEntry reports whether match returns true for any file or directory below dir, at any depth.
func anyEntry(fsys fs.FS, match func(name string, e fs.DirEntry) bool) (bool, error) {
	found := false
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && match(name, e) {
			found = true
			return fs.SkipAll
		}
		return err
	})
	return found, err
}

func findBundles(_ context.Context, at Resolver, _ Ref, rest string) (*Source, error) {
	return findDir(at, bundlesScheme, rest, func(c *OpenedCatalog) (Format, error) {
		if !bundle.IsDir(c.FS, ".") {
			if _, ok := charts.ReadOne(c.FS, rest); ok {
				return oneVersion{versionFiles{c.FS, func(fsys fs.FS) (*charts.Index, error) {
					x, _ := charts.ReadOne(fsys, rest)
					return x, nil
				}, openVersion}}, nil
			}
		}
		return bundleDirs{c.FS, nil}, nil
	})
}

// oneVersion is the format of a directory with one chart or release. A subscription can refer to such a
// directory as it refers to a bundle.
type oneVersion struct{ versionFiles }

// openVersion returns the files of a chart, or the directory of a release.
func openVersion(fsys fs.FS, name string) (fs.FS, error) {
	if _, err := fs.Stat(fsys, charts.File); err == nil {
		return charts.Open(fsys, name)
	}
	return fs.Sub(fsys, name)
}

// BundleRef returns a reference to a single bundle as a catalog. A directory gets the scheme
// "bundles"; other references are returned unchanged.
func BundleRef(ref string) Ref {
	if dir, _ := Ref(ref).Argument(); dir != "" {
		return Ref(bundlesScheme + ":" + dir)
	}
	return Ref(ref)
}

// bundleDirs is the format of a directory of bundle directories. If the directories were converted from
// another format, original maps a position in a converted file to the position in the original file.
// Otherwise original is nil.
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
		err = diag.MapPositions(err, d.original)
	}
	return c, err
}

func (d bundleDirs) Bundle(_ context.Context, pkg, name string, known *catalog.Bundle) (fs.FS, error) {
	if known != nil {
		return bundledir.FindAt(d.fsys, pkg, name, known.Pos().File)
	}
	return bundledir.Find(d.fsys, pkg, name)
}
