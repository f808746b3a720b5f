// Package fetch finds the content of the bundles that a lock pins: embedded in
// their catalog, in the store, in the vendored layout or in their registry, and
// hands out none that is not what the pin says.
//
// The registry client looks into the store and the vendored layout before it
// asks a registry; this package knows what a bundle is and what ties it to its
// pin. It verifies no signatures: whoever opens images for it does.
//
// Start from [New], [Contents.Open] and [Contents.Tie].
package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
)

// maxManifest bounds one manifest read from the store.
const maxManifest = 64 << 20

// fileRecords is the kind of the records that hold what the manifests of a
// content were called: a digest, a blank and a path on each line. What is said of
// a manifest then names the file that its author knows.
const fileRecords = "bundle-files"

// Contents is the content of the bundles that pins name.
type Contents struct {
	client   *registry.Client
	cache    *cache.Cache
	catalogs map[source.Ref]func() (*cache.Contents, error) // opened so far
	closers  []func()
}

// New returns the content of bundles. Catalogs and images are opened where cache has its
// place.
func New(client *registry.Client, c *cache.Cache) *Contents {
	return &Contents{client: client, cache: c, catalogs: map[source.Ref]func() (*cache.Contents, error){}}
}

// Close releases what was opened.
func (c *Contents) Close() {
	for _, f := range c.closers {
		f()
	}
}

// Open returns the content of the bundle that p pins. It can be read until c is
// closed.
func (c *Contents) Open(ctx context.Context, p lockfile.Pin) (fs.FS, error) {
	if p.Image != "" && p.ContentDigest == "" {
		im, err := c.cache.Place.Image(ctx, "image:"+p.Image)
		if err != nil {
			return nil, err
		}
		c.closers = append(c.closers, func() { _ = im.Close() })
		return im.FS(ctx)
	}
	if fsys, err := c.fromStore(p); err == nil {
		return fsys, nil
	}
	ms, err := c.embedded(ctx, p)
	if err != nil {
		return nil, err
	}
	if got := catalog.DigestOf(bundle.DigestList(ms)); got != p.ContentDigest {
		return nil, fmt.Errorf("catalog %q has content %s, the lock has %s: restore the catalog, or take the block of %s out of quayside.lock and run 'quayside resolve'",
			p.Catalog.ID, got, p.ContentDigest, p.Key())
	}
	c.keep(ctx, ms)
	// The digest says nothing of the metadata, so nothing of it is passed on.
	return bundle.FSFromManifests(ms, p.Package)
}

// Tie returns p tied to its content: by the digest of the bundle's image, or of
// the manifests where the catalog embeds them. What the lock before, which may
// be nil, already says of the same bundle is kept.
func (c *Contents) Tie(ctx context.Context, p lockfile.Pin, before *lockfile.File) (lockfile.Pin, error) {
	if imageref.DigestIn(p.Image) != "" || p.ContentDigest != "" {
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
		p.Image = registry.ByDigest("image:"+p.Image, im.Digest())
		return p, nil
	}
	ms, err := c.embedded(ctx, p)
	if err != nil {
		return p, err
	}
	p.ContentDigest = catalog.DigestOf(bundle.DigestList(ms))
	c.keep(ctx, ms)
	return p, nil
}

// tied returns the pin of the same bundle from the same catalog in the lock
// before.
func tied(before *lockfile.File, p lockfile.Pin) (lockfile.Pin, bool) {
	if before == nil {
		return lockfile.Pin{}, false
	}
	old, ok := before.Pin(p.Namespace, p.Package)
	if !ok || old.Bundle != p.Bundle || old.Catalog.ID != p.Catalog.ID {
		return lockfile.Pin{}, false
	}
	if p.Image == "" {
		return old, old.ContentDigest != ""
	}
	src, err := registry.ParseSource("image:" + p.Image)
	return old, err == nil && strings.HasPrefix(old.Image, src.Name+"@")
}

// embedded takes a bundle's manifests out of the catalog that it was pinned from.
func (c *Contents) embedded(ctx context.Context, p lockfile.Pin) ([]bundle.Manifest, error) {
	cat, err := c.catalog(ctx, p.Catalog)
	if err != nil {
		return nil, err
	}
	fsys, err := cat.Bundle(ctx, p.Package, p.Bundle)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("catalog %q does not hold its content", p.Catalog.ID)
	}
	if err != nil {
		return nil, err
	}
	return bundle.Manifests(fsys)
}

// catalog opens a locked catalog, once.
func (c *Contents) catalog(ctx context.Context, locked lockfile.Catalog) (*cache.Contents, error) {
	if locked.Source == "" {
		return nil, fmt.Errorf("catalog %q has no source in the lock: run 'quayside resolve'", locked.ID)
	}
	ref := source.Ref(locked.Source)
	if locked.Digest != "" {
		ref = ref.AtDigest(locked.Digest)
	}
	if opened, ok := c.catalogs[ref]; ok {
		return opened()
	}
	cat, err := c.cache.Contents(ctx, ref)
	if err != nil {
		err = fmt.Errorf("catalog %q: %w", locked.ID, err)
	} else {
		c.closers = append(c.closers, cat.Close)
	}
	c.catalogs[ref] = func() (*cache.Contents, error) { return cat, err }
	return cat, err
}

// keep puts the manifests of a bundle into the store, and under the digest of
// the content the list of their digests and their names. What cannot be kept is
// taken out of the catalog again the next time.
func (c *Contents) keep(ctx context.Context, ms []bundle.Manifest) {
	list := bundle.DigestList(ms)
	blobs := [][]byte{list}
	var names strings.Builder
	for _, m := range ms {
		blobs = append(blobs, m.Data)
		names.WriteString(catalog.DigestOf(m.Data).Hex() + " " + m.Path + "\n")
	}
	for _, data := range blobs {
		_ = c.client.Store.Put(ctx, string(catalog.DigestOf(data)), bytes.NewReader(data), maxManifest)
	}
	_ = c.client.Store.PutRecord(fileRecords, string(catalog.DigestOf(list)), []byte(names.String()))
}

// fromStore puts a bundle together again from what keep stored.
func (c *Contents) fromStore(p lockfile.Pin) (fs.FS, error) {
	list, err := c.client.Store.Read(string(p.ContentDigest), maxManifest)
	if err != nil {
		return nil, err
	}
	names, _ := c.client.Store.Record(fileRecords, string(p.ContentDigest))
	ms := called(string(names), list)
	var objects [][]byte
	for i, sum := range strings.Split(string(list), "\n") {
		data, err := c.client.Store.Read("sha256:"+sum, maxManifest)
		if err != nil {
			return nil, err
		}
		objects = append(objects, data)
		if ms != nil {
			ms[i].Data = data
		}
	}
	if ms != nil {
		return bundle.FSFromManifests(ms, p.Package)
	}
	return bundle.FSFromObjects(objects, p.Package)
}

// called returns the manifests of a list by the names of a record, without their
// content; nil where the record does not name exactly those of the list.
func called(record string, list []byte) []bundle.Manifest {
	var sums []string
	var ms []bundle.Manifest
	lines := strings.Split(strings.TrimSuffix(record, "\n"), "\n")
	slices.Sort(lines)
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, " ")
		sums = append(sums, sum)
		ms = append(ms, bundle.Manifest{Path: name})
	}
	if strings.Join(sums, "\n") != string(list) {
		return nil
	}
	return ms
}
