// Package suggest is what a shell is offered in place of a word: operators, versions,
// catalogs, from the lock, the declarations and the catalogs that are here.
//
// It opens no socket where the workspace was opened offline, and is never an error:
// what cannot be read offers nothing, for the command itself says what is wrong.
//
// Start from [Place].
package suggest

import (
	"context"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
)

// Place is where to look for words.
type Place struct {
	Workspace *project.Project
	Here      project.Root // what a path that names a catalog is relative to
	Catalog   string       // the only one to look in, as --catalog names it; empty: all of them
}

// ofPins returns a word of each pin of the lock.
func (at Place) ofPins(word func(lockfile.Pin) string) []string {
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
func (at Place) Operators(context.Context, string) []string { return at.ofPins(lockfile.Pin.Key) }

// Namespaces returns the install namespaces of the lock.
func (at Place) Namespaces(context.Context, string) []string {
	return at.ofPins(func(pin lockfile.Pin) string { return pin.Namespace })
}

// Clusters returns the names of the clusters.
func (at Place) Clusters(context.Context, string) []string { return at.Workspace.Clusters() }

// Pinned returns the operators of the lock: namespace/package, and the package
// alone once that is how the word begins, where one namespace has it.
func (at Place) Pinned(_ context.Context, prefix string) []string {
	out := at.ofPins(lockfile.Pin.Key)
	if prefix == "" || strings.Contains(prefix, "/") {
		return out
	}
	names := at.ofPins(func(pin lockfile.Pin) string { return pin.Package })
	for i, name := range names {
		if !slices.Contains(names[:i], name) && !slices.Contains(names[i+1:], name) {
			out = append(out, name)
		}
	}
	return out
}

// Versions returns the operators of the lock, and behind an @ the versions that
// the catalogs have of one.
func (at Place) Versions(ctx context.Context, prefix string) []string {
	key, _, behind := strings.Cut(prefix, "@")
	if !behind {
		return at.Pinned(ctx, prefix)
	}
	return at.each(ctx, key[strings.LastIndex(key, "/")+1:], func(p *catalog.Package) []string { return versions(key, p) })
}

// Wishes returns the packages of the catalogs, and behind an @ the channels and the
// versions of one.
func (at Place) Wishes(ctx context.Context, prefix string) []string {
	name, _, behind := strings.Cut(prefix, "@")
	if !behind {
		return at.Packages(ctx, prefix)
	}
	return at.each(ctx, name, func(p *catalog.Package) []string {
		out := versions(name, p)
		for _, c := range p.ChannelNames() {
			out = append(out, name+"@"+c)
		}
		return out
	})
}

func versions(name string, p *catalog.Package) []string {
	var out []string
	for _, b := range p.Bundles() {
		out = append(out, name+"@"+b.Version().String())
	}
	return out
}

// each returns the words of the packages of that name.
func (at Place) each(ctx context.Context, name string, words func(*catalog.Package) []string) []string {
	return at.browse(ctx, func(sh *cache.Shelf) (out []string) {
		x, err := sh.Pick(ctx, cache.Only(name))
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
func (at Place) Packages(ctx context.Context, _ string) []string {
	return at.browse(ctx, func(sh *cache.Shelf) (out []string) {
		found, _ := sh.Search(ctx, nil)
		for _, p := range found {
			out = append(out, p.Name)
		}
		return out
	})
}

// Catalogs returns the names of the catalogs.
func (at Place) Catalogs(context.Context, string) []string {
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

// browse returns the words of the catalogs, as far as they are here.
func (at Place) browse(ctx context.Context, words func(*cache.Shelf) []string) []string {
	set, err := at.Workspace.DeclarationsIfAny()
	if err != nil {
		return nil
	}
	p, chosen, err := at.Workspace.Choose(at.Catalog, at.Workspace.Catalogs(set), at.Here)
	if err != nil {
		return nil
	}
	locked, _ := p.Lock() // without it, what a tag stands for is not known
	sh, err := p.Shelf(ctx, chosen, locked, false)
	if err != nil {
		return nil
	}
	defer sh.Close()
	return words(sh)
}
