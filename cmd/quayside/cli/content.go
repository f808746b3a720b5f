package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
)

// maxManifest bounds one manifest read from the store.
const maxManifest = 64 << 20

// contents finds the content of bundles: embedded in the catalog, in the
// store, in the registry by digest, in this order. Every bundle is checked
// against the digest in its pin before it is handed out.
type contents struct {
	*space
	client *registry.Client
	locked map[catalog.ID]lockfile.Catalog
	trees  map[catalog.ID]*tree // opened so far; nil where it could not be
	faults map[catalog.ID]error
	images []*image.Image
}

func (s *space) contents(lock *lockfile.File, offline bool) (*contents, error) {
	client, err := s.client(offline)
	if err != nil {
		return nil, err
	}
	c := &contents{
		space:  s,
		client: client,
		locked: map[catalog.ID]lockfile.Catalog{},
		trees:  map[catalog.ID]*tree{},
		faults: map[catalog.ID]error{},
	}
	for _, cat := range lock.Catalogs {
		c.locked[cat.ID] = cat
	}
	return c, nil
}

// close releases what was opened.
func (c *contents) close() {
	for _, t := range c.trees {
		if t != nil {
			t.close()
		}
	}
	for _, im := range c.images {
		_ = im.Close()
	}
}

// open returns the content of the bundle that p pins.
func (c *contents) open(ctx context.Context, p lockfile.Pin) (fs.FS, error) {
	c.talk.progress("reading bundle %s", p.Bundle)
	if p.Image != "" && p.ContentDigest == "" {
		return c.fromImage(ctx, p)
	}
	if fsys, err := c.fromStore(p); err == nil {
		return fsys, nil
	}
	fsys, err := c.fromCatalog(ctx, p)
	if err != nil {
		return nil, err
	}
	ms, err := bundle.Manifests(fsys)
	if err != nil {
		return nil, err
	}
	if got := catalog.DigestOf(bundle.DigestList(ms)); got != p.ContentDigest {
		return nil, fmt.Errorf("catalog %q has content %s, the lock has %s: restore the catalog, or take the block of %s out of %s and run 'quayside resolve'",
			p.Catalog, got, p.ContentDigest, p.Key(), lockFile)
	}
	if err := c.keep(ctx, ms); err != nil {
		return nil, err
	}
	// The digest says nothing of the metadata, so nothing of it is passed on.
	return bundle.FSFromManifests(ms, p.Package)
}

// fromImage opens a bundle's image: the client looks into the store before it
// asks the registry, and verifies what it is given.
func (c *contents) fromImage(ctx context.Context, p lockfile.Pin) (fs.FS, error) {
	im, err := c.openImage(ctx, c.client, "image:"+p.Image)
	if err != nil {
		return nil, err
	}
	c.images = append(c.images, im)
	return im.FS(ctx)
}

// fromCatalog takes a bundle's content out of the catalog that the lock names.
func (c *contents) fromCatalog(ctx context.Context, p lockfile.Pin) (fs.FS, error) {
	t, err := c.catalog(ctx, p.Catalog)
	if err != nil {
		return nil, err
	}
	fsys, err := t.bundle(ctx, p.Package, p.Bundle)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("catalog %q does not hold its content", p.Catalog)
	}
	return fsys, err
}

// catalog opens a locked catalog, once.
func (c *contents) catalog(ctx context.Context, id catalog.ID) (*tree, error) {
	if t, ok := c.trees[id]; ok {
		return t, c.faults[id]
	}
	cat, ok := c.locked[id]
	if !ok {
		return nil, fmt.Errorf("catalog %q is not in the lock", id)
	}
	ref := cat.Source
	if strings.HasPrefix(ref, "image:") && cat.Digest != "" {
		ref = atDigest(ref, cat.Digest)
	}
	t, err := c.indexed(ctx, ref)
	if err != nil {
		err = fmt.Errorf("catalog %q: %w", id, err)
	}
	c.trees[id], c.faults[id] = t, err
	return t, err
}

// indexed opens a catalog, and its index where the store has one.
func (c *contents) indexed(ctx context.Context, ref string) (*tree, error) {
	sub, err := c.subject(ctx, c.client, ref)
	if err != nil {
		return nil, err
	}
	t, err := sub.tree()
	if err != nil {
		sub.close()
		return nil, err
	}
	b := &book{close: sub.close}
	if sub.name != "" {
		b.openIndex(c.client, sub)
	}
	t.index, t.close = b.index, b.close
	return t, nil
}

// keep puts the manifests of a bundle into the store, and under the digest of
// the content the list of their digests.
func (c *contents) keep(ctx context.Context, ms []bundle.Manifest) error {
	blobs := [][]byte{bundle.DigestList(ms)}
	for _, m := range ms {
		blobs = append(blobs, m.Data)
	}
	for _, data := range blobs {
		if err := c.client.Store.Put(ctx, string(catalog.DigestOf(data)), bytes.NewReader(data), maxManifest); err != nil {
			return err
		}
	}
	return nil
}

// fromStore puts a bundle together again from what keep stored.
func (c *contents) fromStore(p lockfile.Pin) (fs.FS, error) {
	list, err := c.client.Store.Read(string(p.ContentDigest), maxManifest)
	if err != nil {
		return nil, err
	}
	var objects [][]byte
	for sum := range strings.SplitSeq(string(list), "\n") {
		data, err := c.client.Store.Read("sha256:"+sum, maxManifest)
		if err != nil {
			return nil, err
		}
		objects = append(objects, data)
	}
	return bundle.FSFromObjects(objects, p.Package)
}
