package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

func layoutOf(t *testing.T, images map[string]*imageParts) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	for tag, p := range images {
		if err := p.WriteLayout(dir, tag); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tarOf writes the files in dir and additional files to a tar file, and returns its path.
func tarOf(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	if dir != "" {
		if err := tw.AddFS(os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	addFiles(t, tw, files)
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, filepath.Join(t.TempDir(), "image.tar"), buf.String(), 0o644)
}

// addFiles writes files to a tar stream. Content that begins with an arrow is the target of a
// symbolic link.
func addFiles(t testing.TB, tw *tar.Writer, files map[string]string) {
	t.Helper()
	for name, data := range files {
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(data)), Mode: 0o644}
		if to, ok := strings.CutPrefix(data, "-> "); ok {
			h.Typeflag, h.Linkname, h.Size, data = tar.TypeSymlink, to, 0, ""
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
}

// writeTar writes files as a tar stream.
func writeTar(t testing.TB, w io.Writer, files map[string]string) {
	t.Helper()
	tw := tar.NewWriter(w)
	addFiles(t, tw, files)
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
}

func gzipped(t *testing.T, data []byte) string {
	t.Helper()
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	_, _ = zw.Write(data)
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func TestLayout(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	one := pack(t, map[string]string{"a": "one"}, oci.PackOptions{})
	two := pack(t, map[string]string{"a": "two"}, oci.PackOptions{})
	dir := layoutOf(t, map[string]*imageParts{"v1": one, "v2": two})
	archive := tarOf(t, dir, nil)
	packed, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	compressed := write(t, filepath.Join(t.TempDir(), "image.tar.gz"), gzipped(t, packed), 0o644)
	c := &oci.Client{Lookup: filetree.LookupIn(filepath.Dir(dir))}
	for _, base := range []string{"oci:layout", "oci:" + dir, "oci-archive:" + archive, "oci-archive:" + compressed} {
		for ref, want := range map[string]*imageParts{":v1": one, ":v2": two, "@" + two.Digest(): two} {
			im, err := c.Open(t.Context(), base+ref)
			if err != nil {
				t.Errorf("%s%s: %v", base, ref, err)
				continue
			}
			got, err := contents(t.Context(), im)
			if err != nil || im.Digest() != want.Digest() || len(got) != 1 {
				t.Errorf("%s%s: %s, %v, %v", base, ref, im.Digest(), got, err)
			}
			if err := im.Close(); err != nil {
				t.Error(err)
			}
		}
		for ref, want := range map[string]string{
			"": "the layout contains 2 images: choose one of v1, v2", ":v3": `image "v3" not found (available: v1, v2)`, "@" + zeroDigest: zeroDigest,
		} {
			if _, err := c.Open(t.Context(), base+ref); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s%s: got %v, want %s", base, ref, err, want)
			}
		}
	}
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), "quayside-archive-*"))
	if len(left) > 0 {
		t.Errorf("leftover files: %q", left)
	}
}

