package oci_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

// descriptorOf returns the descriptor of a blob in an index.
func descriptorOf(kind string, data []byte) map[string]any {
	return map[string]any{"mediaType": kind, "digest": store.DigestOf(data), "size": len(data)}
}

// twoPlatforms pushes an index of two images. It returns the digests of the index and of the images.
func twoPlatforms(t *testing.T, srv *ocitest.Server, repo string) (index, amd, arm string) {
	t.Helper()
	images := map[string]*imageParts{
		"linux/amd64": pack(t, map[string]string{"a": "amd"}, oci.PackOptions{}),
		"linux/arm64": pack(t, map[string]string{"a": "arm"}, oci.PackOptions{Platform: "linux/arm64"}),
	}
	var entries []any
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		p := images[platform]
		if err := newClient(t).Push(t.Context(), srv.Host+"/"+repo+"@"+p.digest, p.Packed); err != nil {
			t.Fatal(err)
		}
		d := descriptorOf("application/vnd.oci.image.manifest.v1+json", p.manifest)
		system, arch, _ := strings.Cut(platform, "/")
		d["platform"] = map[string]string{"os": system, "architecture": arch}
		entries = append(entries, d)
	}
	text, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": entries})
	if err != nil {
		t.Fatal(err)
	}
	putManifest(t, srv.Host, repo, "v1", string(text))
	return store.DigestOf(text), images["linux/amd64"].digest, images["linux/arm64"].digest
}

func TestUpload(t *testing.T) {
	from, to := ocitest.New(t), ocitest.New(t)
	index, amd, arm := twoPlatforms(t, from, "org/tool")
	c := newClient(t)
	got, err := c.Upload(t.Context(), from.Host+"/org/tool:v1", to.Host+"/mirror/tool:v1")
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest != index || got.Sent != 4 || got.UpToDate {
		t.Errorf("got %+v, want 4 blobs of %s", got, index)
	}
	for _, digest := range []string{index, amd, arm} {
		if im, err := pull(t.Context(), newClient(t), to.Host+"/mirror/tool@"+digest); err != nil || im.Digest() != digest {
			t.Errorf("%s: %v", digest, err)
		}
	}
	if blobs := storedBlobs(t, c); len(blobs) > 3 {
		t.Errorf("blobs stay in the store: %q", blobs)
	}
	from.Requests()
	again, err := c.Upload(t.Context(), from.Host+"/org/tool@"+index, to.Host+"/mirror/tool:v1")
	if err != nil || !again.UpToDate || again.Sent != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	if asked := from.Requests(); len(asked) > 0 {
		t.Errorf("requests for existing content: %q", asked)
	}
}

