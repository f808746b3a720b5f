package source

import (
	"context"
	"io/fs"
	"strings"

	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/internal/diag"
)

// packageManifests is "package-manifests:path": the format before bundles.
const packageManifests = "package-manifests"

func claimsPackageManifests(fsys fs.FS) (bool, error) {
	return anyEntry(fsys, func(name string, e fs.DirEntry) bool {
		return !e.IsDir() && strings.HasSuffix(name, ".package.yaml")
	})
}

func findPackageManifests(_ context.Context, at Place, _ Ref, rest string) (*Source, error) {
	return findDir(at, packageManifests, rest, func(c *Catalog) (_ Form, err error) {
		c.FS, err = bundledir.Packages(c.FS)
		return bundleDirs{c.FS, original}, diag.Below(rest, err)
	})
}

// original returns the place of what a bundle was made of.
func original(p diag.Pos) diag.Pos {
	p.File = bundledir.Original(p.File)
	return p
}