// TestFiles opens layouts and archives in a file system, and rejects paths outside of it.
func TestFiles(t *testing.T) {
	p := pack(t, map[string]string{"a": "one"}, oci.PackOptions{})
	dir := layoutOf(t, map[string]*imageParts{"v1": p, "quay.io/org/a:v1": p})
	files := fstest.MapFS{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		files["in/layout/"+name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(tarOf(t, dir, nil))
	if err != nil {
		t.Fatal(err)
	}
	files["plain.tar"] = &fstest.MapFile{Data: archive}
	files["packed.tar.gz"] = &fstest.MapFile{Data: []byte(gzipped(t, archive))}
	t.Setenv("TMPDIR", t.TempDir())
	c := &oci.Client{Lookup: lookupIn(files), Vendored: "in/layout"}
	if got := c.VendoredDigest("quay.io/org/a:v1"); got != p.Digest() {
		t.Errorf("vendored: %q", got)
	}
	for _, ref := range []string{"oci:in/layout:v1", "oci:./in/layout@" + p.Digest(), "oci-archive:plain.tar:v1", "oci-archive:packed.tar.gz:v1"} {
		im, err := c.Open(t.Context(), ref)
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		if got, err := contents(t.Context(), im); err != nil || im.Digest() != p.Digest() || len(got) != 1 {
			t.Errorf("%s: %s, %v, %v", ref, im.Digest(), got, err)
		}
		if err := im.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, ref := range []string{"oci:" + dir, "oci:../layout", "oci:none", "oci-archive:none.tar", "oci-archive:in", "oci-archive:" + filepath.Join(dir, "index.json")} {
		if im, err := c.Open(t.Context(), ref); err == nil {
			t.Errorf("%s was opened: %s", ref, im.Digest())
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("leftover files: %q", left)
	}
}

func TestLayoutFaults(t *testing.T) {
	p := example(t)
	blob := func(d string) string { return filepath.Join("blobs", "sha256", d[7:]) }
	edit := func(path string, f func([]byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			data, err := os.ReadFile(filepath.Join(dir, path))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, path), string(f(data)), 0o644)
		}
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	outside := write(t, filepath.Join(t.TempDir(), "outside"), string(p.layer), 0o644)
	tests := []struct {
		name  string
		spoil func(t *testing.T, dir string)
		want  string
	}{
		{"layer changed", edit(blob(p.layerID), flip), "layer " + p.layerID + ": digest mismatch: the content is sha256:"},
		{"layer truncated", edit(blob(p.layerID), func(b []byte) []byte { return b[:99] }), "layer " + p.layerID + ": truncated: 99 of"},
		{"layer longer", edit(blob(p.layerID), func(b []byte) []byte { return append(b, 'x') }), "layer " + p.layerID + ": longer than"},
		{"config changed", edit(blob(p.configDigest), flip), "digest mismatch: the content is sha256:"},
		{"manifest changed", edit(blob(p.digest), flip), "manifest " + p.digest + ": digest mismatch: the content is sha256:"},
		{"layer missing", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, blob(p.layerID))); err != nil {
				t.Fatal(err)
			}
		}, "layer " + p.layerID + ": "},
		{"layer is a link out of the layout", func(t *testing.T, dir string) {
			path := filepath.Join(dir, blob(p.layerID))
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, path); err != nil {
				t.Fatal(err)
			}
		}, "points outside the directory"},
		{"no index", func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "index.json")) }, "not an OCI layout"},
		{"index is not JSON", edit("index.json", func([]byte) []byte { return []byte("[") }), "index.json: "},
		{"empty index", edit("index.json", func([]byte) []byte { return []byte(`{"schemaVersion":2,"manifests":[]}`) }), "the layout contains no image"},
		{"digest that is a path", edit("index.json", func(b []byte) []byte {
			return bytes.Replace(b, []byte(p.digest), []byte("sha256:../../../../../../etc/passwd"), 1)
		}), "index.json: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := layoutOf(t, map[string]*imageParts{"": p})
			tt.spoil(t, dir)
			_, err := pull(t.Context(), new(oci.Client), "oci:"+dir)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), fmt.Sprintf("image %q: ", "oci:"+dir)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := new(oci.Client).Open(t.Context(), "oci:"+filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a missing directory: no error")
	}
}

// dockerSave returns the files of a docker archive with one image.
func dockerSave(layers map[string]string, order ...string) (files map[string]string, id string) {
	files = map[string]string{}
	var diffs []string
	for _, name := range order {
		files[name] = layers[name]
		diffs = append(diffs, store.DigestOf([]byte(layers[name])))
	}
	config, _ := json.Marshal(map[string]any{"config": map[string]any{"Labels": map[string]string{"a": "b"}}, "rootfs": map[string]any{"diff_ids": diffs}})
	id = store.DigestOf(config)
	files[id[7:]+".json"] = string(config)
	manifest, _ := json.Marshal([]map[string]any{{"Config": id[7:] + ".json", "RepoTags": []string{"quay.io/x/y:v1"}, "Layers": order}})
	files["manifest.json"] = string(manifest)
	return files, id
}

