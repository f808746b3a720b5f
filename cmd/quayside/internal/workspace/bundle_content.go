package workspace

import (
	"cmp"
	"context"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/resolve"
)

// BundleContent reads the content of a catalog's bundle.
func (p *Registries) BundleContent(ctx context.Context, b *catalog.Bundle) (*inventory.BundleContent, error) {
	c, err := p.Contents()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	cat, m := b.Package().Catalog(), b.Metadata()
	pin := lockfile.Pin{
		Namespace: cmp.Or(SuggestedNamespace(m.Annotations), b.Package().Name()), Package: b.Package().Name(), Bundle: b.Name(),
		Catalog: lockfile.NewCatalog(cat.ID(), cat.Source(), cat.Digest()),
	}
	if pin, err = c.AddDigest(ctx, resolve.WithEntry(pin, b), nil); err != nil {
		return nil, err
	}
	out := &inventory.BundleContent{}
	if out.Bundle, err = c.Bundle(ctx, pin); err != nil {
		return nil, err
	}
	out.Pin = withWidestMode(pin, out.Bundle.CSV.Modes)
	opt, err := p.plainOptions()
	if err != nil {
		return nil, err
	}
	out.Objects, _, _ = render.Manifests(out.Bundle, out.Pin, opt) // render reports the errors of a declared operator
	return out, nil
}

// withWidestMode returns the pin p with another install mode: the one of modes in which the
// operator watches the most namespaces.
func withWidestMode(p lockfile.Pin, modes []catalog.InstallMode) lockfile.Pin {
	for _, watch := range [][]string{nil, {p.Namespace}, {"default"}} {
		if catalog.SupportsNamespaces(modes, p.Namespace, watch) {
			p.InstallMode, p.WatchNamespaces = catalog.ModeFor(p.Namespace, watch), watch
			return p
		}
	}
	return p
}
