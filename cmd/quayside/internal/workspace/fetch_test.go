package workspace_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/lockfile"
)

func checkContents(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// etcd returns a catalog of bundle directories with one bundle.
func etcd(t testing.TB) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	from := os.DirFS("../../../../examples/quickstart/catalog-src/etcd/0.9.4")
	checkContents(t, fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, name)
		out["etcd/0.9.4/"+name] = &fstest.MapFile{Data: data}
		return err
	}))
	return out
}

// contents returns Contents with catalogs in files and a store in dir. Opening an image is an
// error.
func contents(t testing.TB, lock *lockfile.File, files fs.FS, dir string) *workspace.Contents {
	t.Helper()
	s, err := store.Open(dir)
	checkContents(t, err)
	c := &cache.Cache{Store: s, Version: "test", Resolver: source.Resolver{
		Lookup: func(path string) (source.File, error) {
			if files == nil {
				return source.File{}, fs.ErrNotExist
			}
			return source.File{Path: "/map/" + path, DisplayPath: path, FS: files}, nil
		},
		Image: func(_ context.Context, ref string) (*image.Image, error) {
			return nil, errors.New(ref + " is not signed")
		},
	}}
	out := workspace.NewContents(&oci.Client{Store: s, Offline: true}, c)
	t.Cleanup(out.Close)
	return out
}

func newLock(pin lockfile.Pin) (*lockfile.File, lockfile.Pin) {
	pin.Namespace, pin.Package, pin.Bundle, pin.Version = "etcd", "etcd", "etcdoperator.v0.9.4", "0.9.4"
	pin.Catalog = lockfile.Catalog{ID: catalog.ID{Namespace: "olm", Name: "all"}, Source: "bundles:src"}
	return lockfile.New([]lockfile.Pin{pin}), pin
}

// TestEmbedded adds the digest of embedded content to a pin, and opens the content from the
// catalog and, without the catalog, from the store.
func TestEmbedded(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	lock, pin := newLock(lockfile.Pin{})
	tied, err := contents(t, lock, etcd(t), dir).AddDigest(ctx, pin, nil)
	checkContents(t, err)
	if !strings.HasPrefix(string(tied.ContentDigest), "sha256:") {
		t.Fatalf("tied to %q", tied.ContentDigest)
	}
	for name, c := range map[string]struct {
		files fs.FS
		store string
	}{"the catalog": {etcd(t), t.TempDir()}, "the store": {nil, dir}} {
		fsys, err := contents(t, lock, c.files, c.store).Open(ctx, tied)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		sub, err := fs.Sub(etcd(t), "etcd/0.9.4")
		checkContents(t, err)
		own, err := fs.Glob(sub, "manifests/*")
		checkContents(t, err)
		if found, err := fs.Glob(fsys, "manifests/*"); err != nil || len(found) < 2 || !slices.Equal(found, own) {
			t.Errorf("%s: %q, %v, want the author's names %q", name, found, err, own)
		}
	}
}

// TestKeeps checks that AddDigest reuses the digest in the previous lock only if that lock pins the same
// bundle.
func TestKeeps(t *testing.T) {
	ctx := context.Background()
	const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	before, _ := newLock(lockfile.Pin{ContentDigest: digest})
	lock, pin := newLock(lockfile.Pin{})
	c := contents(t, lock, nil, t.TempDir())
	if got, err := c.AddDigest(ctx, pin, before); err != nil || got.ContentDigest != digest {
		t.Errorf("the same bundle: %q, %v", got.ContentDigest, err)
	}
	other := pin
	other.Bundle = "etcdoperator.v0.9.2"
	if got, err := c.AddDigest(ctx, other, before); err == nil {
		t.Errorf("another bundle: %q", got.ContentDigest)
	}
	before.Pins[0].Image, before.Pins[0].ContentDigest = "quay.io/org/etcd@"+digest, ""
	pin.Image = "quay.io/org/etcd:v1"
	if got, err := c.AddDigest(ctx, pin, before); err != nil || got.Image != "quay.io/org/etcd@"+digest {
		t.Errorf("an image by tag: %q, %v", got.Image, err)
	}
	pin.Image = "quay.io/elsewhere/etcd:v1"
	if got, err := c.AddDigest(ctx, pin, before); err == nil {
		t.Errorf("an image elsewhere: %q", got.Image)
	}
}

// TestRefused checks the errors for content that is missing, or does not match its pin.
func TestRefused(t *testing.T) {
	ctx := context.Background()
	lock, pin := newLock(lockfile.Pin{})
	tied, err := contents(t, lock, etcd(t), t.TempDir()).AddDigest(ctx, pin, nil)
	checkContents(t, err)
	changed := etcd(t)
	for name, f := range changed {
		if strings.HasSuffix(name, "clusterserviceversion.yaml") {
			changed[name] = &fstest.MapFile{Data: append(f.Data, "\n# another\n"...)}
		}
	}
	elsewhere, none := tied, tied
	elsewhere.Catalog.ID.Name, elsewhere.Catalog.Source = "other", ""
	none.Bundle = "etcdoperator.v1"
	for name, c := range map[string]struct {
		files fs.FS
		pin   lockfile.Pin
		want  string
	}{
		"changed":      {changed, tied, "the lock has " + string(tied.ContentDigest) + ": run 'quayside resolve', or restore the catalog"},
		"no catalog":   {etcd(t), elsewhere, `catalog "olm/other" has no source in the lock`},
		"no bundle":    {etcd(t), none, `catalog "olm/all" does not contain the bundle's content`},
		"not signed":   {etcd(t), lockfile.Pin{Image: "quay.io/org/etcd@sha256:a"}, "image:quay.io/org/etcd@sha256:a is not signed"},
		"catalog gone": {nil, tied, `catalog "olm/all": file does not exist`},
	} {
		got := contents(t, lock, c.files, t.TempDir())
		for range 2 { // the second error is from the cache
			if _, err := got.Open(ctx, c.pin); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %s", name, err, c.want)
			}
		}
	}
}
