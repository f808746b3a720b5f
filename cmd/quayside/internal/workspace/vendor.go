package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/oci/trust"
	"github.com/quayside/quayside/lockfile"
)

// VendorOptions selects the images to store in the repository.
type VendorOptions struct {
	LockedOnly bool // omit catalogs that are not in the lock
	Refresh    bool // resolve the tags of catalogs that are not in the lock again
	Check      bool // only compare, and fetch nothing
}

// Vendoring is the result of Vendor.
type Vendoring struct {
	Directory string          `json:"directory"`
	Written   bool            `json:"written"`
	Images    []VendoredImage `json:"images"`
	oci.VendorReport

	None     bool           `json:"-"` // whether there are neither images to store nor stored images
	Warnings []diag.Warning `json:"-"` // valid together with an error
}

// VendoredImage is a vendored image.
type VendoredImage struct {
	Image  string `json:"image"`
	Digest string `json:"digest"`
}

// Vendor stores the images that resolving and rendering need in VendorDir. With opt.Check, it only
// compares them with VendorDir.
func (p *Project) Vendor(ctx context.Context, lock *lockfile.File, opt VendorOptions) (*Vendoring, error) {
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	images, warnings, err := p.ImagesToVendor(ctx, lock, opt)
	p.Log.Done()
	if err != nil {
		return &Vendoring{Warnings: warnings}, err
	}
	v := &Vendoring{Warnings: warnings, Directory: VendorDir, Images: []VendoredImage{}, VendorReport: oci.VendorReport{Added: []string{}, Removed: []string{}}}
	for _, im := range images {
		v.Images = append(v.Images, VendoredImage{im.Name, im.Digest})
	}
	dir, err := p.disk.Sub(VendorDir)
	if err != nil {
		return v, err
	}
	if len(images) == 0 && !source.IsLayout(dir.FS()) {
		v.None = true
		return v, nil
	}
	report, err := client.Vendor(ctx, dir, images, oci.VendorOptions{Check: opt.Check})
	p.Log.Done()
	if err != nil {
		return v, err
	}
	v.VendorReport, v.Written = *report, !opt.Check && report.Changed()
	return v, nil
}

// ImagesToVendor returns the images that resolving and rendering need, and their required signatures. The
// images are the catalogs and bundles in the lock and, unless opt.LockedOnly is set, the other declared
// catalogs. If a declared catalog that is not in the lock is unavailable, this is only a warning.
func (p *Project) ImagesToVendor(ctx context.Context, lock *lockfile.File, opt VendorOptions) ([]oci.VendoredImage, []diag.Warning, error) {
	var out []oci.VendoredImage
	for _, im := range inventory.ListImages(lock, nil) {
		if !slices.Contains(im.Roles, inventory.RoleCatalog) && !slices.Contains(im.Roles, inventory.RoleBundle) {
			continue
		}
		src, err := oci.ParseReference("image:" + im.Image)
		if err != nil {
			return nil, nil, err
		}
		images, err := p.withSignatures(ctx, src, cmp.Or(src.Digest, im.Digest))
		if err != nil {
			return nil, nil, err
		}
		out = append(out, images...)
	}
	contents, err := contentsToVendor(ctx, p, lock)
	if err != nil {
		return nil, nil, err
	}
	if out = append(out, contents...); opt.LockedOnly {
		return out, nil, nil
	}
	set, err := p.DeclarationsIfAny()
	if err != nil {
		return nil, nil, err
	}
	var warnings []diag.Warning
	for _, c := range p.Catalogs(set) {
		at := lockedRef(lock, c)
		isLocked := func(l lockfile.Catalog) bool { return source.Ref(l.Source).AtDigest(l.Digest) == at }
		if !c.Source.IsRemote() || slices.ContainsFunc(lock.Catalogs(), isLocked) {
			continue
		}
		images, err := p.unpinnedCatalog(ctx, c.Source, opt)
		var unsigned *trust.Error
		if errors.As(err, &unsigned) || ctx.Err() != nil {
			return nil, warnings, diag.Errorf(c.Pos, "catalog %q: %w", c.ID, err)
		}
		if err != nil {
			warnings = append(warnings, diag.Warning{Pos: c.Pos, Code: "catalog-left-out", Subject: c.ID.String(), Msg: fmt.Sprintf("catalog %q is omitted: %v", c.ID, err)})
			continue
		}
		out = append(out, images...)
	}
	return out, p.Waive(warnings), nil
}

// withSignatures returns the image src and, if quayside.yaml requires signatures, the signatures of the image.
func (p *Registries) withSignatures(ctx context.Context, src oci.Reference, digest string) ([]oci.VendoredImage, error) {
	out := []oci.VendoredImage{{Name: src.String(), Digest: digest}}
	got, err := p.Verify(ctx, "image:"+src.String(), catalog.Digest(digest))
	if err != nil || got == nil {
		return out, err
	}
	for _, sig := range got.Signatures {
		out = append(out, oci.VendoredImage{Name: sig.Name, Digest: sig.Manifest})
	}
	return out, nil
}

// unpinnedCatalog returns the image of a catalog that is not in the lock but that a later resolution may need.
// It also returns the required signatures of the image. It opens the image and, unless opt.Check is set,
// fetches it, so that errors occur early.
func (p *Registries) unpinnedCatalog(ctx context.Context, ref source.Ref, opt VendorOptions) ([]oci.VendoredImage, error) {
	client, err := p.Client()
	if err != nil {
		return nil, err
	}
	src, err := oci.ParseReference(string(ref))
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
