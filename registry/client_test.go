package registry

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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/registry/registrytest"
)

// newClient returns a client with an empty store and little patience.
func newClient(t *testing.T) *Client {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	return &Client{Store: s, Retry: Retry{Wait: time.Millisecond, MaxWait: 2 * time.Second, Stall: 5 * time.Second}}
}

func pack(t *testing.T, files map[string]string, opt PackOptions) *Packed {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, data := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(data)}
	}
	p, err := Pack(fsys, opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// example is an image whose layer does not compress, so that it takes several
// reads to transfer.
func example(t *testing.T) *Packed {
	t.Helper()
	var noise strings.Builder
	for i, x := 0, uint32(1); i < 1<<18; i++ {
		x = x*1664525 + 1013904223
		noise.WriteByte(byte(x >> 24))
	}
	return pack(t, map[string]string{"configs/a.json": "{}", "configs/noise": noise.String()}, PackOptions{Labels: map[string]string{"kind": "catalog"}})
}

func pushed(t *testing.T, srv *registrytest.Server) (*Packed, string) {
	t.Helper()
	p := example(t)
	ref := srv.Host + "/org/catalog:v1"
	if err := newClient(t).Push(t.Context(), ref, p); err != nil {
		t.Fatal(err)
	}
	srv.Requests()
	return p, ref
}

// contents returns the files of all layers.
func contents(ctx context.Context, im *Image) (map[string]string, error) {
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
			if err == io.EOF {
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

// pull opens an image and reads all of it.
func pull(ctx context.Context, c *Client, ref string) (*Image, error) {
	im, err := c.Open(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer im.Close()
	if err := im.Fetch(ctx); err != nil {
		return nil, err
	}
	_, err = contents(ctx, im)
	return im, err
}

func TestRegistry(t *testing.T) {
	srv := registrytest.New(t)
	p, ref := pushed(t, srv)
	c := newClient(t)
	var last sync.Map
	c.Progress = func(p Progress) { last.Store(p.Digest, p) }

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
	if got, ok := last.Load(p.layerID); !ok || got.(Progress).Done != int64(len(p.layer)) || got.(Progress).Total != int64(len(p.layer)) {
		t.Errorf("progress: %v", got)
	}

	srv.Requests()
	byDigest := srv.Host + "/org/catalog@" + p.Digest()
	again := &Client{Store: c.Store, Retry: c.Retry}
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
		t.Errorf("what the store holds was asked for: %q", got)
	}
}

func TestOfflineNamesWhatIsMissing(t *testing.T) {
	srv := registrytest.New(t)
	p, ref := pushed(t, srv)
	c := newClient(t)
	c.Offline = true
	byDigest := srv.Host + "/org/catalog@" + p.Digest()
	for s, want := range map[string]string{ref: `what tag "v1" stands for`, byDigest: "manifest " + p.Digest()} {
		_, err := c.Open(t.Context(), s)
		var offline *OfflineError
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
	if err == nil || !strings.Contains(err.Error(), "layer "+p.layerID) || !strings.Contains(err.Error(), "nothing is fetched offline") {
		t.Errorf("got %v, want the layer named", err)
	}
	srv.Requests()
	if err := c.Push(t.Context(), ref, p); err == nil || len(srv.Requests()) != 0 {
		t.Errorf("pushed offline: %v", err)
	}
}

// TestFaults puts a fault in the registry's way and wants either success after
// retries or an error that says what to do.
func TestFaults(t *testing.T) {
	status := func(code, times int, header ...string) registrytest.Intercept {
		var n atomic.Int64
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.URL.Path == "/v2/" || n.Add(1) > int64(times) {
				next.ServeHTTP(w, r)
				return
			}
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, `{"errors":[{"code":"SOME_CODE","message":"token s3cret"}]}`)
		}
	}
	blobs := func(f registrytest.Intercept) registrytest.Intercept {
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				f(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		}
	}
	const forever = 1 << 30
	tests := []struct {
		name      string
		intercept registrytest.Intercept
		want      string // in the error; empty: success
		status    int
	}{
		{"401", status(401, forever), `401 Unauthorized (SOME_CODE): log in with "podman login HOST" or "docker login HOST"`, 401},
		{"403", status(403, forever), "403 Forbidden (SOME_CODE): it may need an account", 403},
		{"404", status(404, forever), "404 Not Found (SOME_CODE): there is no such image, or it is private", 404},
		{"429 then fine", status(429, 2, "Retry-After", "0"), "", 0},
		{"429 with a long wait", status(429, forever, "Retry-After", "3600"), "429 Too Many Requests (SOME_CODE): it limits how often it may be asked", 429},
		{"429 for ever", status(429, forever), "429 Too Many Requests", 429},
		{"503 then fine", status(503, 3), "", 0},
		{"503 for ever", status(503, forever), "503 Service Unavailable (SOME_CODE): the fault is the registry's", 503},
		{"500 then fine", status(500, 1), "", 0},
		{"truncated layer", blobs(truncate), "truncated: 1000 of", 0},
		{"wrong bytes", blobs(scramble), "the content is not what the digest names", 0},
		{"longer than it says", blobs(lengthen), "longer than its", 0},
		{"dropped once mid-layer", blobs(dropOnce(1)), "", 0},
		{"dropped three times mid-layer", blobs(dropOnce(3)), "", 0},
		{"dropped for ever", blobs(dropOnce(forever)), "broke off 4 times", 0},
		{"huge manifest", hugeManifest, "larger than 4194304 bytes", 0},
		{"manifest is not JSON", manifestText("<html>"), "not a manifest", 0},
		{"old schema", manifestText(`{"schemaVersion":1,"fsLayers":[]}`), "schema version 1 is not supported", 0},
		{"image and index at once", manifestText(`{"schemaVersion":2,"manifests":[],"layers":[],"config":{}}`), "claims to be an image and an index at once", 0},
		{"too many layers", manifestText(manyLayers(257)), "257 layers: at most 256", 0},
		{"layer of a strange size", manifestText(layerSize(-5)), "size -5", 0},
		{"layer of a huge size", manifestText(layerSize(1 << 50)), "at most 4294967296 are taken", 0},
		{"endless index", endlessIndex, "nested more than 4 deep", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := registrytest.New(t)
			p, ref := pushed(t, srv)
			srv.Intercept(tt.intercept)
			c := newClient(t)
			im, err := pull(t.Context(), c, ref)
			if tt.want == "" {
				if err != nil || im.Digest() != p.Digest() {
					t.Errorf("got %v", err)
				}
				return
			}
			if err == nil {
				t.Fatalf("no error, want %q", tt.want)
			}
			want := strings.ReplaceAll(tt.want, "HOST", srv.Host)
			if !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), fmt.Sprintf("image %q: ", ref)) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			var e *Error
			if !errors.As(err, &e) || e.Status != tt.status {
				t.Errorf("status: got %+v, want %d", e, tt.status)
			}
			if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the registry's words came through: %v", err)
			}
		})
	}
}

