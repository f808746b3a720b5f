package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/quayside/quayside/registry"
)

// Porter carries images from where they are to where they go.
type Porter struct {
	client *registry.Client
	from   string // a layout that all are taken from; empty for their registries
	to     string // a layout; empty for a registry
}

// NewPorter returns a porter that takes all images from the layout from, or
// from their registries where that is empty, to the layout to, or to a registry
// where that is empty. It changes client to suit.
func NewPorter(client *registry.Client, from, to string) *Porter {
	if from != "" {
		client.Vendored, client.Dir = from, ""
		client.Offline = to != "" // a registry is still to be sent to
	}
	return &Porter{client: client, from: from, to: to}
}

// Check notes in each copy whether it is at its target already, as there sees the
// target; nothing is copied. The others stay as planned.
func (p *Porter) Check(ctx context.Context, copies []Copy, parallel int, there *registry.Client) {
	p.each(copies, parallel, func(c *Copy) error {
		if err := p.find(ctx, c); err != nil {
			return err
		}
		target := "image:" + c.To
		if p.to != "" {
			target = "oci:" + p.to + "@" + c.Digest
		}
		found, err := there.Inspect(ctx, target)
		var answer *registry.Error
		switch {
		case err == nil && found.Digest == c.Digest:
			c.State = Present
		case errors.Is(err, fs.ErrNotExist) || errors.As(err, &answer) && answer.NotFound():
			return nil
		}
		return err
	}, func(*Copy) {})
}

// Carry carries the copies, as many at once as parallel says, and notes in each
// what became of it. said is called after each, one call at a time.
func (p *Porter) Carry(ctx context.Context, copies []Copy, parallel int, said func(*Copy)) {
	p.each(copies, parallel, func(c *Copy) error {
		c.State = Present
		return p.carry(ctx, c)
	}, said)
}

// each does something with each copy, as many at once as parallel says.
func (p *Porter) each(copies []Copy, parallel int, do func(*Copy) error, said func(*Copy)) {
	slots := make(chan struct{}, parallel)
	var wait sync.WaitGroup
	var mu sync.Mutex
	for i := range copies {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			c := &copies[i]
			if c.Err = do(c); c.Err != nil {
				c.State, c.Error = Failed, c.Err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			said(c)
		})
	}
	wait.Wait()
}

// carry copies an image, then its signatures.
func (p *Porter) carry(ctx context.Context, c *Copy) error {
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
func (p *Porter) find(ctx context.Context, c *Copy) error {
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

func (p *Porter) signatures(ctx context.Context, ref string) ([]registry.VendoredImage, error) {
	if p.from != "" {
		return p.client.VendoredSignatures(ctx, ref)
	}
	return p.client.SignatureImages(ctx, ref)
}

// image copies one image, or what signs it.
func (p *Porter) image(ctx context.Context, c *Copy, im registry.VendoredImage, to string) error {
	if p.to != "" {
		report, err := p.client.Vendor(ctx, p.to, []registry.VendoredImage{im}, registry.VendorOptions{Mirror: true})
		if err == nil && report.New > 0 {
			c.State, c.Bytes = Copied, c.Bytes+report.New
		}
		return err
	}
	from := "oci:" + p.from
	if p.from == "" {
		from = "image:" + c.source
	}
	done, err := p.client.Upload(ctx, from+"@"+im.Digest, to)
	if c.Bytes += done.Bytes; err == nil && !done.Present {
		c.State = Copied
	}
	return err
}
