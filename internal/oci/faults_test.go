package oci_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/internal/testing/servertest"
)

// TestFaults simulates a failing registry. A pull must succeed after retries, or fail with a
// hint.
func TestFaults(t *testing.T) {
	status := func(code, times int, header ...string) servertest.Intercept {
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
	blobs := func(f servertest.Intercept) servertest.Intercept {
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
		intercept servertest.Intercept
		want      string // part of the error; empty: success
		status    int
	}{
		{"401", status(401, forever), `401 Unauthorized (SOME_CODE): log in with "podman login HOST" or "docker login HOST"`, 401},
		{"403", status(403, forever), "403 Forbidden (SOME_CODE): it may require a login", 403},
		{"404", status(404, forever), "404 Not Found (SOME_CODE): image not found, or private", 404},
		{"429 then fine", status(429, 2, "Retry-After", "0"), "", 0},
		{"429 with a long wait", status(429, forever, "Retry-After", "3600"), "429 Too Many Requests (SOME_CODE): rate limit exceeded; wait, or log in if you have not (retry after 1h0m0s)", 429},
		{"429 for ever", status(429, forever), "429 Too Many Requests", 429},
		{"503 then fine", status(503, 3), "", 0},
		{"503 for ever", status(503, forever), "503 Service Unavailable (SOME_CODE): registry error", 503},
		{"500 then fine", status(500, 1), "", 0},
		{"503 of a blob then fine", blobs(status(503, 3)), "", 0},
		{"429 of a blob then fine", blobs(status(429, 2, "Retry-After", "0")), "", 0},
		{"truncated layer", blobs(sendTruncated), "truncated: 1000 of", 0},
		{"wrong bytes", blobs(sendScrambled), "digest mismatch: the content is sha256:", 0},
		{"longer than declared", blobs(sendLengthened), "longer than", 0},
		{"dropped once mid-layer", blobs(dropOnce(1)), "", 0},
		{"dropped three times mid-layer", blobs(dropOnce(3)), "", 0},
		{"dropped for ever", blobs(dropOnce(forever)), "was interrupted 4 times", 0},
		{"huge manifest", hugeManifest, "exceeds the limit of 4194304 bytes", 0},
		{"manifest is not JSON", manifestText("<html>"), "not a manifest", 0},
		{"old schema", manifestText(`{"schemaVersion":1,"fsLayers":[]}`), "schema version 1 is not supported", 0},
		{"image and index at once", manifestText(`{"schemaVersion":2,"manifests":[],"layers":[],"config":{}}`), "ambiguous manifest: both an image and an index", 0},
		{"too many layers", manifestText(manyLayers(257)), "257 layers exceed the limit of 256", 0},
		{"layer of a strange size", manifestText(layerSize(-5)), "size -5", 0},
		{"layer of a huge size", manifestText(layerSize(1 << 50)), "1125899906842624 bytes exceed the limit of 4294967296", 0},
		{"endless index", endlessIndex, "nested deeper than 4 levels", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := ocitest.New(t)
			p, ref := pushExample(t, srv)
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
			var e *oci.Error
			if !errors.As(err, &e) || e.Status != tt.status {
				t.Errorf("status: got %+v, want %d", e, tt.status)
			}
			if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error contains text from the registry: %v", err)
			}
		})
	}
}

