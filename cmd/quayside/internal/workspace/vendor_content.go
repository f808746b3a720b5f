package workspace

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/lockfile"
)

// contentImage returns the name of a pin's content in the vendored layout, where contents from
// servers other than registries are stored as images.
func contentImage(digest catalog.Digest) string {
	return "image:content.quayside.invalid/content:" + digest.Hex()
}

// contentsToVendor returns the contents of pins from servers other than registries, packed as images in the
// store.
func contentsToVendor(ctx context.Context, p *Project, lock *lockfile.File) ([]oci.VendoredImage, error) {
	c, err := p.Contents()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var out []oci.VendoredImage
	for _, pin := range lock.Pins {
		if pin.ContentDigest == "" || !source.Ref(pin.Catalog.Source).IsServed() {
			continue
		}
		files, err := c.openPublished(ctx, pin)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pin.Key(), err)
		}
		packed, err := oci.Pack(files, oci.PackOptions{Prefix: "configs", Labels: map[string]string{image.LabelConfigs: "/configs"}})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pin.Key(), err)
		}
		if err := packed.Keep(ctx, c.client.Store); err != nil {
			return nil, err
		}
		out = append(out, oci.VendoredImage{Name: contentImage(pin.ContentDigest), Digest: packed.Digest()})
	}
	return out, nil
}

// readVendored returns the manifests of a pin from the vendored layout.
func (c *Contents) readVendored(ctx context.Context, p lockfile.Pin) ([]bundle.Manifest, error) {
	name := contentImage(p.ContentDigest)
	digest := c.client.VendoredDigest(name)
	if digest == "" {
		return nil, fs.ErrNotExist
	}
	im, err := image.Open(ctx, c.client, "image:"+oci.ByDigest(name, digest), image.OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer im.Close()
	files, err := im.FS(ctx)
	if err != nil {
		return nil, err
	}
	return readManifests(p, files)
}
