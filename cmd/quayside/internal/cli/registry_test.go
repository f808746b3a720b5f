package cli_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/catalog/image"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/lockfile"
)

// pushQuickstart pushes the quickstart's catalog to a local registry, and returns a workspace that
// reads it from the registry.
func pushQuickstart(t *testing.T, host string) string {
	t.Helper()
	dir := quickstart(t)
	put(t, dir, "quayside.yaml", strings.ReplaceAll(read(t, dir, "quayside.yaml"), "oci:catalog", "image:"+host+"/quickstart/catalog:v1"))
	remove(t, dir, "quayside.lock", "rendered")
	ctx := context.Background()
	c := &oci.Client{Lookup: filetree.LookupIn(dir)}
	im, err := image.Open(ctx, c, "oci:catalog", image.OpenOptions{})
	check(t, err)
	defer im.Close()
	fsys, err := im.FS(ctx)
	check(t, err)
	packed, err := oci.Pack(fsys, oci.PackOptions{Prefix: "configs", Labels: im.Labels()})
	check(t, err)
	if packed.Digest() != string(im.Digest()) {
		t.Fatal("packing the same files again gives another image")
	}
	check(t, c.Push(ctx, host+"/quickstart/catalog:v1", packed))
	return dir
}

// TestCatalogFromRegistry reads a catalog from a registry. Only the reference of the catalog may
// differ in the lock, and a second run must work offline.
func TestCatalogFromRegistry(t *testing.T) {
	server := ocitest.New(t)
	dir := pushQuickstart(t, server.Host)
	cache := t.TempDir()
	if got := quaysideIn(t, dir, cache, "resolve"); got.code != 0 {
		t.Fatal(got.stderr)
	}
	ref := "image:" + server.Host + "/quickstart/catalog:v1"
	got := parseLock(t, read(t, dir, "quayside.lock"))
	for i, p := range got.Pins {
		if p.Catalog.Source != ref {
			t.Errorf("source %q, want %q", p.Catalog.Source, ref)
		}
		got.Pins[i].Catalog.Source = "oci:catalog"
	}
	if want := read(t, "../../../../examples/quickstart", "quayside.lock"); string(lockfile.Format(got)) != want {
		t.Errorf("but for the reference the lock differs:\n%s", lockfile.Format(got))
	}

	server.Requests()
	for _, args := range [][]string{{"render", "--offline"}, {"verify", "--offline"}, {"resolve", "--offline"}} {
		if got := quaysideIn(t, dir, cache, args...); got.code != 0 {
			t.Errorf("%s: %s", args, got.stderr)
		}
	}
	if n := server.Requests(); len(n) > 0 {
		t.Errorf("request to the registry with --offline: %s", n)
	}

	// With an empty store, the error names the missing content, and nothing is written.
	before := snapshot(t, dir)
	offline := quayside(t, dir, "resolve", "--offline", "--upgrade")
	if offline.code != 2 || !strings.Contains(offline.stderr, "quickstart/catalog:v1") {
		t.Errorf("exit code %d: %s", offline.code, offline.stderr)
	}
	if after := snapshot(t, dir); after != before {
		t.Error("files changed")
	}
}

// TestMovedTag pushes another catalog with the same tag. The locked digest must be used until
// --upgrade.
func TestMovedTag(t *testing.T) {
	server := ocitest.New(t)
	dir := pushQuickstart(t, server.Host)
	mustRun(t, dir, "resolve")
	lock := read(t, dir, "quayside.lock")

	empty, err := oci.Pack(os.DirFS(filepath.Join(dir, "catalog-src", "vault")), oci.PackOptions{})
	check(t, err)
	client := &oci.Client{}
	check(t, client.Push(context.Background(), server.Host+"/quickstart/catalog:v1", empty))
	mustRun(t, dir, "resolve")
	mustRun(t, dir, "resolve", "--check")
	if got := read(t, dir, "quayside.lock"); got != lock {
		t.Error("the digest of the tag was updated without --upgrade")
	}
	if got := quayside(t, dir, "resolve", "--upgrade"); got.code == 0 {
		t.Error("--upgrade did not update the digest of the tag")
	}
}

// TestRegistryFaults checks the messages for errors of a registry.
func TestRegistryFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		once   bool // whether only the first response for each path is an error
		want   string
	}{
		{"error/unauthorized", http.StatusUnauthorized, false, "401"},
		{"error/forbidden", http.StatusForbidden, false, "403"},
		{"error/absent", http.StatusNotFound, false, "404"},
		{"error/too many", http.StatusTooManyRequests, false, "429"},
		{"error/unavailable", http.StatusServiceUnavailable, false, "503"},
		{"ok/too many once", http.StatusTooManyRequests, true, ""},
		{"ok/unavailable once", http.StatusServiceUnavailable, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // retries wait
			server := ocitest.New(t)
			dir := pushQuickstart(t, server.Host)
			seen := map[string]bool{}
			server.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.URL.Path == "/v2/" || c.once && seen[r.URL.Path] {
					next.ServeHTTP(w, r)
					return
				}
				seen[r.URL.Path] = true
				w.WriteHeader(c.status)
			})
			before := snapshot(t, dir)
			got := quayside(t, dir, "resolve")
			if c.once {
				if got.code != 0 {
					t.Errorf("exit code %d: %s", got.code, got.stderr)
				}
				return
			}
			if got.code != 2 {
				t.Errorf("exit code %d", got.code)
			}
			for _, want := range []string{c.want, server.Host + "/quickstart/catalog:v1"} {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("the message does not contain %q:\n%s", want, got.stderr)
				}
			}
			if after := snapshot(t, dir); after != before {
				t.Error("files changed")
			}
			t.Log(got.stderr)
		})
	}
}

func parseLock(t *testing.T, text string) *lockfile.File {
	t.Helper()
	f, err := lockfile.Parse("quayside.lock", []byte(text))
	check(t, err)
	return f
}
