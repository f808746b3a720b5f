package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
)

// complete returns lock with every pin tied to its content: by the digest of
// the bundle's image, or of the manifests where the catalog embeds them. What
// the lock before already says of the same bundle is kept.
func (s *space) complete(ctx context.Context, lock, before *lockfile.File, offline bool) (*lockfile.File, error) {
	c, err := s.contents(lock, offline)
	if err != nil {
		return nil, err
	}
	defer c.close()
	pins := make([]lockfile.Pin, len(lock.Pins))
	for i, p := range lock.Pins {
		s.talk.progress("pinning bundle %s", p.Bundle)
		if pins[i], err = c.pin(ctx, p, before); err != nil {
			return nil, fmt.Errorf("bundle %q of %s: %w", p.Bundle, p.Key(), err)
		}
	}
	out := lockfile.New(lock.Catalogs, pins)
	out.Accepted = stillPinned(before, out)
	return s.sign(ctx, c.client, out, before)
}

// stillPinned returns what is accepted of the operators that stay.
func stillPinned(before, after *lockfile.File) []lockfile.Accepted {
	if before == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(before.Accepted), func(a lockfile.Accepted) bool {
		namespace, pkg, pinned := strings.Cut(a.Operator, "/")
		_, stays := after.Pin(namespace, pkg)
		return pinned && !stays
	})
}

func (c *contents) pin(ctx context.Context, p lockfile.Pin, before *lockfile.File) (lockfile.Pin, error) {
	if strings.Contains(p.Image, "@sha256:") || p.ContentDigest != "" {
		return p, nil
	}
	if old, ok := tied(before, p); ok {
		p.Image, p.ContentDigest = old.Image, old.ContentDigest
		return p, nil
	}
	if p.Image != "" {
		im, err := c.client.Open(ctx, "image:"+p.Image)
		if err != nil {
			return p, err
		}
		defer im.Close()
		src, err := registry.ParseSource("image:" + p.Image)
		p.Image = src.Name + "@" + im.Digest()
		return p, err
	}
	fsys, err := c.fromCatalog(ctx, p)
	if err != nil {
		return p, err
	}
	ms, err := bundle.Manifests(fsys)
	if err != nil {
		return p, err
	}
	p.ContentDigest = catalog.DigestOf(bundle.DigestList(ms))
	return p, c.keep(ctx, ms)
}

// tied returns the pin of the same bundle from the same catalog in the lock
// before.
func tied(before *lockfile.File, p lockfile.Pin) (lockfile.Pin, bool) {
	if before == nil {
		return lockfile.Pin{}, false
	}
	old, ok := before.Pin(p.Namespace, p.Package)
	if !ok || old.Bundle != p.Bundle || old.Catalog != p.Catalog {
		return lockfile.Pin{}, false
	}
	if p.Image == "" {
		return old, old.ContentDigest != ""
	}
	src, err := registry.ParseSource("image:" + p.Image)
	return old, err == nil && strings.HasPrefix(old.Image, src.Name+"@")
}
