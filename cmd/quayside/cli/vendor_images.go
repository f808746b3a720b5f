package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/trust"
	"github.com/quayside/quayside/subscription"
)

// vendored returns the images that resolving and rendering read: those that
// the lock names, and the catalogs that it does not, with their signatures
// where these are demanded.
func (o *vendorOptions) vendored(ctx context.Context, s *space, client *registry.Client, lock *lockfile.File) ([]registry.VendoredImage, error) {
	var out []registry.VendoredImage
	for _, im := range lockImages(lock) {
		if !slices.Contains(im.Roles, roleCatalog) && !slices.Contains(im.Roles, roleBundle) {
			continue
		}
		src, err := registry.ParseSource("image:" + im.Image)
		if err != nil {
			return nil, err
		}
		images, err := s.withSignatures(ctx, client, src, cmp.Or(src.Digest, im.Digest))
		if err != nil {
			return nil, err
		}
		out = append(out, images...)
	}
	if o.lockedOnly {
		return out, nil
	}
	spare, err := o.spare(ctx, s, client, lock)
	return append(out, spare...), err
}

// withSignatures returns an image, and what it is signed with where it has to
// be.
func (s *space) withSignatures(ctx context.Context, client *registry.Client, src registry.Source, digest string) ([]registry.VendoredImage, error) {
	out := []registry.VendoredImage{{Name: src.String(), Digest: digest}}
	got, err := s.verified(ctx, client, "image:"+src.String(), catalog.Digest(digest))
	if err != nil || got == nil {
		return out, err
	}
	for _, sig := range got.Signatures {
		out = append(out, registry.VendoredImage{Name: sig.Name, Digest: sig.Manifest})
	}
	return out, nil
}

// spare returns the catalogs of the workspace that are images and that no pin
// of the lock came from: a pin may come from one the next time. One that
// cannot be had is warned of, as resolve does.
func (o *vendorOptions) spare(ctx context.Context, s *space, client *registry.Client, lock *lockfile.File) ([]registry.VendoredImage, error) {
	set, err := s.declarations()
	if errors.Is(err, errNoDeclarations) {
		set, err = &subscription.Set{}, nil
	}
	if err != nil {
		return nil, err
	}
	var out []registry.VendoredImage
	for _, c := range s.sources(set) {
		if locked, ok := lock.Catalog(c.id); !strings.HasPrefix(c.ref, "image:") || ok && locked.Source == c.ref {
			continue
		}
		images, err := o.spareCatalog(ctx, s, client, c.ref)
		var unsigned *trust.Error
		if errors.As(err, &unsigned) || ctx.Err() != nil {
			return nil, diag.Errorf(c.pos, "catalog %q: %w", c.id, err)
		}
		if err != nil {
			s.talk.warn([]diag.Warning{{Pos: c.pos, Msg: fmt.Sprintf("catalog %q is left out: %v", c.id, err)}})
			continue
		}
		out = append(out, images...)
	}
	return out, nil
}

// spareCatalog finds out what a catalog's reference stands for, and brings the
// image near, so that what fails fails here.
func (o *vendorOptions) spareCatalog(ctx context.Context, s *space, client *registry.Client, ref string) ([]registry.VendoredImage, error) {
	src, err := registry.ParseSource(ref)
	if err != nil {
		return nil, err
	}
	digest := src.Digest
	if digest == "" && !o.refresh {
		digest = client.VendoredDigest(ref)
	}
	at := ref
	if digest != "" {
		at = atDigest(ref, catalog.Digest(digest))
	}
	im, err := client.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	defer im.Close()
	images, err := s.withSignatures(ctx, client, src, im.Digest())
	if err != nil || o.check {
		return images, err
	}
	return images, im.Fetch(ctx)
}
