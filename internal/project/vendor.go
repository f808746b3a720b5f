package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/mirror"
	"github.com/quayside/quayside/registry/trust"
)

// VendorOptions says which images are kept beside the lock.
type VendorOptions struct {
	LockedOnly bool // leave out the catalogs that no pin of the lock comes from
	Refresh    bool // look up the tags of these catalogs again
	Check      bool // fetch nothing
}

// Vendoring is what keeping images beside the lock came to.
type Vendoring struct {
	Directory string          `json:"directory"`
	Written   bool            `json:"written"`
	Images    []VendoredImage `json:"images"`
	registry.VendorReport

	None bool `json:"-"` // there is nothing to keep, and nothing was kept before
}

// VendoredImage is an image beside the lock.
type VendoredImage struct {
	Image  string `json:"image"`
	Digest string `json:"digest"`
}

// Vendor keeps the images that resolving and rendering read beside the lock, or
// compares what is kept with them.
func (p *Project) Vendor(ctx context.Context, lock *lockfile.File, opt VendorOptions) (*Vendoring, error) {
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	images, warnings, err := p.Vendored(ctx, lock, opt)
	p.Talk.Done()
	p.Talk.Warn(warnings)
	if err != nil {
		return nil, err
	}
	v := &Vendoring{Directory: VendorDir, Images: []VendoredImage{}, VendorReport: registry.VendorReport{Added: []string{}, Removed: []string{}}}
	for _, im := range images {
		v.Images = append(v.Images, VendoredImage{im.Name, im.Digest})
	}
	if len(images) == 0 && !source.IsLayout(os.DirFS(p.Path(VendorDir))) {
		v.None = true
		return v, nil
	}
	made, err := client.Vendor(ctx, p.Path(VendorDir), images, registry.VendorOptions{Check: opt.Check})
	p.Talk.Done()
	if err != nil {
		return nil, err
	}
	v.VendorReport, v.Written = *made, !opt.Check && made.Changed()
	return v, nil
}

// Vendored returns the images that resolving and rendering read: those that
// the lock names, and the catalogs that it does not, with their signatures
// where these are demanded. A catalog of the latter kind that cannot be had is
// warned of, as resolve does.
func (p *Project) Vendored(ctx context.Context, lock *lockfile.File, opt VendorOptions) ([]registry.VendoredImage, []diag.Warning, error) {
	var out []registry.VendoredImage
	for _, im := range mirror.Images(lock, nil) {
		if !slices.Contains(im.Roles, mirror.Catalog) && !slices.Contains(im.Roles, mirror.Bundle) {
			continue
		}
		src, err := registry.ParseSource("image:" + im.Image)
		if err != nil {
			return nil, nil, err
		}
		images, err := p.withSignatures(ctx, src, cmp.Or(src.Digest, im.Digest))
		if err != nil {
			return nil, nil, err
		}
		out = append(out, images...)
	}
	if opt.LockedOnly {
		return out, nil, nil
	}
	set, err := p.DeclarationsIfAny()
	if err != nil {
		return nil, nil, err
	}
	var warnings []diag.Warning
	for _, c := range p.Catalogs(set) {
		at := lockedAt(lock, c)
		isLocked := func(l lockfile.Catalog) bool { return source.Ref(l.Source).AtDigest(l.Digest) == at }
		if _, remote := c.Source.Remote(); !remote || slices.ContainsFunc(lock.Catalogs(), isLocked) {
			continue
		}
		images, err := p.spare(ctx, c.Source, opt)
		var unsigned *trust.Error
		if errors.As(err, &unsigned) || ctx.Err() != nil {
			return nil, warnings, diag.Errorf(c.Pos, "catalog %q: %w", c.ID, err)
		}
		if err != nil {
			warnings = append(warnings, diag.Warning{Pos: c.Pos, Code: "catalog-left-out", Subject: c.ID.String(), Msg: fmt.Sprintf("catalog %q is left out: %v", c.ID, err)})
			continue
		}
		out = append(out, images...)
	}
	return out, p.Waive(warnings), nil
}

// withSignatures returns an image, and what it is signed with where it has to
// be.
func (p *Project) withSignatures(ctx context.Context, src registry.Source, digest string) ([]registry.VendoredImage, error) {
	out := []registry.VendoredImage{{Name: src.String(), Digest: digest}}
	got, err := p.Verified(ctx, "image:"+src.String(), catalog.Digest(digest))
	if err != nil || got == nil {
		return out, err
	}
	for _, sig := range got.Signatures {
		out = append(out, registry.VendoredImage{Name: sig.Name, Digest: sig.Manifest})
	}
	return out, nil
}

// spare finds out what the reference of a catalog stands for that no pin of
// the lock came from: a pin may come from it the next time. The image is brought
// near, so that what fails fails here.
func (p *Project) spare(ctx context.Context, ref source.Ref, opt VendorOptions) ([]registry.VendoredImage, error) {
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	src, err := registry.ParseSource(string(ref))
	if err != nil {
		return nil, err
	}
	digest := src.Digest
	if digest == "" && !opt.Refresh {
		digest = client.VendoredDigest(string(ref))
	}
	at := ref
	if digest != "" {
		at = ref.AtDigest(catalog.Digest(digest))
	}
	im, err := client.Open(ctx, string(at))
	if err != nil {
		return nil, err
	}
	defer im.Close()
	images, err := p.withSignatures(ctx, src, im.Digest())
	if err != nil || opt.Check {
		return images, err
	}
	return images, im.Fetch(ctx)
}
