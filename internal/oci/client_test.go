package oci_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/internal/testing/servertest"
)

// newClient returns a client with an empty store and short timeouts.
func newClient(t *testing.T) *oci.Client {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	return &oci.Client{Store: s, Retry: oci.Retry{Wait: time.Millisecond, MaxWait: 2 * time.Second, Stall: time.Minute}}
}

// imageParts is an image with its parts as stored in a layout.
type imageParts struct {
	*oci.Packed
	manifest, config, layer       []byte
	digest, configDigest, layerID string
}

// partsOf returns an image with its parts.
func partsOf(t *testing.T, image *oci.Packed) *imageParts {
	t.Helper()
	dir := t.TempDir()
	if err := image.WriteLayout(dir, ""); err != nil {
		t.Fatal(err)
	}
	blob := func(digest string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, "blobs", "sha256", strings.TrimPrefix(digest, "sha256:")))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	p := &imageParts{Packed: image, digest: image.Digest(), manifest: blob(image.Digest())}
	m, err := v1.ParseManifest(bytes.NewReader(p.manifest))
	if err != nil || len(m.Layers) != 1 {
		t.Fatalf("%s: %v", p.manifest, err)
	}
	p.configDigest, p.layerID = m.Config.Digest.String(), m.Layers[0].Digest.String()
	p.config, p.layer = blob(p.configDigest), blob(p.layerID)
	return p
}

func pack(t *testing.T, files map[string]string, opt oci.PackOptions) *imageParts {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, data := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(data)}
	}
	p, err := oci.Pack(fsys, opt)
	if err != nil {
		t.Fatal(err)
	}
	return partsOf(t, p)
}

// example returns an image with an incompressible layer, so that its transfer needs several
// reads.
func example(t *testing.T) *imageParts {
	t.Helper()
	var noise strings.Builder
	for i, x := 0, uint32(1); i < 1<<18; i++ {
		x = x*1664525 + 1013904223
		noise.WriteByte(byte(x >> 24))
	}
	return pack(t, map[string]string{"configs/a.json": "{}", "configs/noise": noise.String()}, oci.PackOptions{Labels: map[string]string{"kind": "catalog"}})
}

func pushExample(t *testing.T, srv *ocitest.Server) (*imageParts, string) {
	t.Helper()
	p := example(t)
	ref := srv.Host + "/org/catalog:v1"
	if err := newClient(t).Push(t.Context(), ref, p.Packed); err != nil {
		t.Fatal(err)
	}
	srv.Requests()
	return p, ref
}

// contents returns the files of all layers of an image.
func contents(ctx context.Context, im *oci.Image) (map[string]string, error) {
	got := map[string]string{}
	for _, l := range im.Layers() {
		r, err := l.Open(ctx)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		tr := tar.NewReader(r)
		for {
			h, err := tr.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			data, err := io.ReadAll(tr)
			if err != nil {
				return nil, err
			}
			if h.Typeflag == tar.TypeReg {
				got[h.Name] = string(data)
			}
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			return nil, err
		}
	}
	return got, nil
}

