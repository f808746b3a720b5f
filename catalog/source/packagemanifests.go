package source

import (
	"context"
	"io/fs"
	"strings"

	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/internal/diag"
)

// packageManifestsScheme is the scheme of "package-manifests:path", a directory of package
// manifests, the format before bundles.
const packageManifestsScheme = "package-manifests"

func claimsPackageManifests(fsys fs.FS) (bool, error) {
	return anyEntry(fsys, func(name string, e fs.DirEntry) bool {
		return !e.IsDir() && strings.HasSuffix(name, ".package.yaml")
	})
}

func findPackageManifests(_ context.Context, at Resolver, _ Ref, rest string) (*Source, error) {
	return findDir(at, packageManifestsScheme, rest, func(c *OpenedCatalog) (_ Format, err error) {
		c.FS, err = bundledir.Packages(c.FS)
		return bundleDirs{c.FS, originalPos}, diag.PrefixPositions(rest, err)
	})
}

// originalPos returns p with the file name before the conversion to bundles.
func originalPos(p diag.Pos) diag.Pos {
	p.File = bundledir.Original(p.File)
	return p
}
