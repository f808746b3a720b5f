package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/catalog/disk"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/catalog/sqlite"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/subscription"
)

// source is a catalog that may be read.
type source struct {
	id       catalog.ID
	ref      string // "oci:catalog"; empty where quayside cannot read it
	why      string // why ref is empty
	priority int
	labels   map[string]string
	pos      diag.Pos // of what declares it
}

// sources returns the catalogs of quayside.yaml and the declared ones, by
// namespace, then name. The former take the place of the latter by name.
func (s *space) sources(set *subscription.Set) []source {
	byID := map[catalog.ID]source{}
	for _, c := range set.CatalogSources {
		if !c.Disabled {
			byID[c.ID] = declaredSource(c)
		}
	}
	for i, c := range s.ws.Catalogs {
		byID[c.ID()] = source{
			id:       c.ID(),
			ref:      c.Source,
			priority: int(c.Priority),
			labels:   byID[c.ID()].labels,
			pos:      s.ws.At(fmt.Sprintf("spec.catalogs[%d].source", i)),
		}
	}
	var out []source
	for _, src := range byID {
		out = append(out, src)
	}
	slices.SortFunc(out, func(a, b source) int {
		return cmp.Or(strings.Compare(a.id.Namespace, b.id.Namespace), strings.Compare(a.id.Name, b.id.Name))
	})
	return out
}

func declaredSource(c subscription.CatalogSource) source {
	src := source{id: c.ID, priority: c.Priority, labels: c.Labels, pos: c.Pos}
	switch {
	case c.Image != "":
		src.ref = "image:" + c.Image
	case c.Address != "":
		src.why = fmt.Sprintf("it is served at %s, which only a cluster can reach", c.Address)
	default:
		src.why = "it names no image"
	}
	return src
}

// pinned returns the reference to read src by: by the digest in the lock
// where the lock holds the same reference by tag, else as it stands.
func pinned(locked *lockfile.File, src source) string {
	if locked == nil || !strings.HasPrefix(src.ref, "image:") {
		return src.ref
	}
	for _, c := range locked.Catalogs {
		if c.ID == src.id && c.Source == src.ref && c.Digest != "" {
			return atDigest(src.ref, c.Digest)
		}
	}
	return src.ref
}

// atDigest returns an "image:" reference with its tag replaced by a digest.
func atDigest(ref string, d catalog.Digest) string {
	parsed, err := registry.ParseSource(ref)
	if err != nil || parsed.Digest != "" {
		return ref
	}
	return "image:" + parsed.Name + "@" + string(d)
}

// tree is the files of a catalog and how they are to be read.
type tree struct {
	fs.FS
	bundles   bool                           // a directory of bundle directories
	converted bool                           // one that was made of package manifests
	database  string                         // the file that is an SQLite catalog; empty for others
	hashed    *hashedFS                      // where FS hashes what is read
	digest    func() (catalog.Digest, error) // of all files
	index     *disk.File                     // nil where there is none
	close     func()
}

// tree opens what a catalog's reference names.
func (s *space) tree(ctx context.Context, client *registry.Client, ref string) (*tree, error) {
	scheme, rest, ok := strings.Cut(ref, ":")
	if !ok {
		return nil, fmt.Errorf("source %q: want one of %s before a colon", ref, strings.Join(schemes(), ", "))
	}
	switch scheme {
	case "dir", "bundles", "package-manifests":
		return s.dirTree(rest, scheme)
	case "sqlite":
		return s.databaseTree(rest)
	case "oci", "oci-archive", "docker-archive", "image":
		return s.imageTree(ctx, client, ref)
	default:
		return nil, fmt.Errorf("source %q: unknown scheme %q (have %s)", ref, scheme, strings.Join(schemes(), ", "))
	}
}

func (s *space) imageTree(ctx context.Context, client *registry.Client, ref string) (*tree, error) {
	im, err := s.openImage(ctx, client, ref)
	if err != nil {
		return nil, err
	}
	t, err := treeOf(ctx, im)
	if err != nil {
		return nil, errors.Join(err, im.Close())
	}
	t.close = func() { _ = im.Close() }
	return t, nil
}

// treeOf returns the files of an image, which stays the caller's to close.
func treeOf(ctx context.Context, im *image.Image) (*tree, error) {
	t := &tree{bundles: im.Kind() == image.Bundle, digest: func() (catalog.Digest, error) { return im.Digest(), nil }, close: func() {}}
	var err error
	if im.Kind() == image.Database {
		t.FS, t.database, err = im.Database(ctx)
	} else {
		t.FS, err = im.FS(ctx)
	}
	return t, err
}

