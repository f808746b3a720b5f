package inventory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/oci"
)

// Copier copies images between registries and OCI layouts.
type Copier struct {
	client *oci.Client
	from   string // OCI layout with all images; empty: the registry of each image
	to     string // target OCI layout; empty: a registry
}

// NewCopier returns a Copier. from and to are OCI layouts. If from is empty, the source is the registry of each
// image. If to is empty, the target is the registry in [ImageCopy].To. NewCopier changes client.
func NewCopier(client *oci.Client, from, to string) *Copier {
	if from != "" {
		client.Vendored, client.Lookup = from, nil
		client.Offline = to != "" // a target registry needs the network
	}
	return &Copier{client: client, from: from, to: to}
}

// Check looks up the copies at their targets, at most parallel at once. target is the client for
// these requests. Check sets the state of existing copies to CopyPresent, and copies nothing.
func (p *Copier) Check(ctx context.Context, copies []ImageCopy, parallel int, target *oci.Client) {
	p.forEach(copies, parallel, func(c *ImageCopy) error {
		if err := p.resolveTag(ctx, c); err != nil {
			return err
		}
		ref := "image:" + c.To
		if p.to != "" {
			ref = "oci:" + p.to + "@" + c.Digest
		}
		found, err := target.Inspect(ctx, ref)
		var registryErr *oci.Error
		switch {
		case err == nil && found.Digest == c.Digest:
			c.State = CopyPresent
		case errors.Is(err, fs.ErrNotExist) || errors.As(err, &registryErr) && registryErr.NotFound():
			return nil
		}
		return err
	}, func(*ImageCopy) {})
}

// Copy copies the images, at most parallel at once, and sets the state of each copy. It calls
// finished after each copy, one call at a time.
func (p *Copier) Copy(ctx context.Context, copies []ImageCopy, parallel int, finished func(*ImageCopy)) {
	p.forEach(copies, parallel, func(c *ImageCopy) error {
		c.State = CopyPresent
		return p.copy(ctx, c)
	}, finished)
}

// forEach calls do for each copy, at most parallel at once, and records the error in the copy. It
// calls finished after each call of do, one call at a time.
func (p *Copier) forEach(copies []ImageCopy, parallel int, do func(*ImageCopy) error, finished func(*ImageCopy)) {
	slots := make(chan struct{}, parallel)
	var wait sync.WaitGroup
	var mu sync.Mutex
	for i := range copies {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			c := &copies[i]
			if c.Err == nil {
				c.Err = do(c)
			}
			if c.Err != nil {
				c.State, c.Error = CopyFailed, c.Err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			finished(c)
		})
	}
	wait.Wait()
}

// copy copies an image, then its signatures.
func (p *Copier) copy(ctx context.Context, c *ImageCopy) error {
	if err := p.resolveTag(ctx, c); err != nil {
		return err
	}
	if err := p.copyManifest(ctx, c, oci.VendoredImage{Name: c.name, Digest: c.Digest}, c.To); err != nil {
		return err
	}
	signatures, err := p.listSignatures(ctx, c.source+"@"+c.Digest)
	for i := 0; i < len(signatures) && err == nil; i++ {
		err = p.copyManifest(ctx, c, signatures[i], c.target+strings.TrimPrefix(signatures[i].Name, c.source))
	}
	c.Signatures = len(signatures)
	return err
}

// resolveTag resolves the digest of an image referenced by tag.
func (p *Copier) resolveTag(ctx context.Context, c *ImageCopy) error {
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

func (p *Copier) listSignatures(ctx context.Context, ref string) ([]oci.VendoredImage, error) {
	if p.from != "" {
		return p.client.VendoredSignatures(ctx, ref)
	}
	return p.client.SignatureImages(ctx, ref)
}

// copyManifest copies one image or signature.
func (p *Copier) copyManifest(ctx context.Context, c *ImageCopy, im oci.VendoredImage, to string) error {
	if p.to != "" {
		report, err := p.client.Vendor(ctx, filetree.OpenUserDir(p.to), []oci.VendoredImage{im}, oci.VendorOptions{Mirror: true})
		if err == nil && report.NewBytes > 0 {
			c.State, c.Bytes = CopyDone, c.Bytes+report.NewBytes
		}
		return err
	}
	from := "oci:" + p.from
	if p.from == "" {
		from = "image:" + c.source
	}
	done, err := p.client.Upload(ctx, from+"@"+im.Digest, to)
	if c.Bytes += done.Bytes; err == nil && !done.UpToDate {
		c.State = CopyDone
	}
	return err
}