func plainLayer(t *testing.T, name, data string) string {
	t.Helper()
	b, err := os.ReadFile(tarOf(t, "", map[string]string{name: data}))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDockerArchive(t *testing.T) {
	files, id := dockerSave(map[string]string{"1/layer.tar": plainLayer(t, "a", "1"), "2/layer.tar": plainLayer(t, "b", "2")}, "1/layer.tar", "2/layer.tar")
	want := map[string]string{"a": "1", "b": "2"}
	check := func(name string, files map[string]string, ref string) {
		t.Helper()
		im, err := new(oci.Client).Open(t.Context(), "docker-archive:"+tarOf(t, "", files)+ref)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		defer func() { _ = im.Close() }()
		got, err := contents(t.Context(), im)
		if diff := cmp.Diff(want, got); diff != "" || err != nil || im.Digest() != id || im.Labels()["a"] != "b" {
			t.Errorf("%s: %v %s %s", name, err, im.Digest(), diff)
		}
	}
	check("the only image", files, "")
	check("by tag", files, ":quay.io/x/y:v1")
	files["2/layer.tar"] = gzipped(t, []byte(files["2/layer.tar"]))
	check("a compressed layer", files, "")
	files["shared.tar"], files["2/layer.tar"] = files["2/layer.tar"], "-> ../shared.tar"
	check("a shared layer", files, "")

	fault := func(want, ref string, spoil func(map[string]string)) {
		t.Helper()
		files, _ := dockerSave(map[string]string{"1/layer.tar": plainLayer(t, "a", "1")}, "1/layer.tar")
		spoil(files)
		if _, err := pull(t.Context(), new(oci.Client), "docker-archive:"+tarOf(t, "", files)+ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	fault(`image "v9" not found (available: quay.io/x/y:v1)`, ":v9", func(map[string]string) {})
	fault("digest mismatch: the content is sha256:", "", func(f map[string]string) { f["1/layer.tar"] = plainLayer(t, "a", "2") })
	fault("not a docker archive", "", func(f map[string]string) { delete(f, "manifest.json") })
	fault(`the archive does not contain file "1/layer.tar"`, "", func(f map[string]string) { f["1/layer.tar"] = "-> 1/layer.tar" })
	fault("digest mismatch: the content is sha256:", "", func(f map[string]string) {
		for name := range f {
			if strings.HasSuffix(name, ".json") && name != "manifest.json" {
				f[name] += " "
			}
		}
	})
}

// TestPlatforms checks which image of an index is chosen, in a registry and in a layout.
func TestPlatforms(t *testing.T) {
	srv := ocitest.New(t)
	arm := pack(t, map[string]string{"a": "arm"}, oci.PackOptions{Platform: "linux/arm64"})
	amd := pack(t, map[string]string{"a": "amd"}, oci.PackOptions{})
	win := pack(t, map[string]string{"a": "win"}, oci.PackOptions{Platform: "windows/amd64"})
	entry := func(p *imageParts, platform string) map[string]any {
		d := descriptorOf("application/vnd.oci.image.manifest.v1+json", p.manifest)
		if system, arch, ok := strings.Cut(platform, "/"); ok {
			d["platform"] = map[string]string{"os": system, "architecture": arch}
		}
		return d
	}
	index := func(entries ...any) string {
		b, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": entries})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	tests := []struct {
		name, platform, index string
		want                  *imageParts
		err                   string
	}{
		{"default", "", index(entry(arm, "linux/arm64"), entry(amd, "linux/amd64")), amd, ""},
		{"asked for", "linux/arm64", index(entry(arm, "linux/arm64"), entry(amd, "linux/amd64")), arm, ""},
		{"asked for in vain", "linux/s390x", index(entry(arm, "linux/arm64")), nil, `no image for platform "linux/s390x" (available: linux/arm64)`},
		{"first for linux", "", index(entry(win, "windows/amd64"), entry(arm, "linux/arm64")), arm, ""},
		{"first at all", "", index(entry(win, "windows/amd64")), win, ""},
		{"attestations passed over", "", index(entry(win, "unknown/unknown"), entry(arm, "linux/arm64")), arm, ""},
		{"without a platform", "", index(entry(arm, "")), arm, ""},
		{"empty", "", index(), nil, "contains no image"},
	}
	for _, p := range []*imageParts{arm, amd, win} {
		if err := newClient(t).Push(t.Context(), srv.Host+"/xy@"+p.digest, p.Packed); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			digest := store.DigestOf([]byte(tt.index))
			dir := layoutOf(t, map[string]*imageParts{"arm": arm, "amd": amd, "win": win})
			write(t, filepath.Join(dir, "blobs", "sha256", digest[7:]), tt.index, 0o644)
			srv.Intercept(nil)
			putManifest(t, srv.Host, "xy", digest, tt.index)
			for _, ref := range []string{"oci:" + dir + "@" + digest, srv.Host + "/xy@" + digest} {
				c := newClient(t)
				c.Platform = tt.platform
				im, err := pull(t.Context(), c, ref)
				if tt.err != "" {
					if err == nil || !strings.Contains(err.Error(), tt.err) {
						t.Errorf("%s: got %v, want %q", ref, err, tt.err)
					}
					continue
				}
				if err != nil || im.Digest() != digest || im.ManifestDigest() != tt.want.Digest() {
					t.Errorf("%s: %v", ref, err)
				}
			}
		})
	}
}

func TestPackIsReproducible(t *testing.T) {
	files := map[string]string{"z": "1", "a/b": "2", "a/c/d": strings.Repeat("3", 100_000)}
	one := pack(t, files, oci.PackOptions{Prefix: "configs/x", Labels: map[string]string{"b": "2", "a": "1"}})
	dir := t.TempDir()
	for name, data := range files {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), data, 0o755)
	}
	two, err := oci.Pack(os.DirFS(dir), oci.PackOptions{Prefix: "configs/x", Labels: map[string]string{"a": "1", "b": "2"}})
	if err != nil || one.Digest() != two.Digest() {
		t.Errorf("%s and %s, %v", one.Digest(), two.Digest(), err)
	}
	a := layoutOf(t, map[string]*imageParts{"v1": one})
	for tag, p := range map[string]*imageParts{"v1": pack(t, nil, oci.PackOptions{}), "v2": one} {
		if err := p.WriteLayout(a, tag); err != nil {
			t.Fatal(err)
		}
	}
	b := filepath.Join(t.TempDir(), "b")
	for _, step := range []struct {
		tag string
		p   *imageParts
	}{{"v2", one}, {"v1", one}, {"v1", pack(t, nil, oci.PackOptions{})}} {
		if err := step.p.WriteLayout(b, step.tag); err != nil {
			t.Fatal(err)
		}
	}
	if changes := filetree.Diff(tree(t, a), tree(t, b)); len(changes) != 0 {
		t.Errorf("the order in which images are added shows: %v", changes)
	}
}

