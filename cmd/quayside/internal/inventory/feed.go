package inventory

import (
	"encoding/json"
	"net/url"
	"path"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/resolve"
)

// feedFile is one file of the feed, in the format of Renovate's custom datasource.
type feedFile struct {
	Releases  []feedRelease `json:"releases"`            // oldest first
	SourceURL string        `json:"sourceUrl,omitempty"` // URL of the source repository, from the bundle's annotations
}

type feedRelease struct {
	Version        string `json:"version"`
	IsDeprecated   bool   `json:"isDeprecated,omitempty"`
	SupportedUntil string `json:"supportedUntil,omitempty"` // last day of support; empty if unknown; ignored by Renovate
}

// NewFeed returns the files of the feed: operators/<namespace>/<package>.json with the pinned and
// the next version of each operator, and packages/<package>/<channel>.json with the versions of
// each channel.
func NewFeed(x *catalog.Index, ages []resolve.Age) (*filetree.Tree, error) {
	t := filetree.New()
	packages := map[string]bool{}
	for _, a := range ages {
		f := feedFile{Releases: []feedRelease{{Version: a.Pinned, IsDeprecated: len(a.Deprecated) > 0, SupportedUntil: a.Lifecycle.LastDay()}}}
		if a.Next != "" && isOffered(a) {
			next := feedRelease{Version: a.Next}
			if b := findBundle(x, a.Package, a.Next); b != nil {
				next.SupportedUntil, f.SourceURL = b.Lifecycle().LastDay(), sanitize.URL(b.Metadata().Annotations["repository"])
			}
			f.Releases = append(f.Releases, next)
		}
		if err := addFeedFile(t, path.Join("operators", a.Namespace, a.Package), f); err != nil {
			return nil, err
		}
		if packages[a.Package] {
			continue
		}
		packages[a.Package] = true
		for channel, f := range newChannelFiles(x, a.Package) {
			if err := addFeedFile(t, path.Join("packages", a.Package, url.PathEscape(channel)), f); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// isOffered reports whether an upgrade of the operator succeeds if the user requests it by name.
func isOffered(a resolve.Age) bool {
	switch a.HeldBack {
	case resolve.HeldByHold, resolve.HeldByRange, resolve.HeldByInstallMode, resolve.HeldByCluster:
		return false
	default:
		return true
	}
}

// findBundle returns the bundle of a version from the first catalog that has it, or nil.
func findBundle(x *catalog.Index, pkg, version string) *catalog.Bundle {
	for _, cat := range x.CatalogsWith(pkg) {
		p, ok := cat.Package(pkg)
		if !ok {
			continue
		}
		for _, b := range p.Bundles() {
			if b.Version().String() == version {
				return b
			}
		}
	}
	return nil
}

// newChannelFiles returns a file for each channel of a package, by channel name. A channel that is in several
// catalogs has one file.
func newChannelFiles(x *catalog.Index, pkg string) map[string]feedFile {
	out := map[string]feedFile{}
	for _, cat := range x.CatalogsWith(pkg) {
		p, ok := cat.Package(pkg)
		if !ok {
			continue
		}
		for _, c := range p.Channels() {
			f := out[c.Name()]
			for _, e := range slices.Backward(c.Walk()) {
				r := feedRelease{Version: e.Bundle().Version().String(), IsDeprecated: e.Bundle().Deprecated() || e.Bundle().Deprecation() != "", SupportedUntil: e.Bundle().Lifecycle().LastDay()}
				if !slices.ContainsFunc(f.Releases, func(have feedRelease) bool { return have.Version == r.Version }) {
					f.Releases = append(f.Releases, r)
				}
			}
			out[c.Name()] = f
		}
	}
	return out
}

func addFeedFile(t *filetree.Tree, name string, f feedFile) error {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return t.Add(name+".json", append(data, '\n'))
}
