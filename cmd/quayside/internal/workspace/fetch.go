package workspace

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
	"github.com/quayside/quayside/cmd/quayside/internal/format"
	"github.com/quayside/quayside/internal/helm"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/lockfile"
)

// maxManifestSize is the maximum size in bytes of a manifest in the store.
const maxManifestSize = 64 << 20

// fileRecords is the kind of records in the store that contain the file names of a bundle's
// manifests, which messages need. Each line of a record has a digest, a space and a path.
const fileRecords = "bundle-files"

// Contents opens the content of pinned bundles. Callers must close it after use.
type Contents struct {
	client   *oci.Client
	cache    *cache.Cache
	catalogs map[source.Ref]func() (*cache.Contents, error) // catalogs opened so far
	closers  []func()
	charts   *helm.Pool // nil before the first chart
}

// NewContents returns a Contents that opens catalogs and images with c.
func NewContents(client *oci.Client, c *cache.Cache) *Contents {
	return &Contents{client: client, cache: c, catalogs: map[source.Ref]func() (*cache.Contents, error){}}
}

// Close closes all opened catalogs and images.
func (c *Contents) Close() {
	for _, f := range c.closers {
		f()
	}
	if c.charts != nil {
		c.charts.Close()
	}
}

// Open returns the files of a pinned bundle, which [bundle.Load] reads. They can be read until c is
// closed. The content of a format such as a chart is converted with the settings of the pin.
func (c *Contents) Open(ctx context.Context, p lockfile.Pin) (fs.FS, error) {
	files, err := c.openPublished(ctx, p)
	f, converts := format.Find(p.Format)
	if err != nil || !converts {
		return files, err
	}
	r, err := f.Expand(ctx, files, format.Input{Pin: p, Charts: c.templates})
	return r.In(files), err
}

// Bundle returns the parsed bundle of a pin.
func (c *Contents) Bundle(ctx context.Context, p lockfile.Pin) (*bundle.Bundle, error) {
	fsys, err := c.Open(ctx, p)
	if err != nil {
		return nil, err
	}
	return bundle.Load(fsys)
}

// templates returns the pool of processes that execute chart templates.
func (c *Contents) templates() (*helm.Pool, error) {
	if c.charts == nil {
		program, err := helm.FindProgram()
		if err != nil {
			return nil, err
		}
		c.charts = helm.NewPool(program)
	}
	return c.charts, nil
}

