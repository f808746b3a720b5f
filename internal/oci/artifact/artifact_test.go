package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

func testMeta() Meta {
	return Meta{Source: "https://git.example.com/fleet", Revision: "main@sha1:" + strings.Repeat("ab", 20), Created: time.Date(2026, 11, 22, 20, 0, 0, 0, time.FixedZone("", 3600))}
}

func newTestClient(t *testing.T) *oci.Client {
	t.Helper()
	kept, err := store.Open(t.TempDir())
	check(t, err)
	return &oci.Client{Store: kept, Retry: oci.Retry{Attempts: 1}}
}

// TestPushRoundTrip pushes random trees and reads them back. The trees must be unchanged, and equal trees
// must have equal digests.
func TestPushRoundTrip(t *testing.T) {
	server := ocitest.New(t)
	name := rapid.StringMatching(`[a-c]{1,2}(/[a-c]{1,2}){0,2}\.(yaml|json)`)
	rapid.Check(t, func(r *rapid.T) {
		files := rapid.MapOfN(name, rapid.SliceOf(rapid.Byte()), 0, 6).Draw(r, "files")
		tree := filetree.New()
		for name, data := range files {
			if tree.Add(name, data) != nil {
				r.Skip("not a tree")
			}
		}
		packed, err := Pack(tree.FS(), testMeta())
		check(t, err)
		ref := "oci://" + server.Host + "/fleet:main"
		check(t, newTestClient(t).Push(t.Context(), ref, packed))
		got, err := Open(t.Context(), newTestClient(t), ref, nil)
		check(t, err)
		want := testMeta()
		want.Created = want.Created.UTC()
		if d := cmp.Diff(want, got.Meta); d != "" || got.Digest != packed.Digest() {
			r.Fatalf("digest %s, want %s; meta %s", got.Digest, packed.Digest(), d)
		}
		back := maps.Collect(got.Files.All())
		if !maps.EqualFunc(files, back, bytes.Equal) {
			r.Fatalf("got %v, want %v", back, files)
		}
		again, err := Pack(got.Files.FS(), got.Meta)
		check(t, err)
		if again.Digest() != packed.Digest() {
			r.Fatalf("packed again: got %s, want %s", again.Digest(), packed.Digest())
		}
	})
}

// TestSameDigestFromDisk checks that modes and times of files do not affect the digest.
func TestSameDigestFromDisk(t *testing.T) {
	digest := func(mode os.FileMode, at time.Time) string {
		dir := filepath.Join(t.TempDir(), "x")
		check(t, os.MkdirAll(filepath.Join(dir, "a"), 0o700|mode))
		for _, name := range []string{"a/one.yaml", "two.yaml"} {
			name = filepath.Join(dir, filepath.FromSlash(name))
			check(t, os.WriteFile(name, []byte("x: y\n"), mode))
			check(t, os.Chtimes(name, at, at))
		}
		p, err := Pack(os.DirFS(dir), testMeta())
		check(t, err)
		return p.Digest()
	}
	if a, b := digest(0o600, time.Unix(1, 0)), digest(0o755, time.Now()); a != b {
		t.Errorf("%s and %s", a, b)
	}
}

// TestForm checks the fields of the manifest that Flux and Argo CD use.
func TestForm(t *testing.T) {
	tree := filetree.New()
	check(t, tree.Add("kustomization.yaml", []byte("resources: []\n")))
	p, err := Pack(tree.FS(), testMeta())
	check(t, err)
	dir := t.TempDir()
	check(t, p.WriteLayout(dir, "v1"))
	text, err := os.ReadFile(filepath.Join(dir, "blobs", "sha256", strings.TrimPrefix(p.Digest(), "sha256:")))
	check(t, err)
	type descriptor struct {
		MediaType string `json:"mediaType"`
	}
	var got struct {
		MediaType   string            `json:"mediaType"`
		Config      descriptor        `json:"config"`
		Layers      []descriptor      `json:"layers"`
		Annotations map[string]string `json:"annotations"`
	}
	check(t, json.Unmarshal(text, &got))
	if got.MediaType != "application/vnd.oci.image.manifest.v1+json" || got.Config.MediaType != ConfigType || len(got.Layers) != 1 || got.Layers[0].MediaType != ContentType {
		t.Errorf("got %+v", got)
	}
	want := map[string]string{
		"org.opencontainers.image.source":   "https://git.example.com/fleet",
		"org.opencontainers.image.revision": "main@sha1:" + strings.Repeat("ab", 20),
		"org.opencontainers.image.created":  "2026-11-22T19:00:00Z",
	}
	if d := cmp.Diff(want, got.Annotations); d != "" {
		t.Error(d)
	}
}

func smallLimits() limits {
	return limits{layer: 1 << 16, content: 4000, file: 3000, entries: 20, path: 60, depth: 4}
}

// tarArchive returns a tar stream with these headers, each followed by as many bytes as its size.
func tarArchive(tb testing.TB, headers ...tar.Header) []byte {
	tb.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for i := range headers {
		h := headers[i]
		check(tb, tw.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			_, err := tw.Write(make([]byte, h.Size))
			check(tb, err)
		}
	}
	check(tb, tw.Close())
	return buf.Bytes()
}