// TestHostile simulates a registry with wrong responses. A pull must fail soon, and must not
// store the content.
func TestHostile(t *testing.T) {
	changed := func(data []byte) []byte { return bytes.Replace(data, []byte("catalog"), []byte("hostile"), 1) }
	answer := func(kind string, f func(w http.ResponseWriter, data []byte)) func(*imageParts) servertest.Intercept {
		return func(p *imageParts) servertest.Intercept {
			digest := map[string]string{"manifest": p.digest, "config": p.configDigest, "layer": p.layerID}[kind]
			return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if !strings.HasSuffix(r.URL.Path, digest) {
					next.ServeHTTP(w, r)
					return
				}
				if kind == "manifest" {
					w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
				}
				f(w, blobOf(r, next))
			}
		}
	}
	realm := func(challenge string) func(*imageParts) servertest.Intercept {
		return func(*imageParts) servertest.Intercept {
			return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.Header().Set("WWW-Authenticate", challenge)
				w.WriteHeader(http.StatusUnauthorized)
			}
		}
	}
	for _, tt := range []struct {
		name    string
		hostile func(*imageParts) servertest.Intercept
		want    string
	}{
		{"another manifest", answer("manifest", func(w http.ResponseWriter, data []byte) { _, _ = w.Write(append(data, ' ')) }), "digest"},
		{"another configuration", answer("config", func(w http.ResponseWriter, data []byte) { _, _ = w.Write(changed(data)) }), "digest"},
		{"an empty manifest", answer("manifest", func(http.ResponseWriter, []byte) {}), "manifest"},
		{"an empty layer", answer("layer", func(http.ResponseWriter, []byte) {}), "truncated: 0 of"},
		{"a range that was not requested", answer("layer", func(w http.ResponseWriter, data []byte) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-999/%d", len(data)))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(data[:1000])
		}), "layer"},
		{"a layer that never ends", answer("layer", func(w http.ResponseWriter, _ []byte) {
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}), "longer than"},
		{"a login at a metadata service", realm(`Bearer realm="http://169.254.169.254/token"`), "169.254.169.254"},
		{"a login in a private network", realm(`Bearer realm="https://10.0.0.1/token"`), "10.0.0.1"},
		{"a login in a file", realm(`Bearer realm="file:///etc/passwd"`), "realm"},
		{"a login nowhere", realm(`Bearer service="x"`), "realm"},
		{"a challenge that is none", realm(`Bearer realm="`), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := ocitest.New(t)
			p, ref := pushExample(t, srv)
			srv.Intercept(tt.hostile(p))
			c := newClient(t)
			_, err := pull(t.Context(), c, oci.ByDigest(ref, p.digest))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "image ") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if c.Store.Has(p.layerID) {
				t.Error("the layer is in the store")
			}
			if asked := srv.Requests(); len(asked) > 20 {
				t.Errorf("%d requests: %q", len(asked), asked)
			}
		})
	}
}

// sendTruncated sends the first 1000 bytes of any large blob as a complete response.
func sendTruncated(w http.ResponseWriter, r *http.Request, next http.Handler) {
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

func sendScrambled(w http.ResponseWriter, r *http.Request, next http.Handler) {
	data := blobOf(r, next)
	if len(data) >= 10_000 {
		data[5000] ^= 1
	}
	_, _ = w.Write(data)
}

func sendLengthened(w http.ResponseWriter, r *http.Request, next http.Handler) {
	data := blobOf(r, next)
	_, _ = w.Write(append(data, bytes.Repeat([]byte("x"), 1<<20)...))
}

// blobOf returns the registry's normal response to a request.
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

// dropOnce closes the connection in the middle of a large blob the given number of times. It supports
// requests for ranges of bytes.
func dropOnce(times int) servertest.Intercept {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		data := blobOf(r, next)
		if len(data) < 10_000 {
			next.ServeHTTP(w, r)
			return
		}
		from := 0
		if s, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
			first, _, _ := strings.Cut(s, "-")
			from, _ = strconv.Atoi(first)
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

func manifestText(text string) servertest.Intercept {
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

// endlessIndex responds with chains of indexes deeper than the limit.
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

// TestRestart interrupts a transfer and makes the registry unavailable for a moment.
func TestRestart(t *testing.T) {
	srv := ocitest.New(t)
	p, ref := pushExample(t, srv)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	var once sync.Once
	down := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, _ := http.NewRequestWithContext(r.Context(), r.Method, "http://"+srv.Host+r.URL.Path, nil)
		req.Header = r.Header.Clone()
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		maps.Copy(w.Header(), res.Header)
		w.WriteHeader(res.StatusCode)
		if strings.HasSuffix(r.URL.Path, p.layerID) {
			once.Do(func() {
				_, _ = io.CopyN(w, res.Body, 100_000)
				w.(http.Flusher).Flush()
				_ = listener.Close()
				close(down)
				panic(http.ErrAbortHandler)
			})
		}
		_, _ = io.Copy(w, res.Body)
	})
	front := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	t.Cleanup(func() { _ = front.Close() })
	go func() {
		_ = front.Serve(listener)
		<-down
		time.Sleep(50 * time.Millisecond)
		if again, err := net.Listen("tcp", addr); err == nil {
			_ = (&http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}).Serve(again)
		}
	}()
	c := newClient(t)
	c.Retry.Wait, c.Retry.Attempts = 40*time.Millisecond, 10
	im, err := pull(t.Context(), c, strings.Replace(ref, srv.Host, addr, 1))
	if err != nil || im.Digest() != p.Digest() {
		t.Error(err)
	}
}
