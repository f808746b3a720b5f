package filetree

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func tree(t testing.TB, files map[string]string) *Tree {
	t.Helper()
	out := New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := out.Add(name, []byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	got, err := Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range got.All() {
		if !isIndex(name) {
			out[name] = string(data)
		}
	}
	return out
}

func putFile(t testing.TB, dir, name, data string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAddRefuses(t *testing.T) {
	cases := map[string][]string{
		"error/duplicate":          {"a/b", "a/b"},
		"error/case of a file":     {"a/b", "a/B"},
		"error/case of a folder":   {"a/b", "A/c"},
		"error/file is a folder":   {"a", "a/b"},
		"error/folder is a file":   {"a/b", "a"},
		"error/parent":             {"a", "../b"},
		"error/absolute":           {"a", "/b"},
		"error/root":               {"a", "."},
		"error/empty":              {"a", ""},
		"error/backslash":          {"a", `b\c`},
		"error/newline":            {"a", "b\nc"},
		"error/not clean":          {"a", "b/./c"},
		"error/trailing separator": {"a", "b/"},
	}
	for name, add := range cases {
		t.Run(name, func(t *testing.T) {
			tr := New()
			if err := tr.Add(add[0], nil); err != nil {
				t.Fatal(err)
			}
			if err := tr.Add(add[1], nil); err == nil {
				t.Errorf("Add(%q) after %q succeeded", add[1], add[0])
			}
		})
	}
}

func TestFS(t *testing.T) {
	tr := tree(t, map[string]string{"a/b/c.yaml": "1", "a/d.yaml": "22", "e": ""})
	if err := fstest.TestFS(tr.FS(), "a/b/c.yaml", "a/d.yaml", "e"); err != nil {
		t.Error(err)
	}
}

func TestWriteKeepsUserFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, tree(t, map[string]string{"a/x": "1", "a/y": "2", "c/gone": "g", "d/only": "3"})); err != nil {
		t.Fatal(err)
	}
	putFile(t, dir, "a/mine", "m")
	putFile(t, dir, "new/deep/mine", "m")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, tree(t, map[string]string{"a/x": "1", "a/z": "4"})); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a/x": "1", "a/z": "4", "a/mine": "m", "new/deep/mine": "m"}
	if d := cmp.Diff(want, files(t, dir)); d != "" {
		t.Error(d)
	}
	if target, err := os.Readlink(filepath.Join(dir, "link")); err != nil || target != "/etc/passwd" {
		t.Errorf("link: got %q, %v", target, err)
	}
	if fi, err := os.Stat(filepath.Join(dir, "empty")); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("empty: got %v, %v", fi, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "d")); err == nil {
		t.Error("the directory of a pruned file still exists")
	}
}

func TestWriteSkipsEqualFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	want := tree(t, map[string]string{"a/x": "1", "s": "1"})
	if err := Write(dir, want); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(filepath.Join(dir, "a", "x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, want); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(filepath.Join(dir, "a", "x"))
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("an equal tree was written again")
	}
}

func TestWriteErrors(t *testing.T) {
	cases := map[string]struct {
		prepare func(dir string)
		want    map[string]string
		names   string
	}{
		"error/the user's file in the way":        {func(d string) { putFile(t, d, "b/f", "mine") }, map[string]string{"b/f": "1"}, "b/f"},
		"error/the user's folder in the way":      {func(d string) { putFile(t, d, "b/f/g", "mine") }, map[string]string{"b/f": "1"}, "b/f"},
		"error/the user's file is a folder of us": {func(d string) { putFile(t, d, "b", "mine") }, map[string]string{"b/f": "1"}, "b"},
		"error/the user's link in the way":        {func(d string) { _ = os.Symlink("/", filepath.Join(d, "b")) }, map[string]string{"b/f": "1"}, "b"},
		"error/read-only folder":                  {func(d string) { _ = os.Chmod(filepath.Join(d, "a"), 0o555) }, map[string]string{"a/x": "2"}, "out/a"},
		"error/read-only root":                    {func(d string) { _ = os.Chmod(d, 0o555) }, map[string]string{"a/x": "1", "y": "2"}, "out"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			if err := Write(dir, tree(t, map[string]string{"a/x": "1"})); err != nil {
				t.Fatal(err)
			}
			c.prepare(dir)
			before := files(t, dir)
			err := Write(dir, tree(t, c.want))
			for _, name := range []string{".", "a"} {
				_ = os.Chmod(filepath.Join(dir, name), 0o755)
			}
			if err == nil || !strings.Contains(err.Error(), filepath.FromSlash(c.names)) {
				t.Errorf("got %v, want an error that names %s", err, c.names)
			}
			if d := cmp.Diff(before, files(t, dir)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, tree(t, map[string]string{"same": "1", "differs": "1", "extra": "1"})); err != nil {
		t.Fatal(err)
	}
	putFile(t, dir, "mine", "m")
	have, err := Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	got := Diff(have, tree(t, map[string]string{"same": "1", "differs": "2", "missing": "1"}))
	want := []FileChange{{"differs", Modified}, {"extra", Extra}, {"missing", Missing}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := Diff(have, tree(t, map[string]string{"same": "1", "differs": "1", "extra": "1"})); len(got) != 0 {
		t.Errorf("an equal tree: got %v", got)
	}
}

func TestReadSkipsLinks(t *testing.T) {
	got, err := Read(fstest.MapFS{"a": {Data: []byte("1")}, "l": {Mode: fs.ModeSymlink, Data: []byte("a")}})
	if err != nil || got.Len() != 1 {
		t.Errorf("got %d files, %v", got.Len(), err)
	}
}

// TestReadLike checks that ReadLike returns the same files as Read, and shares the content of
// equal files.
func TestReadLike(t *testing.T) {
	fsys := fstest.MapFS{"same": {Data: []byte("a")}, "other": {Data: []byte("b")}, "new": {Data: []byte("c")}, "empty": {}}
	like := tree(t, map[string]string{"same": "a", "other": "x", "gone": "d", "empty": ""})
	got, err := ReadLike(fsys, like)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Read(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want.files, got.files); d != "" {
		t.Errorf("-as it is +as it was read:\n%s", d)
	}
	if &got.files["same"][0] != &like.files["same"][0] {
		t.Error("equal content is not shared")
	}
}
