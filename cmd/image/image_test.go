package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gobuild"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/registrytest"
)

// layout writes an image with one program as a layout.
func layout(t *testing.T, path string) string {
	t.Helper()
	programs := map[string][]byte{}
	for _, p := range platforms() {
		programs[p] = []byte("program for " + p)
	}
	image, err := registry.PackProgram(programs, registry.ProgramOptions{Path: path, Env: []string{"PATH=/usr/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "base")
	if err := image.WriteLayout(t.Context(), dir, ""); err != nil {
		t.Fatal(err)
	}
	return dir
}

// newOptions returns options that write into a directory of the test.
func newOptions(t *testing.T) options {
	t.Helper()
	return options{layout: filepath.Join(t.TempDir(), "dist", "image"), stdout: io.Discard, stderr: io.Discard, getenv: func(string) string { return "" }}
}

// written writes the image for CI with programs that were not compiled.
func written(t *testing.T, o options) (string, error) {
	t.Helper()
	r, err := o.recipe([]string{"ci"})
	if err != nil {
		t.Fatal(err)
	}
	r.image.Labels = labels(gobuild.Commit{Version: "1.2.3", Revision: "c0ffee"})
	client, err := o.client(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return o.write(t.Context(), client, r, map[string][]byte{"linux/amd64": []byte("amd64"), "linux/arm64": []byte("arm64")})
}

// TestImageForCI writes the image for CI twice, in the place of an older one, and pushes it.
func TestImageForCI(t *testing.T) {
	o := newOptions(t)
	o.base = "oci:" + layout(t, "usr/bin/git")
	first, err := written(t, o)
	if err != nil {
		t.Fatal(err)
	}
	before := tree(t, o.layout)
	put(t, filepath.Join(o.layout, "left over"))
	second, err := written(t, o)
	if err != nil || first != second {
		t.Fatalf("%s, then %s, %v", first, second, err)
	}
	if d := filetree.Diff(before, tree(t, o.layout)); len(d) > 0 {
		t.Errorf("written twice, it differs: %v", d)
	}
	if entries, err := os.ReadDir(filepath.Dir(o.layout)); err != nil || len(entries) != 1 {
		t.Errorf("something is left: %v, %v", entries, err)
	}
	image, err := (&registry.Client{Platform: "linux/arm64"}).Open(t.Context(), "oci:"+o.layout)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	base, err := new(registry.Client).Inspect(t.Context(), o.base)
	if err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{
		"org.opencontainers.image.version": "1.2.3", "org.opencontainers.image.revision": "c0ffee", "org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.source": "https://github.com/quayside/quayside", "org.opencontainers.image.base.digest": base.Digest,
	} {
		if got := image.Labels()[label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
	var out bytes.Buffer
	o.stdout, o.push = &out, registrytest.New(t).Host+"/ci/quayside:v1"
	client, err := o.client(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := o.upload(t.Context(), client); err != nil || out.String() != strings.TrimSuffix(o.push, ":v1")+"@"+first+"\n" {
		t.Errorf("pushed as %q, %v", out.String(), err)
	}
}

// TestRefused wants nothing to be written, and what is there to stay, where the image
// cannot be built.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ base, want string }{
		"without git": {"oci:" + layout(t, "usr/bin/other"), "/usr/bin/git is missing"},
		"by a tag":    {"127.0.0.1:1/git:latest", "name it by its digest"},
		"not there":   {"oci:" + t.TempDir() + "/no", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOptions(t)
			o.base = "oci:" + layout(t, "usr/bin/git")
			if _, err := written(t, o); err != nil {
				t.Fatal(err)
			}
			before := tree(t, o.layout)
			o.base = c.base
			if _, err := written(t, o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if d := filetree.Diff(before, tree(t, o.layout)); len(d) > 0 {
				t.Errorf("the image that was there differs: %v", d)
			}
		})
	}
	o := newOptions(t)
	o.base = "oci:" + layout(t, "usr/bin/git")
	put(t, filepath.Join(o.layout, "thesis"))
	if err := o.run(context.Background(), []string{"ci"}); err == nil || !strings.Contains(err.Error(), "not an OCI layout") {
		t.Errorf("in somebody's directory: %v", err)
	}
	for args, want := range map[string]string{"": "which image?", "ci reporter": "which image?", "cj": "there is no image", "reporter": "leave out -base"} {
		if err := o.run(context.Background(), strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", args, err, want)
		}
	}
	o.base = ""
	if err := o.run(context.Background(), []string{"ci"}); err == nil || !strings.Contains(err.Error(), "an image with /usr/bin/git") {
		t.Errorf("without a base: %v", err)
	}
}

func tree(t *testing.T, dir string) *filetree.Tree {
	t.Helper()
	out, err := filetree.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func put(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
}
