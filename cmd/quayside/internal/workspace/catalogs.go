package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/oci/trust"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// Catalogs returns the catalogs in spec.catalogs, and the enabled CatalogSources in the declarations, sorted
// by namespace and name. If a catalog in spec.catalogs and a CatalogSource have the same namespace and name,
// the catalog in spec.catalogs is used.
func (p *Opened) Catalogs(set *declare.Set) []cache.CatalogSpec {
	byID := map[catalog.ID]cache.CatalogSpec{}
	for _, c := range set.CatalogSources {
		if !c.Disabled {
			byID[c.ID] = declaredCatalog(c)
		}
	}
	for i, c := range p.Settings.Catalogs {
		byID[c.ID()] = cache.CatalogSpec{
			ID:       c.ID(),
			Source:   c.Source,
			Priority: int(c.Priority),
			Labels:   byID[c.ID()].Labels,
			Pos:      p.Settings.At(fmt.Sprintf("spec.catalogs[%d].source", i)),
		}
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b cache.CatalogSpec) int { return a.ID.Compare(b.ID) })
}

// UndeclaredCatalogs returns the catalogs that Subscriptions of the workspace name, and that neither
// spec.catalogs nor a CatalogSource declares, sorted by namespace and name. Declarations that cannot
// be read are ignored.
func UndeclaredCatalogs(p *Project) []catalog.ID {
	set, _ := p.DeclarationsIfAny()
	if set == nil {
		return nil
	}
	declared := map[catalog.ID]bool{}
	for _, c := range set.CatalogSources {
		declared[c.ID] = true
	}
	for _, c := range p.Settings.Catalogs {
		declared[c.ID()] = true
	}
	named := map[catalog.ID]bool{}
	for _, s := range set.Subscriptions {
		if s.Catalog != nil && !declared[*s.Catalog] {
			named[*s.Catalog] = true
		}
	}
	return slices.SortedFunc(maps.Keys(named), catalog.ID.Compare)
}

func declaredCatalog(c declare.CatalogSource) cache.CatalogSpec {
	cat := cache.CatalogSpec{ID: c.ID, Priority: c.Priority, Labels: c.Labels, Pos: c.Content}
	const remedy = "set its source in " + settings.FileName + ", under spec.catalogs"
	switch {
	case c.Charts != "":
		cat.Source = source.ChartRef(c.Charts)
	case c.Image != "":
		cat.Source = source.ImageRef(c.Image)
	case c.Address != "":
		cat.Why = fmt.Sprintf("it is served at %s, which is reachable only from inside a cluster: %s", c.Address, remedy)
	default:
		cat.Why = "it has no image: " + remedy
	}
	return cat
}

// lockedRef returns the reference for opening a catalog: the declared source, with the locked
// digest if all pins from the catalog have this source and the same digest. locked may be nil.
func lockedRef(locked *lockfile.File, cat cache.CatalogSpec) source.Ref {
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

// Resolver returns functions that open the files and images of catalogs.
func (p *Registries) Resolver() source.Resolver {
	return source.Resolver{Lookup: p.lookup, Image: p.openImage, Download: p.download, VerifyArchive: p.verifyArchive, Tags: p.tags, GitTags: p.gitTags, GitFiles: p.gitFiles}
}

// indexes returns the cache of catalog indexes.
func (p *Registries) indexes() (*cache.Cache, error) {
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	return &cache.Cache{
		Store: client.Store, Resolver: p.Resolver(), Version: p.Version,
		Progress: p.logCatalog,
	}, nil
}

// logCatalog logs the progress of reading a catalog.
func (p *Registries) logCatalog(cat cache.CatalogSpec, phase cache.Phase) {
	switch phase {
	case cache.Locating:
		p.Log.Progress("reading catalog %s", cat.ID)
		p.Log.Detail("catalog %s is %s", cat.ID, cmp.Or(cat.At, "nowhere"))
	case cache.Indexing:
		p.Log.Progress("indexing catalog %s", cat.ID)
	case cache.Known:
		p.Log.Detail("catalog %s: index found in the cache", cat.ID)
	}
}

// CatalogOptions are the options of OpenCatalogs.
type CatalogOptions struct {
	Locked   *lockfile.File // lock whose digests are used instead of tags; may be nil
	Digests  bool           // whether to compute the digests of directories
	Unsigned bool           // whether a catalog without a required signature counts as unreadable, instead of failing for all
}

// OpenCatalogs opens catalogs. The result contains unreadable catalogs, marked as broken. The resolver
// decides whether they are an error.
func (p *Registries) OpenCatalogs(ctx context.Context, cats []cache.CatalogSpec, opt CatalogOptions) (*cache.CatalogSet, error) {
	indexes, err := p.indexes()
	if err != nil {
		return nil, err
	}
	if _, err := p.policy(); err != nil {
		return nil, err
	}
	cats = slices.Clone(cats)
	for i, cat := range cats {
		cats[i].At = lockedRef(opt.Locked, cat)
	}
	sh := indexes.Open(ctx, cats, opt.Digests)
	p.Log.Done()
	var faults diag.List
	for _, cat := range cats {
		var unsigned *trust.Error
		if !opt.Unsigned && errors.As(sh.Broken(cat.ID), &unsigned) {
			faults.Addf(cat.Pos, "catalog %q: %w", cat.ID, unsigned)
		}
	}
	if err := faults.Err(); err != nil {
		sh.Close()
		return nil, err
	}
	return sh, nil
}

// BrokenCatalogs returns a warning for each unreadable catalog. If no catalog is readable, it
// returns an error instead.
func (p *Opened) BrokenCatalogs(x *catalog.Index) ([]diag.Warning, error) {
	faults := catalogFaults(x, func(catalog.ID) bool { return true })
	if len(x.Catalogs()) == 0 {
		return nil, faults.Err()
	}
	var out []diag.Warning
	for _, f := range faults {
		out = append(out, diag.Warning{Pos: f.Pos, Code: "broken-catalog", Msg: (&diag.Error{Msg: f.Msg, Err: f.Err}).Error()})
	}
	return p.Waive(out), nil
}

// catalogFaults returns the faults of those unreadable catalogs whose ID wanted accepts.
func catalogFaults(x *catalog.Index, wanted func(catalog.ID) bool) diag.List {
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