// pull opens an image and reads all its layers.
func pull(ctx context.Context, c *oci.Client, ref string) (*oci.Image, error) {
	im, err := c.Open(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer func() { _ = im.Close() }()
	if err := im.Fetch(ctx); err != nil {
		return nil, err
	}
	_, err = contents(ctx, im)
	return im, err
}

func TestRegistry(t *testing.T) {
	srv := ocitest.New(t)
	p, ref := pushExample(t, srv)
	c := newClient(t)
	var last sync.Map
	c.Progress = func(p oci.Progress) { last.Store(p.Digest, p) }

	im, err := c.Open(t.Context(), "image:"+ref)
	if err != nil {
		t.Fatal(err)
	}
	if im.Digest() != p.Digest() || im.ManifestDigest() != p.Digest() || im.Name() != ref {
		t.Errorf("got %s %s %s, want %s", im.Name(), im.Digest(), im.ManifestDigest(), p.Digest())
	}
	if diff := cmp.Diff(map[string]string{"kind": "catalog"}, im.Labels()); diff != "" {
		t.Error(diff)
	}
	if reqs := srv.Requests(); slices.Contains(reqs, "GET /v2/org/catalog/blobs/"+p.layerID) {
		t.Errorf("Open fetched the layer: %q", reqs)
	}
	files, err := contents(t.Context(), im)
	if err != nil || files["configs/a.json"] != "{}" {
		t.Errorf("got %d files, %v", len(files), err)
	}
	if got, ok := last.Load(p.layerID); !ok || got.(oci.Progress).Done != int64(len(p.layer)) || got.(oci.Progress).Total != int64(len(p.layer)) {
		t.Errorf("progress: %v", got)
	}

	srv.Requests()
	byDigest := srv.Host + "/org/catalog@" + p.Digest()
	again := &oci.Client{Store: c.Store, Retry: c.Retry}
	if _, err := pull(t.Context(), again, byDigest); err != nil {
		t.Error(err)
	}
	again.Offline = true
	for _, s := range []string{byDigest, ref} {
		if im, err := pull(t.Context(), again, s); err != nil || im.Digest() != p.Digest() {
			t.Errorf("offline, %s: %v", s, err)
		}
	}
	if got := srv.Requests(); len(got) != 0 {
		t.Errorf("requests for stored content: %q", got)
	}
}

func TestOfflineNamesMissingBlob(t *testing.T) {
	srv := ocitest.New(t)
	p, ref := pushExample(t, srv)
	c := newClient(t)
	c.Offline = true
	byDigest := srv.Host + "/org/catalog@" + p.Digest()
	for s, want := range map[string]string{ref: `digest of tag "v1"`, byDigest: "manifest " + p.Digest()} {
		_, err := c.Open(t.Context(), s)
		var offline *oci.OfflineError
		if !errors.As(err, &offline) || offline.Missing != want {
			t.Errorf("%s: got %v, want %q missing", s, err, want)
		}
	}
	c.Offline = false
	if _, err := c.Open(t.Context(), byDigest); err != nil {
		t.Fatal(err)
	}
	c.Offline = true
	_, err := pull(t.Context(), c, byDigest)
	if err == nil || !strings.Contains(err.Error(), "layer "+p.layerID) || !strings.Contains(err.Error(), "--offline allows no download") {
		t.Errorf("got %v, want the layer named", err)
	}
	srv.Requests()
	if err := c.Push(t.Context(), ref, p.Packed); err == nil || len(srv.Requests()) != 0 {
		t.Errorf("pushed offline: %v", err)
	}
}

func TestRetriesOnlyTransientErrors(t *testing.T) {
	for code, want := range map[int]int{401: 1, 403: 1, 404: 1, 429: 4, 503: 4} {
		srv := ocitest.New(t)
		_, ref := pushExample(t, srv)
		srv.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.URL.Path == "/v2/" {
				next.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(code)
		})
		if _, err := newClient(t).Open(t.Context(), ref); err == nil {
			t.Errorf("%d: no error", code)
		}
		n := 0
		for _, r := range srv.Requests() {
			if strings.Contains(r, "/manifests/") {
				n++
			}
		}
		if n != want {
			t.Errorf("%d: %d requests, want %d", code, n, want)
		}
	}
}

func TestStalledTransfer(t *testing.T) {
	var mu sync.Mutex
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	never := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.Contains(r.URL.Path, "/manifests/") {
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return
		}
		next.ServeHTTP(w, r)
	}
	slowly := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		mu.Lock()
		data := blobOf(r, next)
		mu.Unlock()
		if len(data) < 10_000 {
			next.ServeHTTP(w, r)
			return
		}
		for i := range data {
			if _, err := w.Write(data[i : i+1]); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-release:
				return
			case <-r.Context().Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	greeting := func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		for range 1000 {
			if _, err := w.Write([]byte("x")); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	for name, tt := range map[string]struct {
		f    servertest.Intercept
		want string
	}{"greets slowly for ever": {greeting, "sends no data, or too slowly"}, "never answers": {never, "timeout awaiting response headers"}, "answers slowly for ever": {slowly, "sends no data, or too slowly"}} {
		t.Run(name, func(t *testing.T) {
			srv := ocitest.New(t)
			_, ref := pushExample(t, srv)
			srv.Intercept(tt.f)
			retryWithLongerTimeouts(t, func(stall time.Duration) error {
				c := newClient(t)
				c.Retry = oci.Retry{Attempts: 2, Wait: time.Millisecond, Stall: stall}
				if _, err := pull(t.Context(), c, ref); err == nil || !strings.Contains(err.Error(), tt.want) {
					return fmt.Errorf("got %w, want %q", err, tt.want)
				}
				return nil
			})
		})
	}
}

// retryWithLongerTimeouts repeats a failed attempt with longer timeouts, because on a busy machine even a fast
// server may respond late.
func retryWithLongerTimeouts(t *testing.T, try func(stall time.Duration) error) {
	t.Helper()
	for stall := 200 * time.Millisecond; ; stall *= 3 {
		err := try(stall)
		if err == nil {
			return
		}
		if stall > 5*time.Second {
			t.Error(err)
			return
		}
	}
}

func TestCancelled(t *testing.T) {
	srv := ocitest.New(t)
	_, ref := pushExample(t, srv)
	srv.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(503) })
	c := newClient(t)
	c.Retry = oci.Retry{Wait: time.Hour, MaxWait: time.Hour}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Open(ctx, ref); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestPageInsteadOfManifest checks that an HTML page of a proxy is not cached.