func tree(t *testing.T, dir string) *filetree.Tree {
	t.Helper()
	got, err := filetree.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestPackRefuses(t *testing.T) {
	links := fstest.MapFS{"link": &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("/etc/passwd")}}
	if _, err := oci.Pack(links, oci.PackOptions{}); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a symbolic link: %v", err)
	}
	if _, err := oci.Pack(fstest.MapFS{}, oci.PackOptions{Prefix: "../x"}); err == nil {
		t.Error("a prefix that points outside the image: no error")
	}
}

func TestPushRefuses(t *testing.T) {
	p := example(t)
	for ref, want := range map[string]string{
		"oci:dir":                      "images can only be pushed to a registry",
		"127.0.0.1:1/xy@" + zeroDigest: "image to push has digest " + p.Digest(),
		"127.0.0.1:1/X Y":              "image reference",
	} {
		if err := newClient(t).Push(t.Context(), ref, p.Packed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", ref, err, want)
		}
	}
}

// putManifest sends a manifest to a registry unchanged.
func putManifest(t *testing.T, host, repo, ref, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+host+"/v2/"+repo+"/manifests/"+ref, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/vnd.oci.image.index.v1+json")
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("%v %v", res, err)
	}
	res.Body.Close()
}

// FuzzArchive opens any bytes as archives of both kinds.
func FuzzArchive(f *testing.F) {
	seed := func(files map[string]string) {
		var buf bytes.Buffer
		writeTar(f, &buf, files)
		f.Add(buf.Bytes())
	}
	docker, _ := dockerSave(map[string]string{"1/layer.tar": ""}, "1/layer.tar")
	seed(docker)
	seed(map[string]string{"index.json": `{"schemaVersion":2,"manifests":[]}`, "blobs/sha256/x": "-> ../../../etc/passwd"})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "image.tar")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c := &oci.Client{Limits: oci.Limits{ImageBytes: 1 << 20}}
		for _, kind := range []string{"oci-archive:", "docker-archive:"} {
			im, err := c.Open(t.Context(), kind+path)
			if err != nil {
				continue
			}
			if !imageref.IsDigest(im.Digest()) {
				t.Errorf("digest %q", im.Digest())
			}
			if err := im.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// lookupIn returns a Lookup that opens files.
func lookupIn(files fs.FS) oci.Lookup {
	return func(name string) (fs.FS, string, error) {
		name = path.Clean(name)
		info, err := fs.Stat(files, name)
		if err != nil {
			return nil, "", err
		}
		base := ""
		if !info.IsDir() {
			name, base = path.Dir(name), path.Base(name)
		}
		dir, err := fs.Sub(files, name)
		return dir, base, err
	}
}