func TestRetriesOnlyWhatMayPass(t *testing.T) {
	for code, want := range map[int]int{401: 1, 403: 1, 404: 1, 429: 4, 503: 4} {
		srv := registrytest.New(t)
		_, ref := pushed(t, srv)
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
			t.Errorf("%d: asked %d times, want %d", code, n, want)
		}
	}
}

// truncate sends 1000 bytes of any large blob and ends the answer in good
// order; there is nothing after them.
func truncate(w http.ResponseWriter, r *http.Request, next http.Handler) {
	data := blobOf(r, next)
	if len(data) < 10_000 {
		next.ServeHTTP(w, r)
		return
	}
	if r.Header.Get("Range") != "" {
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		return
	}
	_, _ = w.Write(data[:1000])
}

func scramble(w http.ResponseWriter, r *http.Request, next http.Handler) {
	data := blobOf(r, next)
	if len(data) >= 10_000 {
		data[5000] ^= 1
	}
	_, _ = w.Write(data)
}

func lengthen(w http.ResponseWriter, r *http.Request, next http.Handler) {
	data := blobOf(r, next)
	_, _ = w.Write(append(data, bytes.Repeat([]byte("x"), 1<<20)...))
}

// blobOf returns what the registry would answer.
func blobOf(r *http.Request, next http.Handler) []byte {
	whole := r.Clone(r.Context())
	whole.Header.Del("Range")
	rec := &recorder{header: http.Header{}}
	next.ServeHTTP(rec, whole)
	return rec.body.Bytes()
}

