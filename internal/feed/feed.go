// Package feed is the available upgrades as static files, in the form of a custom
// datasource of Renovate: one for each operator of the lock, and one for each channel
// of its package. An upgrade that cannot be made is left out.
//
// Start from [Of].
package feed

import (
	"encoding/json"
	"net/url"
	"path"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/resolve"
)

// file is one file of the feed, as Renovate reads it.
type file struct {
	Releases  []release `json:"releases"`            // oldest first
	SourceURL string    `json:"sourceUrl,omitempty"` // of the repository, as the bundle names it
}

type release struct {
	Version        string `json:"version"`
	IsDeprecated   bool   `json:"isDeprecated,omitempty"`
	SupportedUntil string `json:"supportedUntil,omitempty"` // the last day, where the catalog says it; Renovate does not read it
}

// Of returns the files for operators of these ages.
func Of(x *catalog.Index, ages []resolve.Age) (*filetree.Tree, error) {
	t := filetree.New()
	packages := map[string]bool{}
	for _, a := range ages {
		f := file{Releases: []release{{Version: a.Pinned, IsDeprecated: len(a.Deprecated) > 0, SupportedUntil: a.Lifecycle.Ends()}}}
		if a.Next != "" && offered(a) {
			next := release{Version: a.Next}
			if b := bundleOf(x, a.Package, a.Next); b != nil {
				next.SupportedUntil, f.SourceURL = b.Lifecycle().Ends(), inert.URL(b.Metadata().Annotations["repository"])
			}
			f.Releases = append(f.Releases, next)
		}
		if err := add(t, path.Join("operators", a.Namespace, a.Package), f); err != nil {
			return nil, err
		}
		if packages[a.Package] {
			continue
		}
		packages[a.Package] = true
		for channel, f := range channels(x, a.Package) {
			if err := add(t, path.Join("packages", a.Package, url.PathEscape(channel)), f); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// offered reports whether an upgrade that is asked for by name can be made, as far
// as the operator itself goes.
func offered(a resolve.Age) bool {
	switch a.HeldBack {
	case resolve.HeldByHold, resolve.HeldByRange, resolve.HeldByInstallMode, resolve.HeldByCluster:
		return false
	default:
		return true
	}
}

// bundleOf returns a version of a package, of the first catalog that has it; nil
// where none does.
func bundleOf(x *catalog.Index, pkg, version string) *catalog.Bundle {
	for _, cat := range x.Having(pkg) {
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

// channels returns what each channel of a package offers, in any catalog.
func channels(x *catalog.Index, pkg string) map[string]file {
	out := map[string]file{}
	for _, cat := range x.Having(pkg) {
		p, ok := cat.Package(pkg)
		if !ok {
			continue
		}
		for _, c := range p.Channels() {
			f := out[c.Name()]
			for _, e := range slices.Backward(c.Walk()) {
				r := release{Version: e.Bundle().Version().String(), IsDeprecated: e.Bundle().Deprecated() || e.Bundle().Deprecation() != "", SupportedUntil: e.Bundle().Lifecycle().Ends()}
				if !slices.ContainsFunc(f.Releases, func(have release) bool { return have.Version == r.Version }) {
					f.Releases = append(f.Releases, r)
				}
			}
			out[c.Name()] = f
		}
	}
	return out
}

func add(t *filetree.Tree, name string, f file) error {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return t.Add(name+".json", append(data, '\n'))
}
