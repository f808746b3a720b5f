package project

import (
	"context"
	"fmt"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/lifecycle"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// Lifecycles returns a function that looks up the support of a pinned version in its
// catalog, as that was when the version was pinned: nil where it states nothing, or
// cannot be read. A catalog is read when the first of its pins is asked for. Failures
// are passed to note, a sentence each.
func (p *Project) Lifecycles(ctx context.Context, note func(string)) func(lockfile.Pin) *lifecycle.Version {
	type key struct {
		catalog lockfile.Catalog
		pkg     string
	}
	indexes := map[key]*catalog.Index{} // nil: it could not be read
	return func(pin lockfile.Pin) *lifecycle.Version {
		at := key{pin.Catalog, pin.Package}
		at.catalog.Identity = ""
		if at.catalog.Source == "" {
			return nil
		}
		x, known := indexes[at]
		if !known {
			var err error
			if x, err = p.packageOf(ctx, at.catalog, at.pkg); err != nil {
				note(fmt.Sprintf("support of %s %s was not checked: catalog %q: %v", pin.Key(), pin.Version, at.catalog.ID, err))
			}
			indexes[at] = x
		}
		if x == nil {
			return nil
		}
		return resolve.LifecycleOf(x, pin)
	}
}

// packageOf returns one package of a locked catalog.
func (p *Project) packageOf(ctx context.Context, locked lockfile.Catalog, pkg string) (*catalog.Index, error) {
	indexes, err := p.indexes()
	if err != nil {
		return nil, err
	}
	ref := source.Ref(locked.Source)
	cat := cache.Catalog{ID: locked.ID, Source: ref, At: ref}
	if locked.Digest != "" {
		cat.At = ref.AtDigest(locked.Digest)
	}
	sh := indexes.Open(ctx, []cache.Catalog{cat}, false)
	defer sh.Close()
	p.Talk.Done()
	if err := sh.Broken(locked.ID); err != nil {
		return nil, err
	}
	return sh.Pick(ctx, cache.Only(pkg))
}