func schemes() []string {
	return []string{"image", "oci", "oci-archive", "docker-archive", "dir", "bundles", "package-manifests", "sqlite"}
}

func (s *space) dirTree(name, scheme string) (*tree, error) {
	dir := s.path(name)
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	fsys := os.DirFS(dir)
	hashed := &hashedFS{fsys: fsys, sums: map[string][sha256.Size]byte{}}
	t := &tree{FS: hashed, hashed: hashed, bundles: scheme != "dir", converted: scheme == "package-manifests", digest: hashed.digest, close: func() {}}
	if t.converted {
		if t.FS, err = bundledir.Packages(hashed); err != nil {
			return nil, below(name, err)
		}
	}
	return t, nil
}

// databaseTree opens an SQLite catalog.
func (s *space) databaseTree(name string) (*tree, error) {
	path := s.path(name)
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	fsys, file := os.DirFS(filepath.Dir(path)), filepath.Base(path)
	digest := func() (catalog.Digest, error) {
		f, err := fsys.Open(file)
		if err != nil {
			return "", err
		}
		defer f.Close()
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		return catalog.Digest("sha256:" + hex.EncodeToString(sum.Sum(nil))), err
	}
	return &tree{FS: fsys, database: file, digest: digest, close: func() {}}, nil
}

// streams reports whether the catalog can be read package by package.
func (t *tree) streams() bool { return !t.bundles && !t.converted && t.database == "" }

// kept returns what the catalog's index says of its digest: nothing where the
// digest may not be known when the index is written, so that it is always the
// same.
func (t *tree) kept(digest catalog.Digest) catalog.Digest {
	if t.hashed != nil && t.streams() {
		return ""
	}
	return digest
}

// unhashed says whether what is read from now on is not to be hashed.
func (t *tree) unhashed(yes bool) {
	if t.hashed != nil {
		t.hashed.off = yes
	}
}

// content decodes the catalog.
func (t *tree) content(ctx context.Context) (catalog.Content, error) {
	switch {
	case t.converted:
		c, err := bundledir.LoadFS(t.FS)
		for i := range c.Warnings {
			c.Warnings[i].Pos = original(c.Warnings[i].Pos)
		}
		return c, moved(err, original)
	case t.bundles:
		return bundledir.LoadFS(t.FS)
	case t.database != "":
		return sqlite.LoadFS(ctx, t.FS, t.database)
	default:
		return fbc.LoadFS(t.FS)
	}
}

// original returns the place of what a converted bundle was made of.
func original(p diag.Pos) diag.Pos {
	p.File = bundledir.Original(p.File)
	return p
}

// bundle returns the content of a bundle that the catalog itself holds.
func (t *tree) bundle(ctx context.Context, pkg, name string) (fs.FS, error) {
	if t.bundles {
		return bundledir.Find(t.FS, pkg, name)
	}
	objects, err := t.objects(ctx, pkg, name)
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 {
		return nil, fs.ErrNotExist
	}
	return bundle.FSFromObjects(objects, pkg)
}

// objects returns the manifests that a file-based catalog or a database embeds.
func (t *tree) objects(ctx context.Context, pkg, name string) ([][]byte, error) {
	if t.database != "" {
		return sqlite.Objects(ctx, t.FS, t.database, pkg, name)
	}
	if b := t.indexed(pkg, name); b != nil {
		return fbc.ObjectsOf(t.FS, b)
	}
	return fbc.Objects(t.FS, pkg, name)
}

// indexed returns what the index says of a bundle, nil where it does not know
// it or cannot be read.
func (t *tree) indexed(pkg, name string) *catalog.Bundle {
	if t.index == nil {
		return nil
	}
	found, err := disk.Select([]*disk.File{t.index}, pkg)
	if err != nil {
		return nil
	}
	cat, err := catalog.New(found[0])
	if err != nil {
		return nil
	}
	p, ok := cat.Package(pkg)
	if !ok {
		return nil
	}
	b, _ := p.Bundle(name)
	return b
}

// brokenList returns what is wrong with the catalogs that could not be read
// and that are wanted.
func brokenList(x *catalog.Index, wanted func(catalog.ID) bool) diag.List {
	var faults diag.List
	for id, err := range x.Broken() {
		var at *diag.Error
		switch {
		case !wanted(id):
		case errors.As(err, &at):
			faults.Addf(at.Pos, "catalog %q: %w", id, at.Err)
		default:
			faults.Addf(diag.Pos{}, "catalog %q: %w", id, err)
		}
	}
	return faults
}
