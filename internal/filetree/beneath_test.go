package filetree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"testing"
)

// TestBeneathIsRoot reads files with and without beneath and compares the results. The files are regular files,
// links inside and outside of the root, loops of links, and missing files.
func TestBeneathIsRoot(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("a/b/c.yaml", "c: 1\n")
	write("a/empty", "")
	write("a/large", string(make([]byte, 100_000)))
	write(".git/HEAD", "ref")
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{
		"in": "a/b", "a/up": "../a/b/c.yaml", "a/out": "../../x", "absolute": filepath.Join(dir, "a"), "outside": outside,
		"dangling": "nothing", "loop": "loop", "two": "one", "one": "two", "git": ".git", "a/through": "../in/c.yaml", "escape": "a/../../" + filepath.Base(dir) + "/a",
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	fast := dirFS(OpenRootDir(dir))
	slow := fast
	root := *fast.root
	root.fast = func() *beneath { return nil }
	slow.root = &root
	names := []string{".", "a", "a/b", "a/b/c.yaml", "a/b/c.yaml/d", "a/empty", "a/large", ".git/HEAD", "missing", "missing/x", "in/c.yaml", "outside/secret", "absolute/b/c.yaml", "git/HEAD", "escape/b/c.yaml", "../x", "/a", ""}
	for name := range links {
		names = append(names, name)
	}
	for _, name := range names {
		for how, read := range map[string]func(dirFS) string{
			"ReadFile": func(d dirFS) string {
				data, err := d.ReadFile(name)
				return fmt.Sprintf("%q %v", data, err)
			},
			"ReadDir": func(d dirFS) string {
				list, err := d.ReadDir(name)
				text := fmt.Sprint(err)
				for _, e := range list {
					info, err := e.Info()
					text += fmt.Sprint("\n", e.Name(), e.Type(), describe(info), err)
				}
				return text
			},
			"Stat": func(d dirFS) string {
				info, err := d.Stat(name)
				return fmt.Sprint(describe(info), err)
			},
			"Lstat": func(d dirFS) string {
				info, err := d.Lstat(name)
				return fmt.Sprint(describe(info), err)
			},
		} {
			if got, want := read(fast), read(slow); got != want {
				t.Errorf("%s(%q): %.300s\nwithout beneath: %.300s", how, name, got, want)
			}
		}
	}
}

func describe(info fs.FileInfo) string {
	if info == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %d %s %v", info.Name(), path.Base(info.Name()), info.Size(), info.Mode(), info.ModTime())
}

// BenchmarkReadTree reads a tree of files on disk.
func BenchmarkReadTree(b *testing.B) {
	dir := b.TempDir()
	for i := range 1000 {
		name := filepath.Join(dir, fmt.Sprintf("apps/a%d/base/x.yaml", i))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, make([]byte, 2000), 0o600)); err != nil {
			b.Fatal(err)
		}
	}
	files := OpenRootDir(dir).FS()
	for b.Loop() {
		err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				_, err = fs.ReadFile(files, name)
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
