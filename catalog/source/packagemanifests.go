package source

import (
	"context"
	"io/fs"
	"strings"

	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/internal/diag"
)

// packageManifests is "package-manifests:path": the format before bundles.
type packageManifests struct{}

func (packageManifests) Name() string              { return "package-manifests" }
func (packageManifests) Kind() Kind                { return Other }
func (packageManifests) Prefix(rest string) string { return rest }

func (packageManifests) Claims(fsys fs.FS) (bool, error) {
	return anyEntry(fsys, func(name string, e fs.DirEntry) bool {
		return !e.IsDir() && strings.HasSuffix(name, ".package.yaml")
	})
}

func (s packageManifests) Find(_ context.Context, at Place, rest string) (*Source, error) {
	return findDir(at, s, rest, func(c *Catalog) (_ Form, err error) {
		c.FS, err = bundledir.Packages(c.FS)
		return bundleDirs{c.FS, original}, diag.Below(rest, err)
	})
}

// original returns the place of what a bundle was made of.
func original(p diag.Pos) diag.Pos {
	p.File = bundledir.Original(p.File)
	return p
}
