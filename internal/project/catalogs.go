package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry/trust"
	"github.com/quayside/quayside/subscription"
	"github.com/quayside/quayside/workspace"
)

// Catalogs returns the catalogs of quayside.yaml and the declared ones, by
// namespace, then name. The former take the place of the latter by name.
func (p *Project) Catalogs(set *subscription.Set) []cache.Catalog {
	byID := map[catalog.ID]cache.Catalog{}
	for _, c := range set.CatalogSources {
		if !c.Disabled {
			byID[c.ID] = declaredCatalog(c)
		}
	}
	for i, c := range p.Settings.Catalogs {
		byID[c.ID()] = cache.Catalog{
			ID:       c.ID(),
			Source:   c.Source,
			Priority: int(c.Priority),
			Labels:   byID[c.ID()].Labels,
			Pos:      p.Settings.At(fmt.Sprintf("spec.catalogs[%d].source", i)),
		}
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b cache.Catalog) int {
		return cmp.Or(strings.Compare(a.ID.Namespace, b.ID.Namespace), strings.Compare(a.ID.Name, b.ID.Name))
	})
}

func declaredCatalog(c subscription.CatalogSource) cache.Catalog {
	cat := cache.Catalog{ID: c.ID, Priority: c.Priority, Labels: c.Labels, Pos: c.Content}
	const remedy = "give it a source in " + workspace.FileName + ", under spec.catalogs"
	switch {
	case c.Image != "":
		cat.Source = source.OfImage(c.Image)
	case c.Address != "":
		cat.Why = fmt.Sprintf("it is served at %s, which only a cluster can reach: %s", c.Address, remedy)
	default:
		cat.Why = "it names no image: " + remedy
	}
	return cat
}

// lockedAt returns the reference to read a catalog by. Where all pins that were taken
// from it have the same digest and the source is a tag, that is this digest; where they
// differ, the catalog is read as it is now.
func lockedAt(locked *lockfile.File, cat cache.Catalog) source.Ref {
	if locked == nil {
		return cat.Source
	}
	var digest catalog.Digest
	for _, c := range locked.Catalogs() {
		switch {
		case c.ID != cat.ID:
		case c.Source != lockfile.SourceName(string(cat.Source)) || digest != "" && c.Digest != digest:
			return cat.Source
		default:
			digest = c.Digest
		}
	}
	if digest == "" {
		return cat.Source
	}
	return cat.Source.AtDigest(digest)
}

// Place returns where the catalogs of the workspace are.
func (p *Project) Place() source.Place {
	return source.Place{Lookup: p.lookup, Image: p.openImage}
}

// indexes is what earlier runs have read of the catalogs.
func (p *Project) indexes() (*cache.Cache, error) {
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	return &cache.Cache{
		Store: client.Store, Place: p.Place(), Version: p.Version,
		Progress: p.tellCatalog,
	}, nil
}

// tellCatalog says what becomes of a catalog.
func (p *Project) tellCatalog(cat cache.Catalog, phase cache.Phase) {
	switch phase {
	case cache.Finding:
		p.Talk.Progress("reading catalog %s", cat.ID)
		p.Talk.Detail("catalog %s is %s", cat.ID, cmp.Or(cat.At, "nowhere"))
	case cache.Indexing:
		p.Talk.Progress("indexing catalog %s", cat.ID)
	case cache.Known:
		p.Talk.Detail("catalog %s was read before: its index is in the store", cat.ID)
	}
}

// Shelf opens catalogs. One that cannot be read is kept as broken, with the
// reason: resolve decides whether that matters. One without the signature that
// quayside.yaml demands is an error in any case. Where locked, which may be
// nil, holds a catalog by tag, what is read is the digest that was locked.
// Directories are hashed only where digests are asked for.
func (p *Project) Shelf(ctx context.Context, cats []cache.Catalog, locked *lockfile.File, digests bool) (*cache.Shelf, error) {
	indexes, err := p.indexes()
	if err != nil {
		return nil, err
	}
	if _, err := p.trusted(); err != nil {
		return nil, err
	}
	cats = slices.Clone(cats)
	for i, cat := range cats {
		cats[i].At = lockedAt(locked, cat)
	}
	sh := indexes.Open(ctx, cats, digests)
	p.Talk.Done()
	var faults diag.List
	for _, cat := range cats {
		var unsigned *trust.Error
		if errors.As(sh.Broken(cat.ID), &unsigned) {
			faults.Addf(cat.Pos, "catalog %q: %w", cat.ID, unsigned)
		}
	}
	if err := faults.Err(); err != nil {
		sh.Close()
		return nil, err
	}
	return sh, nil
}

// Broken returns what is wrong with the catalogs that could not be read, as
// warnings, or as an error where there is no other to look at.
func (p *Project) Broken(x *catalog.Index) ([]diag.Warning, error) {
	faults := broken(x, func(catalog.ID) bool { return true })
	if len(x.Catalogs()) == 0 {
		return nil, faults.Err()
	}
	var out []diag.Warning
	for _, f := range faults {
		out = append(out, diag.Warning{Pos: f.Pos, Code: "broken-catalog", Msg: (&diag.Error{Msg: f.Msg, Err: f.Err}).Error()})
	}
	return p.Waive(out), nil
}

// broken returns what is wrong with the catalogs that could not be read and
// that are wanted.
func broken(x *catalog.Index, wanted func(catalog.ID) bool) diag.List {
	var faults diag.List
	for id, err := range x.Broken() {
		var at *diag.Error
		switch {
		case !wanted(id):
		case errors.As(err, &at):
			faults.Addf(at.Pos, "catalog %q: %w", id, at.Err)
		default:
			faults.Addf(diag.Pos{}, "catalog %q: %w", id, err)
		}
	}
	return faults
}
