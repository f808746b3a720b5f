package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/quayside/quayside/registry"
)

// porter carries images from where they are to where they go.
type porter struct {
	client *registry.Client
	from   string // a layout that all are taken from; empty for their registries
	to     string // a layout; empty for a registry
}

// loadFrom makes the porter take all images from the layout in dir.
func (p *porter) loadFrom(dir string, toLayout bool) {
	p.from = dir
	p.client.Vendored, p.client.Dir = dir, ""
	p.client.Offline = toLayout // a registry is still to be sent to
}

// copyAll copies as many images at a time as asked for.
func (o *mirrorOptions) copyAll(ctx context.Context, p *porter, copies []mirrorCopy) {
	said := newPulls(o.talk)
	p.client.Progress = said.show
	slots := make(chan struct{}, o.parallel)
	var wait sync.WaitGroup
	for i := range copies {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			c := &copies[i]
			c.State = "present"
			if c.err = p.carry(ctx, c); c.err != nil {
				c.State, c.Error = "failed", c.err.Error()
			}
			said.note("%s %s (%.1f MB)", c.State, c.To, float64(c.Bytes)/1e6)
		})
	}
	wait.Wait()
	o.talk.done()
}

// carry copies an image, then its signatures.
func (p *porter) carry(ctx context.Context, c *mirrorCopy) error {
	if err := p.find(ctx, c); err != nil {
		return err
	}
	if err := p.image(ctx, c, registry.VendoredImage{Name: c.name, Digest: c.Digest}, c.To); err != nil {
		return err
	}
	signatures, err := p.signatures(ctx, c.source+"@"+c.Digest)
	for i := 0; i < len(signatures) && err == nil; i++ {
		err = p.image(ctx, c, signatures[i], c.target+strings.TrimPrefix(signatures[i].Name, c.source))
	}
	c.Signatures = len(signatures)
	return err
}

// find finds out what an image is that is named by tag.
func (p *porter) find(ctx context.Context, c *mirrorCopy) error {
	switch {
	case c.Digest != "":
		return nil
	case p.from != "":
		if c.Digest = p.client.VendoredDigest(c.name); c.Digest == "" {
			return fmt.Errorf("image %q: not in the layout %s", c.name, p.from)
		}
		return nil
	default:
		found, err := p.client.Inspect(ctx, "image:"+c.From)
		c.Digest = found.Digest
		return err
	}
}

func (p *porter) signatures(ctx context.Context, ref string) ([]registry.VendoredImage, error) {
	if p.from != "" {
		return p.client.VendoredSignatures(ctx, ref)
	}
	return p.client.SignatureImages(ctx, ref)
}

// image copies one image, or what signs it.
func (p *porter) image(ctx context.Context, c *mirrorCopy, im registry.VendoredImage, to string) error {
	if p.to != "" {
		report, err := p.client.Vendor(ctx, p.to, []registry.VendoredImage{im}, registry.VendorOptions{Mirror: true})
		if err == nil && report.New > 0 {
			c.State, c.Bytes = "copied", c.Bytes+report.New
		}
		return err
	}
	from := "oci:" + p.from
	if p.from == "" {
		from = "image:" + c.source
	}
	done, err := p.client.Upload(ctx, from+"@"+im.Digest, to)
	if c.Bytes += done.Bytes; err == nil && !done.Present {
		c.State = "copied"
	}
	return err
}
