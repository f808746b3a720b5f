package cli_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const configsLabel = "operators.operatorframework.io.index.configs.v1"

// TestHostileImages reads catalogs with a damaged or malicious layer. Each must cause an error with exit code
// 2, and no file may be written.
func TestHostileImages(t *testing.T) {
	catalogJSON := []byte(`{"schema":"olm.package","name":"p","defaultChannel":"c"}`)
	good := entry{name: "configs/catalog.json", data: catalogJSON}
	for _, c := range []struct {
		name   string
		layer  []byte
		damage func([]byte) []byte // changes the blob after its digest was computed
		want   string
	}{
		{"error/truncated", gzipLayer(t, good, entry{name: "configs/more.json", data: randomBytes()}), func(b []byte) []byte { return b[:len(b)/2] }, "layer sha256:"},
		{"error/digest", gzipLayer(t, good), flipBit, "layer sha256:"},
		{"error/not gzip", []byte("no archive at all"), nil, "layer sha256:"},
		{"error/traversal", gzipLayer(t, good, entry{name: "configs/../../escape.json", data: catalogJSON}), nil, "escape.json"},
		{"error/absolute", gzipLayer(t, good, entry{name: "/configs/../../../escape.json", data: catalogJSON}), nil, "escape.json"},
		{"error/symlink", gzipLayer(t, good, entry{name: "configs/link.json", link: "../../../../etc/passwd"}), nil, "link.json"},
		{"error/bomb", bombLayer(t, 10<<30), nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.name == "error/bomb" {
				t.Skip("unpacks gigabytes")
			}
			dir := t.TempDir()
			writeLayout(t, filepath.Join(dir, "catalog"), c.layer, c.damage)
			put(t, dir, "quayside.yaml", workspaceWith("oci:catalog"))
			put(t, dir, "subscriptions/p.yaml", subscriptionTo("p"))
			before := snapshot(t, dir)
			list := quayside(t, dir, "catalog", "list", "--offline")
			if list.code != 2 {
				t.Errorf("catalog list: exit code %d\n%s", list.code, list.stdout)
			}
			t.Log(list.stderr)
			got := quayside(t, dir, "resolve", "--offline")
			if got.code != 2 {
				t.Errorf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
			}
			if !strings.Contains(got.stderr, c.want) || !strings.Contains(got.stderr, "oci:catalog") {
				t.Errorf("the message does not name the image and %q:\n%s", c.want, got.stderr)
			}
			if after := snapshot(t, dir); after != before {
				t.Errorf("files changed:\n%s\n%s", before, after)
			}
			t.Log(got.stderr)
		})
	}
}

func workspaceWith(source string) string {
	return fmt.Sprintf("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  catalogs:\n  - {name: test, namespace: olm, source: %q}\n", source)
}

func subscriptionTo(pkg string) string {
	return fmt.Sprintf("apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: %[1]s, namespace: %[1]s}\nspec: {package: %[1]s, catalog: olm/test}\n", pkg)
}

// entry is one entry of a layer.
type entry struct {
	name, link string
	data       []byte
}

// gzipLayer returns a gzip layer of the entries.
func gzipLayer(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.data)), Typeflag: tar.TypeReg}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		check(t, w.WriteHeader(h))
		_, err := w.Write(e.data)
		check(t, err)
	}
	check(t, w.Close())
	check(t, z.Close())
	return b.Bytes()
}

// bombLayer returns a small layer with one huge file: a gzip member for the header, then many equal
// members of zeros.
func bombLayer(t *testing.T, size int64) []byte {
	t.Helper()
	member := func(data []byte) []byte {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		check(t, err)
		_, err = z.Write(data)
		check(t, err)
		check(t, z.Close())
		return b.Bytes()
	}
	var header bytes.Buffer
	check(t, tar.NewWriter(&header).WriteHeader(&tar.Header{Name: "configs/catalog.json", Mode: 0o644, Size: size, Typeflag: tar.TypeReg}))
	const part = 64 << 20
	return append(member(header.Bytes()), bytes.Repeat(member(make([]byte, part)), int(size/part)+1)...)
}

// randomBytes returns bytes that do not compress.
func randomBytes() []byte {
	var out []byte
	sum := sha256.Sum256(nil)
	for range 4096 {
		sum = sha256.Sum256(sum[:])
		out = append(out, sum[:]...)
	}
	return out
}

func flipBit(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)/2] ^= 0xff
	return b
}

// writeLayout writes an OCI layout with one image of one layer.
func writeLayout(t *testing.T, dir string, layer []byte, damage func([]byte) []byte) {
	t.Helper()
	config := toJSON(t, map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Labels": map[string]string{configsLabel: "/configs"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}},
	})
	manifest := toJSON(t, map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": descriptor("application/vnd.oci.image.config.v1+json", config),
		"layers": []any{descriptor("application/vnd.oci.image.layer.v1.tar+gzip", layer)},
	})
	index := toJSON(t, map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
		"manifests": []any{descriptor("application/vnd.oci.image.manifest.v1+json", manifest)},
	})
	blob := func(b []byte) string { return "blobs/sha256/" + strings.TrimPrefix(digest(b), "sha256:") }
	put(t, dir, "oci-layout", `{"imageLayoutVersion":"1.0.0"}`)
	put(t, dir, "index.json", string(index))
	put(t, dir, blob(config), string(config))
	put(t, dir, blob(manifest), string(manifest))
	stored := layer
	if damage != nil {
		stored = damage(layer)
	}
	put(t, dir, blob(layer), string(stored))
}

func descriptor(mediaType string, blob []byte) map[string]any {
	return map[string]any{"mediaType": mediaType, "digest": digest(blob), "size": len(blob)}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func toJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	check(t, err)
	return data
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// snapshot lists every file below dir with a digest of its content.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	check(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			fmt.Fprintln(&b, path)
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintln(&b, path, digest(data))
		return err
	}))
	return b.String()
}
