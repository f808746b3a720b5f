// Package examples_test makes the examples anew and compares them with what is
// committed, byte for byte, so that they cannot rot. With -update it writes
// them.
package examples_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/cmd/quayside/cli"
	"github.com/quayside/quayside/internal/base/filetree"
	"github.com/quayside/quayside/internal/bundle"
	"github.com/quayside/quayside/internal/oci"
)

var update = flag.Bool("update", false, "write the examples anew")

// TestQuickstart makes the catalog from its sources, then the lock from the
// declarations, then the tree from the lock.
func TestQuickstart(t *testing.T) {
	const dir = "quickstart"
	work := t.TempDir()
	if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, made := range []string{"catalog", "quayside.lock", "rendered"} {
		if err := os.RemoveAll(filepath.Join(work, made)); err != nil {
			t.Fatal(err)
		}
	}
	if err := buildCatalog(filepath.Join(work, "catalog"), os.DirFS(filepath.Join(dir, "catalog-src"))); err != nil {
		t.Fatal(err)
	}
	run(t, "-C", work, "resolve", "--offline")
	run(t, "-C", work, "render", "--offline")
	run(t, "-C", work, "verify", "--offline")
	for _, made := range []string{"catalog", "quayside.lock", "rendered"} {
		compare(t, filepath.Join(dir, made), filepath.Join(work, made))
	}
}

// buildCatalog makes an OCI layout of a catalog that embeds the bundles in
// src, one directory each.
func buildCatalog(dir string, src fs.FS) error {
	content, err := bundledir.LoadFS(src)
	if err != nil {
		return err
	}
	objects := func(pkg, name string) ([][]byte, error) {
		fsys, err := bundledir.Find(src, pkg, name)
		if err != nil {
			return nil, err
		}
		ms, err := bundle.Manifests(fsys)
		if err != nil {
			return nil, err
		}
		out := make([][]byte, len(ms))
		for i, m := range ms {
			out[i] = m.Data
		}
		return out, nil
	}
	var buf bytes.Buffer
	if err := fbc.Encode(&buf, content, objects); err != nil {
		return err
	}
	packed, err := oci.Pack(
		fstest.MapFS{"catalog.json": {Data: buf.Bytes()}},
		oci.PackOptions{
			Prefix: "configs",
			Labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
		})
	if err != nil {
		return err
	}
	return packed.WriteLayout(dir, "")
}

// run runs quayside in this process; it must succeed.
func run(t *testing.T, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := []string{"XDG_CACHE_HOME=" + t.TempDir()}
	if code := cli.Main(nil, args, nil, &stdout, &stderr, env); code != 0 {
		t.Fatalf("quayside %q: exit code %d\n%s%s", args, code, &stdout, &stderr)
	}
}

// compare compares a committed file or directory with one made anew, and
// replaces it under -update.
func compare(t *testing.T, committed, made string) {
	t.Helper()
	want, got := files(t, made), files(t, committed)
	changes := filetree.Diff(got, want)
	if len(changes) == 0 {
		return
	}
	if !*update {
		for _, c := range changes {
			t.Errorf("%s: %s %s (run make examples)", committed, c.Path, c.Kind)
		}
		return
	}
	if err := os.RemoveAll(committed); err != nil {
		t.Fatal(err)
	}
	for name, data := range want.All() {
		if err := writeFile(filepath.Join(filepath.Dir(committed), name), data); err != nil {
			t.Fatal(err)
		}
	}
}

// files reads a file or the files of a directory, by their paths from the
// directory around it.
func files(t *testing.T, path string) *filetree.Tree {
	t.Helper()
	tree := filetree.New()
	parent := os.DirFS(filepath.Dir(path))
	err := fs.WalkDir(parent, filepath.Base(path), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(parent, name)
		if err != nil {
			return err
		}
		return tree.Add(name, data)
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(fmt.Errorf("reading %s: %w", path, err))
	}
	return tree
}

func writeFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o666)
}