// openPublished returns the content of a pinned bundle as its author published it.
func (c *Contents) openPublished(ctx context.Context, p lockfile.Pin) (fs.FS, error) {
	if p.Image != "" && p.ContentDigest == "" {
		im, err := c.cache.Resolver.Image(ctx, "image:"+p.Image)
		if err != nil {
			return nil, err
		}
		c.closers = append(c.closers, func() { _ = im.Close() })
		if f, ok := format.Find(p.Format); ok {
			return f.Image(ctx, im)
		}
		return im.FS(ctx)
	}
	if fsys, err := c.readStored(p); err == nil {
		return fsys, nil
	}
	ms, err := c.readVendored(ctx, p)
	if err != nil {
		ms, err = c.readEmbedded(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	if got := catalog.DigestOf(bundle.DigestList(ms)); got != p.ContentDigest {
		return nil, fmt.Errorf("catalog %q has content %s, but the lock has %s: run 'quayside resolve', or restore the catalog",
			p.Catalog.ID, got, p.ContentDigest)
	}
	c.storeManifests(ctx, ms)
	// Omit the bundle's metadata, which the digest does not cover.
	return bundle.FSFromManifests(ms, p.Package)
}

// AddDigest returns p with the digest of the bundle's image or, if the catalog embeds the bundle, of its
// manifests. before is the previous lock or nil. If it pins the same bundle, AddDigest reuses its digest.
func (c *Contents) AddDigest(ctx context.Context, p lockfile.Pin, before *lockfile.File) (lockfile.Pin, error) {
	if imageref.DigestIn(p.Image) != "" || p.ContentDigest != "" {
		return p, nil
	}
	if old, ok := previousPin(before, p); ok {
		p.Image, p.ContentDigest, p.Commit = old.Image, old.ContentDigest, old.Commit
		return p, nil
	}
	if p.Image != "" {
		im, err := c.client.Open(ctx, "image:"+p.Image)
		if err != nil {
			return p, err
		}
		defer im.Close()
		p.Image = oci.ByDigest("image:"+p.Image, im.Digest())
		return p, nil
	}
	ms, err := c.readEmbedded(ctx, p)
	if err != nil {
		return p, err
	}
	p.ContentDigest = catalog.DigestOf(bundle.DigestList(ms))
	c.storeManifests(ctx, ms)
	return p, nil
}

// previousPin returns the pin of the same bundle from the same catalog in before, which may be nil.
func previousPin(before *lockfile.File, p lockfile.Pin) (lockfile.Pin, bool) {
	old, ok := before.Operator(p.Key())
	if !ok || old.Bundle != p.Bundle || old.Catalog.ID != p.Catalog.ID {
		return lockfile.Pin{}, false
	}
	if p.Image == "" {
		return old, old.ContentDigest != ""
	}
	src, err := oci.ParseReference("image:" + p.Image)
	return old, err == nil && strings.HasPrefix(old.Image, src.Name+"@")
}

// readEmbedded reads the manifests of a bundle from its pinned catalog.
func (c *Contents) readEmbedded(ctx context.Context, p lockfile.Pin) ([]bundle.Manifest, error) {
	cat, err := c.openCatalog(ctx, p.Catalog)
	if err != nil {
		return nil, err
	}
	fsys, err := cat.Bundle(ctx, p.Package, p.Bundle)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NoContentError{p.Catalog.ID}
	}
	if err != nil {
		return nil, err
	}
	return readManifests(p, fsys)
}

// readManifests returns those manifests in files that are part of the pin's content digest.
func readManifests(p lockfile.Pin, files fs.FS) ([]bundle.Manifest, error) {
	if p.Format != "" {
		return bundle.NamedManifests(files)
	}
	return bundle.Manifests(files)
}

// openCatalog opens a locked catalog. Later calls return the same result.
func (c *Contents) openCatalog(ctx context.Context, locked lockfile.Catalog) (*cache.Contents, error) {
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
	cat, err := c.cache.OpenContents(ctx, ref)
	if err != nil {
		err = fmt.Errorf("catalog %q: %w", locked.ID, err)
	} else {
		c.closers = append(c.closers, cat.Close)
	}
	c.catalogs[ref] = func() (*cache.Contents, error) { return cat, err }
	return cat, err
}

// storeManifests adds the manifests of a bundle and a record of their file names to the store. It stores the
// list of their digests last, so that a store that has the list also has the manifests. The key of the list is
// the content digest of the bundle. storeManifests ignores errors, because the catalog has the content.
func (c *Contents) storeManifests(ctx context.Context, ms []bundle.Manifest) {
	list := bundle.DigestList(ms)
	key := string(catalog.DigestOf(list))
	if c.client.Store.Has(key) {
		return
	}
	var names strings.Builder
	for _, m := range ms {
		digest := catalog.DigestOf(m.Data)
		names.WriteString(digest.Hex() + " " + m.Path + "\n")
		_ = c.client.Store.Put(ctx, string(digest), bytes.NewReader(m.Data), maxManifestSize)
	}
	_ = c.client.Store.PutRecord(fileRecords, key, []byte(names.String()))
	_ = c.client.Store.Put(ctx, key, bytes.NewReader(list), maxManifestSize)
}

// readStored reads a bundle that storeManifests stored.
func (c *Contents) readStored(p lockfile.Pin) (fs.FS, error) {
	list, err := c.client.Store.Read(string(p.ContentDigest), maxManifestSize)
	if err != nil {
		return nil, err
	}
	names, _ := c.client.Store.Record(fileRecords, string(p.ContentDigest))
	ms := bundleManifests(string(names), list)
	var objects [][]byte
	if p.Format != "" {
		ms = namedManifests(list)
	}
	for i, line := range strings.Split(string(list), "\n") {
		sum, _, _ := strings.Cut(line, " ")
		data, err := c.client.Store.Read("sha256:"+sum, maxManifestSize)
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

// namedManifests parses a list of digests with paths. It returns the manifests with their paths, but without content.
func namedManifests(list []byte) []bundle.Manifest {
	var ms []bundle.Manifest
	for line := range strings.SplitSeq(string(list), "\n") {
		_, name, _ := strings.Cut(line, " ")
		ms = append(ms, bundle.Manifest{Path: name, Named: true})
	}
	return ms
}

// bundleManifests parses a record of kind fileRecords. It returns manifests without content, in the
// order of the digests in list, or nil if the record and list have different digests.
func bundleManifests(record string, list []byte) []bundle.Manifest {
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