type recorder struct {
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(int)             {}
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// dropOnce breaks the connection in the middle of a large blob that many
// times. It honours ranges.
func dropOnce(times int) registrytest.Intercept {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		data := blobOf(r, next)
		if len(data) < 10_000 {
			next.ServeHTTP(w, r)
			return
		}
		from := 0
		if s, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
			from, _ = strconv.Atoi(strings.TrimSuffix(s, "-"))
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(data)-1, len(data)))
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(data)-from))
		if from > 0 {
			w.WriteHeader(http.StatusPartialContent)
		}
		if n.Add(1) > int64(times) {
			_, _ = w.Write(data[from:])
			return
		}
		_, _ = w.Write(data[from : from+(len(data)-from)/4])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func manifestText(text string) registrytest.Intercept {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.Contains(r.URL.Path, "/manifests/") {
			_, _ = io.WriteString(w, text)
			return
		}
		next.ServeHTTP(w, r)
	}
}

func hugeManifest(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if !strings.Contains(r.URL.Path, "/manifests/") {
		next.ServeHTTP(w, r)
		return
	}
	for range 1000 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			return
		}
	}
}

const zeroDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

func manyLayers(n int) string {
	layer := `{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"` + zeroDigest + `","size":1}`
	return `{"schemaVersion":2,"config":` + layer + `,"layers":[` + strings.TrimSuffix(strings.Repeat(layer+",", n), ",") + `]}`
}

func layerSize(n int) string {
	return strings.Replace(manyLayers(1), `"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"`+zeroDigest+`","size":1}`,
		fmt.Sprintf(`"layers":[{"digest":%q,"size":%d}`, zeroDigest, n), 1)
}

// endlessIndex answers with chains of indexes deeper than anybody needs.
func endlessIndex(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if !strings.Contains(r.URL.Path, "/manifests/") {
		next.ServeHTTP(w, r)
		return
	}
	text := make([]string, 10)
	below := zeroDigest
	for i := range text {
		text[i] = fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"digest":%q,"size":1}]}`, below)
		below = store.DigestOf([]byte(text[i]))
	}
	for _, s := range text {
		if strings.HasSuffix(r.URL.Path, store.DigestOf([]byte(s))) {
			_, _ = io.WriteString(w, s)
			return
		}
	}
	_, _ = io.WriteString(w, text[len(text)-1])
}

func TestStalls(t *testing.T) {
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
	for name, tt := range map[string]struct {
		f    registrytest.Intercept
		want string
	}{"never answers": {never, "timeout awaiting response headers"}, "answers slowly for ever": {slowly, "sends nothing, or next to nothing"}} {
		t.Run(name, func(t *testing.T) {
			srv := registrytest.New(t)
			_, ref := pushed(t, srv)
			srv.Intercept(tt.f)
			c := newClient(t)
			c.Retry = Retry{Attempts: 2, Wait: time.Millisecond, Stall: 200 * time.Millisecond}
			began := time.Now()
			_, err := pull(t.Context(), c, ref)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	srv := registrytest.New(t)
	_, ref := pushed(t, srv)
	srv.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(503) })
	c := newClient(t)
	c.Retry = Retry{Wait: time.Hour, MaxWait: time.Hour}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Open(ctx, ref); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestDamagedStore(t *testing.T) {
	srv := registrytest.New(t)
	p, ref := pushed(t, srv)
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
		if digest == p.layerID { // that one is the caller's to read again
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
	srv := registrytest.New(t)
	p, ref := pushed(t, srv)
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