// storedBlobs returns the names of the blobs in the store.
func storedBlobs(t *testing.T, c *oci.Client) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(c.Store.Dir(), "blobs", "sha256"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestUploadResumes interrupts an upload. The next upload must send only the missing parts.
func TestUploadResumes(t *testing.T) {
	from, to := ocitest.New(t), ocitest.New(t)
	twoPlatforms(t, from, "org/tool")
	uploads := 0
	to.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPost {
			if uploads++; uploads > 2 {
				w.WriteHeader(http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
	if _, err := newClient(t).Upload(t.Context(), from.Host+"/org/tool:v1", to.Host+"/m/tool:v1"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Fatalf("got %v", err)
	}
	to.Intercept(nil)
	got, err := newClient(t).Upload(t.Context(), from.Host+"/org/tool:v1", to.Host+"/m/tool:v1")
	if err != nil || got.Sent != 2 {
		t.Errorf("sent %d blobs, want 2: %v", got.Sent, err)
	}
}

// TestConcurrentUploads concurrently uploads images that share blobs, with one client. The client also reads
// the configuration, which the uploads remove from the store.
func TestConcurrentUploads(t *testing.T) {
	from, to := ocitest.New(t), ocitest.New(t)
	p, ref := pushExample(t, from)
	c := newClient(t)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			target := fmt.Sprintf("%s/m/copy-%d:v1", to.Host, i)
			if got, err := c.Upload(t.Context(), ref, target); err != nil || got.Digest != p.Digest() {
				t.Errorf("%s: %+v, %v", target, got, err)
			}
			for range 20 {
				if _, err := c.Inspect(t.Context(), "image:"+ref); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	for i := range 8 {
		if _, err := pull(t.Context(), newClient(t), fmt.Sprintf("%s/m/copy-%d:v1", to.Host, i)); err != nil {
			t.Error(err)
		}
	}
}

func TestUploadFaults(t *testing.T) {
	srv := ocitest.New(t)
	_, ref := pushExample(t, srv)
	for _, tt := range []struct{ from, to, want string }{
		{ref, "oci:dir", "images can only be pushed to a registry"},
		{"docker-archive:x", srv.Host + "/a/b:v1", "no manifest"},
		{"oci:nowhere", srv.Host + "/a/b:v1", "nowhere"},
		{ref, srv.Host + "/a/b@" + zeroDigest, "image to push has digest"},
	} {
		if _, err := newClient(t).Upload(t.Context(), tt.from, tt.to); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s to %s: got %v, want %q", tt.from, tt.to, err, tt.want)
		}
	}
	t.Run("wrong bytes", func(t *testing.T) {
		other := ocitest.New(t)
		srv.Intercept(sendScrambled)
		defer srv.Intercept(nil)
		if _, err := newClient(t).Upload(t.Context(), ref, other.Host+"/a/b:v1"); err == nil || !strings.Contains(err.Error(), "digest mismatch: the content is sha256:") {
			t.Errorf("got %v", err)
		}
	})
	c := newClient(t)
	c.Offline = true
	if _, err := c.Upload(t.Context(), ref, srv.Host+"/a/c:v1"); err == nil {
		t.Error("pushed offline")
	}
}

func TestVendor(t *testing.T) {
	srv := ocitest.New(t)
	p, ref := pushExample(t, srv)
	index, amd, arm := twoPlatforms(t, srv, "org/tool")
	dir := filepath.Join(t.TempDir(), "vendor")
	c := newClient(t)
	images := []oci.VendoredImage{{Name: srv.Host + "/org/tool:v1", Digest: index}, {Name: ref, Digest: p.Digest()}}

	missing, err := c.Vendor(t.Context(), filetree.OpenUserDir(dir), images, oci.VendorOptions{Check: true})
	if err != nil || len(missing.Added) != 9 || !missing.Changed() {
		t.Errorf("check without images: %+v, %v", missing, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("a check writes")
	}
	got, err := c.Vendor(t.Context(), filetree.OpenUserDir(dir), images, oci.VendorOptions{})
	if err != nil || len(got.Added) != 9 || got.Kept != 0 {
		t.Fatalf("got %+v, %v", got, err)
	}
	first := tree(t, dir)
	if _, ok := first.Get("blobs/sha256/" + arm[7:]); ok {
		t.Error("the other platform was copied")
	}

	// Another client and another order give the same bytes.
	other := filepath.Join(t.TempDir(), "vendor")
	slices.Reverse(images)
	if _, err := newClient(t).Vendor(t.Context(), filetree.OpenUserDir(other), images, oci.VendorOptions{}); err != nil {
		t.Fatal(err)
	}
	if d := filetree.Diff(first, tree(t, other)); len(d) > 0 {
		t.Errorf("differs: %v", d)
	}

	// An offline client with an empty store uses only the layout.
	alone := newClient(t)
	alone.Vendored, alone.Offline = dir, true
	for ref, want := range map[string]string{
		ref: p.Digest(), srv.Host + "/org/tool@" + index: index, srv.Host + "/org/tool:v1": index, srv.Host + "/org/tool@" + amd: amd,
	} {
		if im, err := pull(t.Context(), alone, ref); err != nil || im.Digest() != want {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if same, err := alone.Vendor(t.Context(), filetree.OpenUserDir(dir), images, oci.VendorOptions{Check: true}); err != nil || same.Changed() || same.Kept != 9 {
		t.Errorf("check: %+v, %v", same, err)
	}

	// Remove images, and a leftover file of a killed process.
	write(t, filepath.Join(dir, "blobs", "sha256", ".new-123"), "half", 0o600)
	srv.Requests()
	less, err := alone.Vendor(t.Context(), filetree.OpenUserDir(dir), images[:1], oci.VendorOptions{})
	if err != nil || len(less.Removed) != 5 || cmp.Diff(less.Added, []string{"index.json"}) != "" {
		t.Errorf("got %+v, %v", less, err)
	}
	if asked := srv.Requests(); len(asked) > 0 {
		t.Errorf("requests while offline: %q", asked)
	}
}

// TestVendorRepairs damages a vendored blob. Vendor must detect the damage and fetch the blob again.
func TestVendorRepairs(t *testing.T) {
	srv := ocitest.New(t)
	p, ref := pushExample(t, srv)
	dir := filepath.Join(t.TempDir(), "vendor")
	images := []oci.VendoredImage{{Name: ref, Digest: p.Digest()}}
	if _, err := newClient(t).Vendor(t.Context(), filetree.OpenUserDir(dir), images, oci.VendorOptions{}); err != nil {
		t.Fatal(err)
	}
	blob := filepath.Join(dir, "blobs", "sha256", p.layerID[7:])
	data, err := os.ReadFile(blob)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	write(t, blob, string(data), 0o644)
	c := newClient(t)
	c.Vendored, c.Offline = dir, true
	if _, err := pull(t.Context(), c, ref); err == nil || !strings.Contains(err.Error(), "vendored copy in "+dir+" is damaged") {
		t.Errorf("damaged: %v", err)
	}
	c.Offline = false
	if got, err := c.Vendor(t.Context(), filetree.OpenUserDir(dir), images, oci.VendorOptions{}); err != nil || len(got.Added) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := pull(t.Context(), c, ref); err != nil {
		t.Error(err)
	}
	// The layout replaces blobs that a failing disk truncated in the store.
	c.Offline = true
	for _, digest := range []string{p.configDigest, p.layerID} {
		short := filepath.Join(c.Store.Dir(), "blobs", "sha256", digest[7:])
		if err := os.MkdirAll(filepath.Dir(short), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, short, "{", 0o600)
	}
	if _, err := pull(t.Context(), c, ref); err != nil {
		t.Error(err)
	}
}

func TestVendorFaults(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.go"), "package main", 0o644)
	if _, err := newClient(t).Vendor(t.Context(), filetree.OpenUserDir(dir), nil, oci.VendorOptions{}); err == nil || !strings.Contains(err.Error(), "not an OCI layout") {
		t.Errorf("got %v", err)
	}
	if entries, err := fs.ReadDir(os.DirFS(dir), "."); err != nil || len(entries) != 1 {
		t.Errorf("changed: %v, %v", entries, err)
	}
}
