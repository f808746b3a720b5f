package edit

import (
	"context"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/lockfile"
)

// Completer returns shell completions from the lock and the catalogs. On errors it returns no completions.
type Completer struct {
	Workspace *workspace.Project
	Here      workspace.Root // base of relative paths in Catalog
	Catalog   string         // catalog from --catalog; empty: all
}

// pinWords returns the result of word for each pin of the lock.
func (at Completer) pinWords(word func(lockfile.Pin) string) []string {
	lock, err := at.Workspace.Lock()
	if err != nil {
		return nil
	}
	var out []string
	for _, pin := range lock.Pins {
		out = append(out, word(pin))
	}
	return out
}

// Operators returns the operators of the lock.
func (at Completer) Operators(context.Context, string) []string { return at.pinWords(lockfile.Pin.Key) }

// Namespaces returns the install namespaces of the lock.
func (at Completer) Namespaces(context.Context, string) []string {
	return at.pinWords(func(pin lockfile.Pin) string { return pin.Namespace })
}

// Clusters returns the names of the clusters.
func (at Completer) Clusters(context.Context, string) []string {
	return at.Workspace.Settings.ClusterNames()
}

// Pinned returns the operators of the lock as namespace/package. If prefix is not empty and has no slash,
// Pinned also returns, without namespace, each package that is pinned exactly once.
func (at Completer) Pinned(_ context.Context, prefix string) []string {
	out := at.pinWords(lockfile.Pin.Key)
	if prefix == "" || strings.Contains(prefix, "/") {
		return out
	}
	names := at.pinWords(func(pin lockfile.Pin) string { return pin.Package })
	for i, name := range names {
		if !slices.Contains(names[:i], name) && !slices.Contains(names[i+1:], name) {
			out = append(out, name)
		}
	}
	return out
}

// Versions returns the operators of the lock. If prefix contains an @, it returns the versions of
// that operator in the catalogs.
func (at Completer) Versions(ctx context.Context, prefix string) []string {
	key, _, behind := strings.Cut(prefix, "@")
	if !behind {
		return at.Pinned(ctx, prefix)
	}
	return at.packageWords(ctx, key[strings.LastIndex(key, "/")+1:], func(p *catalog.Package) []string { return completeVersions(key, p) })
}

// Requests returns the packages of the catalogs. If prefix contains an @, it returns the channels
// and versions of that package.
func (at Completer) Requests(ctx context.Context, prefix string) []string {
	name, _, behind := strings.Cut(prefix, "@")
	if !behind {
		return at.Packages(ctx, prefix)
	}
	return at.packageWords(ctx, name, func(p *catalog.Package) []string {
		out := completeVersions(name, p)
		for _, c := range p.ChannelNames() {
			out = append(out, name+"@"+c)
		}
		return out
	})
}

func completeVersions(name string, p *catalog.Package) []string {
	var out []string
	for _, b := range p.Bundles() {
		out = append(out, name+"@"+b.Version().String())
	}
	return out
}

// packageWords returns the words for the package with this name, from all catalogs that have it.
func (at Completer) packageWords(ctx context.Context, name string, words func(*catalog.Package) []string) []string {
	return at.catalogWords(ctx, func(sh *cache.CatalogSet) (out []string) {
		x, err := sh.Pick(ctx, cache.PickNames(name))
		if err != nil {
			return nil
		}
		for _, c := range x.Catalogs() {
			if p, ok := c.Package(name); ok {
				out = append(out, words(p)...)
			}
		}
		return out
	})
}

// Packages returns the packages of the catalogs.
func (at Completer) Packages(ctx context.Context, _ string) []string {
	return at.catalogWords(ctx, func(sh *cache.CatalogSet) (out []string) {
		found, _ := sh.Search(ctx, nil)
		for _, p := range found {
			out = append(out, p.Name)
		}
		return out
	})
}

// Catalogs returns the names of the catalogs.
func (at Completer) Catalogs(context.Context, string) []string {
	set, err := at.Workspace.DeclarationsIfAny()
	if err != nil {
		return nil
	}
	var out []string
	for _, c := range at.Workspace.Catalogs(set) {
		out = append(out, c.ID.String())
	}
	return out
}

// catalogWords calls words with the selected catalogs and returns the result.
func (at Completer) catalogWords(ctx context.Context, words func(*cache.CatalogSet) []string) []string {
	set, err := at.Workspace.DeclarationsIfAny()
	if err != nil {
		return nil
	}
	p, chosen, err := at.Workspace.ChooseCatalogs(at.Catalog, at.Workspace.Catalogs(set), at.Here)
	if err != nil {
		return nil
	}
	locked, _ := p.Lock() // without a lock, the tags of catalogs are not resolved
	sh, err := p.OpenCatalogs(ctx, chosen, workspace.CatalogOptions{Locked: locked})
	if err != nil {
		return nil
	}
	defer sh.Close()
	return words(sh)
}
