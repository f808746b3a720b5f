package workspace

import (
	"context"
	"errors"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// refreshEmbedded updates the pins in pr.Lock whose bundles are embedded in a local catalog and changed there.
// It adds a reason for each updated pin to pr.stale. All fields of such a pin then come from the same state of
// the catalog. Holds and approvals have no effect, because no other source has the locked content. Pins whose
// content the catalog no longer has are added to pr.lost. If content in a directory cannot be read, the error is
// added to pr.unreadable. If content on a server cannot be read, the stored content of the pin is used.
func (pr *Problem) refreshEmbedded(ctx context.Context, x *catalog.Index) error {
	if pr.Lock == nil {
		return nil
	}
	c, err := pr.project.Contents()
	if err != nil {
		return err
	}
	defer c.Close()
	isDeclared := func(id catalog.ID) bool {
		return slices.ContainsFunc(pr.catalogs, func(spec cache.CatalogSpec) bool { return spec.ID == id })
	}
	pins := slices.Clone(pr.Lock.Pins)
	changed := false
	for i, pin := range pins {
		cat, read := x.Catalog(pin.Catalog.ID)
		if pin.Image != "" || !read || source.Ref(cat.Source()).IsRemote() || !isDeclared(pin.Catalog.ID) {
			continue
		}
		fresh, err := embeddedPin(ctx, c, pin, cat)
		var dropped *NoContentError
		switch {
		case errors.As(err, &dropped):
			pr.lost = append(pr.lost, pin)
		case err != nil && !source.Ref(cat.Source()).IsServed():
			pr.unreadable.Addf(pin.Pos, "pin %s: reading %s from catalog %q: %w", pin.Key(), pin.Bundle, pin.Catalog.ID, err)
		case err == nil && fresh.BundleDigest() != pin.BundleDigest():
			pins[i], changed = fresh, true
			field := "contentDigest"
			if fresh.Image != "" {
				field = "image"
			}
			pr.stale = append(pr.stale, resolve.Reason{
				Namespace: pin.Namespace, Package: pin.Package, Text: "is pinned with content that differs from its catalog",
			}.WithFields([]string{field}, pin.Fields, pin.Pos))
		}
	}
	if changed {
		pr.Lock = pr.Lock.With(pins)
	}
	return nil
}

// embeddedPin returns a pin with the fields that come from the current content of a catalog. The error is
// a *NoContentError if the catalog does not have the bundle.
func embeddedPin(ctx context.Context, c *Contents, pin lockfile.Pin, cat *catalog.Catalog) (lockfile.Pin, error) {
	var b *catalog.Bundle
	if pkg, ok := cat.Package(pin.Package); ok {
		b, _ = pkg.Bundle(pin.Bundle)
	}
	if b == nil {
		return pin, &NoContentError{pin.Catalog.ID}
	}
	pin.Catalog, pin.ContentDigest = lockfile.NewCatalog(pin.Catalog.ID, cat.Source(), cat.Digest()), ""
	return c.AddDigest(ctx, resolve.WithEntry(pin, b), nil)
}

// LacksContent reports whether the source of a pin no longer has the locked content. Then the lock can only be
// rendered from caches of earlier runs, and no verdict may depend on caches.
func (pr *Problem) LacksContent() bool { return len(pr.stale)+len(pr.lost) > 0 }
