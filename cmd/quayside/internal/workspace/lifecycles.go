package workspace

import (
	"context"
	"fmt"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// Lifecycles returns a function that looks up the support lifecycle of a pinned version in its locked catalog.
// The function returns nil if the catalog has no lifecycle, or cannot be read. It reads each package once, and
// calls report with each error.
func (p *Registries) Lifecycles(ctx context.Context, report func(string)) func(lockfile.Pin) *catalog.SupportedVersion {
	type key struct {
		catalog lockfile.Catalog
		pkg     string
	}
	indexes := map[key]*catalog.Index{} // nil for an unreadable package
	return func(pin lockfile.Pin) *catalog.SupportedVersion {
		k := key{pin.Catalog, pin.Package}
		k.catalog.Identity = ""
		if k.catalog.Source == "" {
			return nil
		}
		x, known := indexes[k]
		if !known {
			var err error
			if x, err = p.openPackage(ctx, k.catalog, k.pkg); err != nil {
				report(fmt.Sprintf("support of %s %s was not checked: catalog %q: %v", pin.Key(), pin.Version, k.catalog.ID, err))
			}
			indexes[k] = x
		}
		if x == nil {
			return nil
		}
		return resolve.LifecycleOf(x, pin)
	}
}

// openPackage opens one package of a locked catalog.
func (p *Registries) openPackage(ctx context.Context, locked lockfile.Catalog, pkg string) (*catalog.Index, error) {
	indexes, err := p.indexes()
	if err != nil {
		return nil, err
	}
	ref := source.Ref(locked.Source)
	cat := cache.CatalogSpec{ID: locked.ID, Source: ref, At: ref}
	if locked.Digest != "" {
		cat.At = ref.AtDigest(locked.Digest)
	}
	sh := indexes.Open(ctx, []cache.CatalogSpec{cat}, false)
	defer sh.Close()
	p.Log.Done()
	if err := sh.Broken(locked.ID); err != nil {
		return nil, err
	}
	return sh.Pick(ctx, cache.PickNames(pkg))
}