func hostileArchives(tb testing.TB) map[string][]byte {
	tb.Helper()
	file := func(name string, size int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644}
	}
	many := []tar.Header{}
	for i := range 21 {
		many = append(many, file(fmt.Sprintf("%d.yaml", i), 0))
	}
	return map[string][]byte{
		"not a valid path":                         tarArchive(tb, file("../up.yaml", 1)),
		`"/etc/passwd" is not a valid`:             tarArchive(tb, file("/etc/passwd", 1)),
		"\"a\\\\b.yaml\" is not a valid":           tarArchive(tb, file(`a\b.yaml`, 1)),
		"already in the tree":                      tarArchive(tb, file("a.yaml", 1), file("./a.yaml", 2)),
		"differ only in case":                      tarArchive(tb, file("a.yaml", 1), file("A.yaml", 1)),
		"is both a file and a directory":           tarArchive(tb, file("a", 1), file("a/b.yaml", 1)),
		"\"a/\": both a file":                      tarArchive(tb, file("a", 1), tar.Header{Typeflag: tar.TypeDir, Name: "a/"}),
		"\"a\": both a file":                       tarArchive(tb, tar.Header{Typeflag: tar.TypeDir, Name: "a/"}, file("a", 1)),
		"\"l\": only files and directories":        tarArchive(tb, tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc"}),
		"\"h\": only files and directories":        tarArchive(tb, tar.Header{Typeflag: tar.TypeLink, Name: "h", Linkname: "a.yaml"}),
		"\"p\": only files and directories":        tarArchive(tb, tar.Header{Typeflag: tar.TypeFifo, Name: "p"}),
		"3001 bytes exceed the limit of 3000":      tarArchive(tb, file("a.yaml", 3001)),
		"the files exceed the limit of 4000 bytes": tarArchive(tb, file("a.yaml", 3000), file("b.yaml", 1001)),
		"more than 20 entries":                     tarArchive(tb, many...),
		"path longer than 60 bytes":                tarArchive(tb, file(strings.Repeat("x", 61), 0)),
		"more than 4 directories deep":             tarArchive(tb, file("a/b/c/d/e", 0)),
		"which is not allowed in names":            tarArchive(tb, file("a\u202eb.yaml", 0)),
		"unexpected EOF":                           tarArchive(tb, file("a.yaml", 600))[:700],
		"the decompressed size exceeds the limit":  append(tarArchive(tb, file("a.yaml", 1)), make([]byte, 1<<20)...),
	}
}

func TestHostile(t *testing.T) {
	for want, data := range hostileArchives(t) {
		got, err := readTar(bytes.NewReader(data), smallLimits())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v, %v", want, got, err)
		}
	}
}

// TestOnlyTrees rejects artifacts of another type, and artifacts with content that does not
// match its digest.
func TestOnlyTrees(t *testing.T) {
	tree := filetree.New()
	check(t, tree.Add("a.yaml", []byte("x: y\n")))
	p, err := Pack(tree.FS(), Meta{})
	check(t, err)
	layout := t.TempDir()
	check(t, p.WriteLayout(layout, "v1"))
	blobs, err := filepath.Glob(filepath.Join(layout, "blobs", "sha256", "*"))
	check(t, err)
	for _, name := range blobs {
		text, err := os.ReadFile(name)
		check(t, err)
		text[len(text)-1] ^= 1
		check(t, os.WriteFile(name, text, 0o600))
		if got, err := Open(t.Context(), new(oci.Client), "oci:"+layout+":v1", nil); err == nil {
			t.Errorf("%s was changed: got %v", name, got)
		}
		text[len(text)-1] ^= 1
		check(t, os.WriteFile(name, text, 0o600))
	}
	if _, err := Open(t.Context(), new(oci.Client), "oci:"+layout+":v1", nil); err != nil {
		t.Error(err)
	}
	note, err := oci.Artifact{ConfigType: ConfigType, Config: []byte("{}"), LayerType: "application/json", Layer: []byte("{}")}.Pack()
	check(t, err)
	check(t, note.WriteLayout(layout, "note"))
	if _, err := Open(t.Context(), new(oci.Client), "oci:"+layout+":note", nil); err == nil || !strings.Contains(err.Error(), "application/json") {
		t.Errorf("of another type: %v", err)
	}
}

// FuzzRead reads any bytes as a tar stream. The resulting tree must be within the limits. Packing and
// reading it again must not change it.
func FuzzRead(f *testing.F) {
	for _, data := range hostileArchives(f) {
		f.Add(data)
	}
	f.Add(tarArchive(f, tar.Header{Typeflag: tar.TypeReg, Name: "./a/b.yaml", Size: 3}))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := readTar(bytes.NewReader(data), smallLimits())
		if err != nil {
			return
		}
		var sum int
		for name, data := range tree.All() {
			if sum += len(data); len(data) > 3000 || len(name) > 60 || strings.Contains(name, "..") && strings.Contains("/"+name+"/", "/../") {
				t.Errorf("%q of %d bytes", name, len(data))
			}
		}
		if tree.Len() > 20 || sum > 4000 {
			t.Errorf("%d files of %d bytes", tree.Len(), sum)
		}
		layer, _, err := oci.PackLayer(tree.FS())
		check(t, err)
		zr, err := gzip.NewReader(bytes.NewReader(layer))
		check(t, err)
		text, err := io.ReadAll(zr)
		check(t, err)
		again, err := readTar(bytes.NewReader(text), defaultLimits())
		check(t, err)
		if !maps.EqualFunc(maps.Collect(tree.All()), maps.Collect(again.All()), bytes.Equal) {
			t.Error("packed again it is another")
		}
	})
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