func TestPageInsteadOfManifest(t *testing.T) {
	srv := ocitest.New(t)
	p, ref := pushExample(t, srv)
	srv.Intercept(manifestText("<html>log in first</html>"))
	c := newClient(t)
	if _, err := c.Open(t.Context(), ref); err == nil || !strings.Contains(err.Error(), "manifest v1: not a manifest") {
		t.Errorf("got %v", err)
	}
	c.Offline = true
	var offline *oci.OfflineError
	if _, err := c.Open(t.Context(), ref); !errors.As(err, &offline) {
		t.Errorf("it is remembered: %v", err)
	}
	srv.Intercept(nil)
	c.Offline = false
	if im, err := pull(t.Context(), c, ref); err != nil || im.Digest() != p.Digest() {
		t.Error(err)
	}
}

// TestTwoClients fetches into one empty store with two clients at once.
func TestTwoClients(t *testing.T) {
	srv := ocitest.New(t)
	p, ref := pushExample(t, srv)
	dir := filepath.Join(t.TempDir(), "cache")
	var wg sync.WaitGroup
	for range 2 {
		s, err := store.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		c := newClient(t)
		c.Store = s
		wg.Go(func() {
			if im, err := pull(t.Context(), c, ref); err != nil || im.Digest() != p.Digest() {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	left, err := os.ReadDir(filepath.Join(dir, "tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("leftover files: %v, %v", left, err)
	}
}

func TestDamagedStore(t *testing.T) {
	srv := ocitest.New(t)
	p, ref := pushExample(t, srv)
	c := newClient(t)
	if _, err := pull(t.Context(), c, ref); err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{p.digest, p.configDigest, p.layerID} {
		path := filepath.Join(c.Store.Dir(), "blobs", "sha256", digest[7:])
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 4
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = pull(t.Context(), c, srv.Host+"/org/catalog@"+p.digest)
		var corrupt *store.CorruptError
		if digest == p.layerID { // the caller must read this layer again
			if !errors.As(err, &corrupt) {
				t.Errorf("a damaged layer: got %v", err)
			}
			_, err = pull(t.Context(), c, srv.Host+"/org/catalog@"+p.digest)
		}
		if err != nil {
			t.Errorf("%s: %v", digest, err)
		}
	}
}

func TestConcurrentFetch(t *testing.T) {
	srv := ocitest.New(t)
	p, ref := pushExample(t, srv)
	c := newClient(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := pull(t.Context(), c, ref); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := 0
	for _, r := range srv.Requests() {
		if r == "GET /v2/org/catalog/blobs/"+p.layerID {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the layer was fetched %d times", n)
	}
}

// TestSend checks that Send does not repeat blobs that the repository has, even for another tag.
func TestSend(t *testing.T) {
	srv, p := ocitest.New(t), example(t)
	send := func(tag string) (oci.UploadResult, []string) {
		t.Helper()
		srv.Requests()
		got, err := newClient(t).Send(t.Context(), srv.Host+"/org/catalog"+tag, p.Packed)
		if err != nil {
			t.Fatal(err)
		}
		asked := srv.Requests()
		if all := strings.Join(asked, "\n"); got.Exists && strings.Contains(all, "/blobs/") {
			t.Errorf("%s: requests for the parts of an existing image:\n%s", tag, all)
		}
		return got, slices.DeleteFunc(asked, func(line string) bool {
			return strings.HasPrefix(line, "GET ") || strings.HasPrefix(line, "HEAD ")
		})
	}
	first, _ := send(":v1")
	if want := (oci.UploadResult{Digest: p.digest, Sent: 2, Bytes: int64(len(p.config) + len(p.layer))}); first != want {
		t.Errorf("got %+v, want %+v", first, want)
	}
	again, changed := send(":v1")
	if !again.UpToDate || !again.Exists || again.Sent != 0 || len(changed) != 0 {
		t.Errorf("again: %+v, %v", again, changed)
	}
	other, changed := send(":v2")
	if other.UpToDate || !other.Exists || other.Sent != 0 || len(changed) != 1 || changed[0] != "PUT /v2/org/catalog/manifests/v2" {
		t.Errorf("by another tag: %+v, %v", other, changed)
	}
	named, changed := send("@" + p.digest)
	if !named.UpToDate || len(changed) != 0 {
		t.Errorf("by digest: %+v, %v", named, changed)
	}
}
