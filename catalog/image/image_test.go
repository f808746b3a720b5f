package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

// file is one tar entry. The zero Type is a regular file.
type file struct {
	Name, Data, Link string
	Type             byte
}

func dir(name string) file                { return file{Name: name, Type: tar.TypeDir} }
func symlink(name, to string) file        { return file{Name: name, Link: to, Type: tar.TypeSymlink} }
func hardlink(name, to string) file       { return file{Name: name, Link: to, Type: tar.TypeLink} }
func special(name string, kind byte) file { return file{Name: name, Type: kind} }

func tarball(t testing.TB, files ...file) []byte {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, f := range files {
		h := &tar.Header{Name: f.Name, Typeflag: f.Type, Linkname: f.Link, Size: int64(len(f.Data)), Mode: 0o644}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, f.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func zip(t testing.TB, data []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func zstandard(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

// layout writes an OCI layout of an image with the given labels and layers.
func layout(t testing.TB, labels map[string]string, layers ...[]byte) string {
	t.Helper()
	dir := t.TempDir()
	blob := func(data []byte) map[string]any {
		digest := store.DigestOf(data)
		path := filepath.Join(dir, "blobs", "sha256", digest[len("sha256:"):])
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
		return map[string]any{"digest": digest, "size": len(data)}
	}
	marshal := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var list []any
	for _, l := range layers {
		list = append(list, blob(l))
	}
	config := blob(marshal(map[string]any{"config": map[string]any{"Labels": labels}}))
	manifest := blob(marshal(map[string]any{"schemaVersion": 2, "config": config, "layers": list}))
	index := marshal(map[string]any{"schemaVersion": 2, "manifests": []any{manifest}})
	if err := os.WriteFile(filepath.Join(dir, "index.json"), index, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func catalogLabels() map[string]string { return map[string]string{LabelConfigs: "/configs"} }

// read opens a layout and returns its files.
func read(t testing.TB, dir string, opt OpenOptions) (map[string]string, error) {
	t.Helper()
	im, err := Open(t.Context(), new(oci.Client), "oci:"+dir, opt)
	if err != nil {
		return nil, err
	}
	defer closeChecked(t, im)
	fsys, err := im.FS(t.Context())
	if err != nil {
		return nil, err
	}
	return list(t, fsys), nil
}

func list(t testing.TB, fsys fs.FS) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		got[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestLayers(t *testing.T) {
	type layers = [][]file
	tests := []struct {
		name   string
		layers layers
		want   map[string]string
	}{
		{"one layer", layers{{dir("configs/"), {Name: "configs/a/catalog.json", Data: "a"}, {Name: "etc/passwd", Data: "x"}}}, map[string]string{"a/catalog.json": "a"}},
		{"other spellings of paths", layers{{{Name: "./configs/a", Data: "a"}, {Name: "/configs/b", Data: "b"}, {Name: "configs//./c", Data: "c"}}}, map[string]string{"a": "a", "b": "b", "c": "c"}},
		{"similar names", layers{{{Name: "configs/a", Data: "a"}, {Name: "configs2/b", Data: "b"}, {Name: "configs.json", Data: "c"}}}, map[string]string{"a": "a"}},
		{"an empty catalog", layers{{dir("configs")}}, map[string]string{}},
		{"upper layer wins", layers{{{Name: "configs/a", Data: "old"}}, {{Name: "configs/a", Data: "new"}}}, map[string]string{"a": "new"}},
		{"later entry wins", layers{{{Name: "configs/a", Data: "old"}, {Name: "configs/a", Data: "new"}}}, map[string]string{"a": "new"}},
		{"whiteout", layers{{{Name: "configs/a", Data: "a"}, {Name: "configs/b", Data: "b"}}, {{Name: "configs/.wh.a"}}}, map[string]string{"b": "b"}},
		{"whiteout of a directory", layers{{{Name: "configs/d/a", Data: "a"}, {Name: "configs/b", Data: "b"}}, {{Name: "configs/.wh.d"}}}, map[string]string{"b": "b"}},
		{"whiteout of the whole directory", layers{{{Name: "configs/a", Data: "a"}}, {{Name: ".wh.configs"}, {Name: "configs/b", Data: "b"}}}, map[string]string{"b": "b"}},
		{"whiteout does not affect its own layer", layers{{{Name: "configs/a", Data: "old"}}, {{Name: "configs/a", Data: "new"}, {Name: "configs/.wh.a"}}}, map[string]string{"a": "new"}},
		{"opaque", layers{{{Name: "configs/d/a", Data: "a"}, {Name: "configs/b", Data: "b"}}, {{Name: "configs/d/c", Data: "c"}, {Name: "configs/d/.wh..wh..opq"}}}, map[string]string{"b": "b", "d/c": "c"}},
		{"opaque root", layers{{{Name: "configs/a", Data: "a"}}, {{Name: ".wh..wh..opq"}, {Name: "configs/b", Data: "b"}}}, map[string]string{"b": "b"}},
		{"whiteout of nothing", layers{{{Name: "configs/a", Data: "a"}}, {{Name: "configs/.wh.zzz"}, {Name: "x/.wh..wh..opq"}, {Name: "configs/.wh..wh.plnk"}}}, map[string]string{"a": "a"}},
		{"whiteout does not affect upper layers", layers{{{Name: "configs/.wh.a"}}, {{Name: "configs/a", Data: "a"}}}, map[string]string{"a": "a"}},
		{"file over directory", layers{{{Name: "configs/d/a", Data: "a"}}, {{Name: "configs/d", Data: "file"}}}, map[string]string{"d": "file"}},
		{"directory over file", layers{{{Name: "configs/d", Data: "file"}}, {{Name: "configs/d/a", Data: "a"}}}, map[string]string{"d/a": "a"}},
		{"write through a link replaces it", layers{{symlink("configs/d", "/etc")}, {{Name: "configs/d/passwd", Data: "mine"}}}, map[string]string{"d/passwd": "mine"}},
		{"symbolic link", layers{{{Name: "configs/d/a", Data: "a"}, symlink("configs/b", "d/a"), symlink("configs/d/c", "../b"), symlink("configs/e", "/configs/d/a")}}, map[string]string{"d/a": "a", "b": "a", "d/c": "a", "e": "a"}},
		{"hard link", layers{{{Name: "configs/a", Data: "a"}}, {hardlink("configs/b", "configs/a"), {Name: "configs/a", Data: "new"}}}, map[string]string{"a": "new", "b": "a"}},
		{"devices are ignored", layers{{{Name: "configs/a", Data: "a"}, special("configs/null", tar.TypeChar), special("configs/disk", tar.TypeBlock), special("configs/pipe", tar.TypeFifo)}}, map[string]string{"a": "a"}},
		{"links outside of the directory are ignored", layers{{symlink("etc/x", "../../.."), hardlink("bin/y", "/bin/z"), {Name: "configs/a", Data: "a"}}}, map[string]string{"a": "a"}},
		{"the directory is a link", layers{{{Name: "var/lib/a", Data: "a"}, symlink("configs", "var/lib")}}, map[string]string{"a": "a"}},
		{"the directory is a link to a link", layers{{{Name: "data/x/a", Data: "a"}}, {symlink("configs", "/var/c"), symlink("var", "data"), symlink("data/c", "x")}}, map[string]string{"a": "a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var plain [][]byte
			for _, l := range tt.layers {
				plain = append(plain, tarball(t, l...))
			}
			for _, pack := range []func(testing.TB, []byte) []byte{func(_ testing.TB, b []byte) []byte { return b }, zip, zstandard} {
				var packed [][]byte
				for _, l := range plain {
					packed = append(packed, pack(t, l))
				}
				for _, memory := range []int64{0, 1} { // in memory, and in a temporary file
					got, err := read(t, layout(t, catalogLabels(), packed...), OpenOptions{Limits: Limits{Memory: memory}})
					if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
						t.Errorf("%v\n%s", err, diff)
					}
				}
			}
		})
	}
}

func TestHostileLayers(t *testing.T) {
	many := func(n int, name string) []file {
		fs := make([]file, n)
		for i := range fs {
			fs[i] = file{Name: fmt.Sprintf(name, i)}
		}
		return fs
	}
	small := Limits{Entries: 100, Files: 50, Path: 100, Depth: 5, File: 1000, Kept: 1500, Scanned: 1 << 20}
	tests := []struct {
		name   string
		layers [][]file
		want   string
	}{
		{"traversal", [][]file{{{Name: "configs/../../etc/passwd"}}}, `entry "configs/../../etc/passwd": path "configs/../../etc/passwd" points outside the image`},
		{"an unprintable name", [][]file{{{Name: "configs/a\n::error::x"}}}, "contains the character U+000A"},
		{"traversal elsewhere", [][]file{{{Name: "../x"}}}, "points outside the image"},
		{"traversal by whiteout", [][]file{{{Name: "configs/../.wh.x"}}}, "points outside the image"},
		{"symbolic link escape", [][]file{{symlink("configs/x", "../../../../etc/passwd")}}, `symbolic link "/configs/x" to "../../../../etc/passwd": it points outside of "/configs"`},
		{"absolute symbolic link escape", [][]file{{symlink("configs/x", "/etc/passwd")}}, `it points outside of "/configs"`},
		{"symbolic link to a sibling directory", [][]file{{{Name: "configs2/x"}, symlink("configs/x", "../configs2/x")}}, `it points outside of "/configs"`},
		{"symbolic link loop", [][]file{{symlink("configs/x", "y"), symlink("configs/y", "x")}}, "too many symbolic links"},
		{"symbolic link to nothing", [][]file{{symlink("configs/x", "y")}}, "its target is missing"},
		{"symbolic link to a directory", [][]file{{dir("configs/d"), symlink("configs/x", "d")}}, "points to a directory"},
		{"the directory is a link to itself", [][]file{{symlink("configs", "configs")}}, "the symbolic link points to itself"},
		{"the directory is a loop", [][]file{{symlink("configs", "a"), symlink("a", "configs")}}, "too many symbolic links"},
		{"the directory is a link out of the image", [][]file{{symlink("configs", "../../etc")}}, "points outside the image"},
		{"hard link escape", [][]file{{{Name: "etc/passwd"}, hardlink("configs/x", "etc/passwd")}}, `entry "configs/x": hard link to "etc/passwd", which is outside of /configs`},
		{"hard link traversal", [][]file{{hardlink("configs/x", "../../etc/passwd")}}, "points outside the image"},
		{"hard link to nothing", [][]file{{hardlink("configs/x", "configs/y")}}, "which is not a file"},
		{"hard link to a link that escapes", [][]file{{symlink("configs/y", "/etc/passwd"), hardlink("configs/x", "configs/y")}}, "points outside"},
		{"too many entries", [][]file{many(60, "a%d"), many(60, "b%d")}, "more than 100 entries"},
		{"too many files", [][]file{many(60, "configs/%d")}, "more than 50 files"},
		{"too many directories", [][]file{{{Name: "configs/a/b/c/d/e/f"}}}, "more than 5 directories deep"},
		{"a long path", [][]file{{{Name: "configs/" + strings.Repeat("x", 100)}}}, "path longer than 100 bytes"},
		{"a long link", [][]file{{symlink("configs/x", strings.Repeat("y", 101))}}, "path longer than 100 bytes"},
		{"a large file", [][]file{{{Name: "configs/x", Data: strings.Repeat("x", 1001)}}}, "1001 bytes exceed the limit of 1000"},
		{"many large files", [][]file{{{Name: "configs/x", Data: strings.Repeat("x", 1000)}, {Name: "configs/x", Data: strings.Repeat("x", 1000)}}}, "the files exceed the limit of 1500 bytes"},
		{"too much outside of the directory", [][]file{{{Name: "x", Data: strings.Repeat("x", 1<<19)}}, {{Name: "x", Data: strings.Repeat("x", 1<<19)}}}, "too large"},
		{"no such directory", [][]file{{{Name: "etc/x"}}}, `no directory "/configs"`},
		{"a file instead of the directory", [][]file{{{Name: "configs"}}}, `no directory "/configs"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var layers [][]byte
			for _, l := range tt.layers {
				layers = append(layers, zip(t, tarball(t, l...)))
			}
			t.Setenv("TMPDIR", t.TempDir()) // other tests use the default directory
			d := layout(t, catalogLabels(), layers...)
			lim := small
			lim.Memory = 1
			got, err := read(t, d, OpenOptions{Limits: lim})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, %v, want %q", got, err, tt.want)
			}
			if !strings.HasPrefix(err.Error(), fmt.Sprintf("image %q: ", "oci:"+d)) {
				t.Errorf("the error does not name the image: %v", err)
			}
			if left := listTempFiles(t); len(left) > 0 {
				t.Errorf("temporary files not removed: %q", left)
			}
		})
	}
}

func listTempFiles(t *testing.T) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "quayside-files-*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// TestZipBomb reads a small layer that expands to 10 GB.
func TestZipBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("unpacks gigabytes")
	}
	header := func(name string) []byte {
		var buf bytes.Buffer
		if err := tar.NewWriter(&buf).WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 10 << 30, Format: tar.FormatGNU}); err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	// A gzip stream may consist of many streams: repeat 1 MiB of zeros.
	zeros := zip(t, make([]byte, 1<<20))
	for name, tt := range map[string]struct{ entry, want string }{
		"in the directory": {"configs/bomb", "10737418240 bytes exceed the limit of 1073741824"},
		"outside":          {"bomb", "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			layer := zip(t, header(tt.entry))
			layer = append(layer, bytes.Repeat(zeros, 10<<10)...)
			_, err := read(t, layout(t, catalogLabels(), layer), OpenOptions{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "layer "+store.DigestOf(layer)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestBrokenLayers(t *testing.T) {
	good := zip(t, tarball(t, file{Name: "configs/a", Data: strings.Repeat("a", 5000)}))
	for name, layer := range map[string][]byte{
		"not a tar file":      []byte(strings.Repeat("no tar file ", 100)),
		"half a gzip stream":  good[:len(good)/2],
		"half a tar file":     zip(t, tarball(t, file{Name: "configs/a", Data: strings.Repeat("a", 5000)})[:2000]),
		"broken gzip":         append(slices.Clone(good[:len(good)-8]), 0, 0, 0, 0, 0, 0, 0, 0),
		"broken zstd":         {0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3},
		"gzip header only":    good[:4],
		"zstd, a huge window": {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x01, 0x00, 0x00},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, layout(t, catalogLabels(), layer), OpenOptions{})
			if err == nil || !strings.Contains(err.Error(), "layer "+store.DigestOf(layer)+": ") {
				t.Errorf("got %v, want an error that names the layer", err)
			}
		})
	}
}

func TestFileSystem(t *testing.T) {
	d := layout(t, catalogLabels(), tarball(t, file{Name: "configs/a/b", Data: "b"}, file{Name: "configs/a/c/d", Data: strings.Repeat("d", 3000)}, file{Name: "configs/e"}))
	for _, memory := range []int64{1 << 30, 1, 2000} {
		im, err := Open(t.Context(), new(oci.Client), "oci:"+d, OpenOptions{Limits: Limits{Memory: memory}})
		if err != nil {
			t.Fatal(err)
		}
		fsys, err := im.FS(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := fstest.TestFS(fsys, "a/b", "a/c/d", "e"); err != nil {
			t.Error(err)
		}
		f, err := fsys.Open("a/c/d")
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := f.(interface {
			io.ReaderAt
			io.Seeker
		}); !ok {
			t.Errorf("%T does not support ReadAt", f)
		}
		if again, err := im.FS(t.Context()); err != nil || len(list(t, again)) != 3 {
			t.Errorf("the second call: %v", err)
		}
		closeChecked(t, im)
	}
}

func TestSpool(t *testing.T) {
	for _, memory := range []int64{1, 3 << 20, 1 << 30} {
		s := newSpool(memory, tempFile)
		want := map[int64]string{}
		for i, n := range []int{0, 10, 5 << 20, 1, 3<<20 + 7, 100} {
			data := strings.Repeat(string(rune('a'+i)), n)
			off, err := s.append(strings.NewReader(data), int64(n))
			if err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				want[off] = data
			}
		}
		if err := s.flush(); err != nil {
			t.Fatal(err)
		}
		for off, data := range want {
			got, err := io.ReadAll(io.NewSectionReader(s, off, int64(len(data))))
			if err != nil || string(got) != data {
				t.Errorf("memory %d, at %d: %d bytes, %v", memory, off, len(got), err)
			}
		}
		if _, err := s.append(strings.NewReader("short"), 10); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a short read: %v", err)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
	broken := newSpool(1, func() (spoolFile, error) { return nil, errors.New("disk full") })
	if _, err := broken.append(strings.NewReader("ab"), 2); err == nil {
		t.Error("no error, although no temporary file can be created")
	}
}

func TestBundle(t *testing.T) {
	files := tarball(t, file{Name: "manifests/csv.yaml", Data: "1"}, file{Name: "metadata/annotations.yaml", Data: "2"}, file{Name: "tests/x", Data: "3"})
	moved := tarball(t, file{Name: "a/b/csv.yaml", Data: "1"}, file{Name: "c/annotations.yaml", Data: "2"})
	want := map[string]string{"manifests/csv.yaml": "1", "metadata/annotations.yaml": "2"}
	for name, tt := range map[string]struct {
		labels map[string]string
		layer  []byte
	}{
		"usual":             {map[string]string{labelManifests: "manifests/", labelMetadata: "metadata/"}, files},
		"no labels":         {nil, files},
		"other directories": {map[string]string{labelManifests: "/a/b/", labelMetadata: "/c"}, moved},
	} {
		d := layout(t, tt.labels, tt.layer)
		got, err := read(t, d, OpenOptions{})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
		im, err := Open(t.Context(), new(oci.Client), "oci:"+d, OpenOptions{})
		if err != nil || im.Kind() != Bundle {
			t.Fatalf("%s: %v, %s", name, err, im.Kind())
		}
		fsys, err := im.FS(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := fstest.TestFS(fsys, "manifests/csv.yaml"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		closeChecked(t, im)
	}
	_, err := read(t, layout(t, nil, tarball(t, file{Name: "etc/x"})), OpenOptions{})
	if err == nil || !strings.Contains(err.Error(), "neither a catalog nor a bundle") {
		t.Errorf("got %v", err)
	}
	_, err = read(t, layout(t, map[string]string{labelManifests: "manifests/"}, tarball(t, file{Name: "etc/x"})), OpenOptions{})
	if err == nil || !strings.Contains(err.Error(), `no directory "/manifests"`) {
		t.Errorf("got %v", err)
	}
}

func TestDatabase(t *testing.T) {
	d := layout(t, map[string]string{labelDatabase: "/database/index.db"}, tarball(t, file{Name: "database/index.db", Data: "SQLite"}, file{Name: "bin/x"}))
	_, err := read(t, d, OpenOptions{})
	var db *DatabaseError
	if !errors.As(err, &db) || db.Path != "/database/index.db" || db.Image != "oci:"+d {
		t.Errorf("got %v", err)
	}
	im, err := Open(t.Context(), new(oci.Client), "oci:"+d, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeChecked(t, im)
	fsys, name, err := im.Database(t.Context())
	if err != nil || im.Kind() != Database {
		t.Fatal(err)
	}
	if got, err := fs.ReadFile(fsys, name); err != nil || string(got) != "SQLite" {
		t.Errorf("got %q, %v", got, err)
	}
}

func closeChecked(t testing.TB, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestBadLabels(t *testing.T) {
	for label, value := range map[string]string{LabelConfigs: "../../etc", labelManifests: "/../x", labelMetadata: "a\x00b"} {
		_, err := read(t, layout(t, map[string]string{label: value}, tarball(t, file{Name: "manifests/x"})), OpenOptions{})
		if err == nil || !strings.Contains(err.Error(), label) {
			t.Errorf("%s: got %v", label, err)
		}
	}
}

// TestRegistry reads a catalog from a registry, damages the stored layer, and reads the catalog again.
func TestRegistry(t *testing.T) {
	srv := ocitest.New(t)
	files := map[string]string{"etcd/catalog.json": `{"schema":"olm.package"}`, "x.yaml": "a: b"}
	fsys := fstest.MapFS{}
	for name, data := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(data)}
	}
	packed, err := oci.Pack(fsys, oci.PackOptions{Prefix: "configs", Labels: catalogLabels()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	c := &oci.Client{Store: s}
	ref := srv.Host + "/org/catalog:v1"
	if err := c.Push(t.Context(), ref, packed); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		im, err := Open(t.Context(), c, ref, OpenOptions{Limits: Limits{Memory: 1}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := im.FS(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(files, list(t, got)); diff != "" || string(im.Digest()) != packed.Digest() || im.Kind() != Catalog {
			t.Errorf("%s %s", im.Digest(), diff)
		}
		closeChecked(t, im)
		damage(t, s)
	}
	left, err := os.ReadDir(filepath.Join(s.Dir(), "tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files not removed: %v, %v", left, err)
	}
	c.Offline = true
	im, err := Open(t.Context(), c, srv.Host+"/org/catalog@"+packed.Digest(), OpenOptions{})
	if err == nil {
		_, err = im.FS(t.Context())
	}
	var offline *oci.OfflineError
	if !errors.As(err, &offline) {
		t.Errorf("offline with a damaged store: %v", err)
	}
}

// damage flips a bit of every blob.
func damage(t *testing.T, s *store.Store) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.Dir(), "blobs", "sha256", "*"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)*2/3] ^= 1
		if err := os.WriteFile(p, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzLayer applies any bytes as a tar layer. This must end within the limits, and all resulting
// paths must be inside the root.
func FuzzLayer(f *testing.F) {
	f.Add(tarball(f, file{Name: "configs/a", Data: "a"}, symlink("configs/b", "a"), hardlink("configs/c", "configs/a"), file{Name: "configs/.wh.a"}))
	f.Add(tarball(f, dir("configs"), symlink("configs/x", "../../etc"), file{Name: "configs/x/y"}))
	f.Add(tarball(f, file{Name: "configs/.wh..wh..opq"}, special("configs/n", tar.TypeChar), hardlink("configs/d/f", "configs/d/e")))
	f.Add([]byte("no tar"))
	lower := tarball(f, file{Name: "configs/a", Data: "lower"}, file{Name: "configs/d/e"})
	f.Fuzz(func(t *testing.T, layer []byte) {
		lim := Limits{Kept: 1 << 16, File: 1 << 15, Entries: 100, Files: 50}.withDefaults()
		x := &extraction{limit: lim, wanted: []string{"configs"}, tree: newTree(newSpool(1<<20, tempFile))}
		for i, data := range [][]byte{lower, layer} {
			x.layer, x.cleared = i, map[string]bool{}
			if err := x.apply(tar.NewReader(&limitedReader{ctx: t.Context(), r: bytes.NewReader(data), left: 1 << 20})); err != nil {
				return
			}
		}
		if n := nodeSize(x.tree.root) - 1; n != x.tree.count || n > 50*lim.Depth {
			t.Errorf("%d nodes, counted %d", n, x.tree.count)
		}
		if x.tree.spool.size > 1<<16 {
			t.Errorf("%d bytes are stored", x.tree.spool.size)
		}
		if x.tree.resolveLinks(x.wanted) != nil {
			return
		}
		for name := range list(t, x.tree.files(map[string]string{".": "."})) {
			if !filepath.IsLocal(name) {
				t.Errorf("name %q", name)
			}
		}
	})
}
