package registry_test

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/registrytest"
)

func packedProgram(t *testing.T, arm string) *registry.PackedIndex {
	t.Helper()
	p, err := registry.PackProgram(map[string][]byte{"linux/amd64": []byte("\x7fELF amd64"), "linux/arm64": []byte(arm)}, registry.ProgramOptions{
		Path: "reporter", User: "65532:65532", Labels: map[string]string{"title": "reporter"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPackProgram reads the layout with the library that others read it with.
func TestPackProgram(t *testing.T) {
	p := packedProgram(t, "\x7fELF arm64")
	dir := filepath.Join(t.TempDir(), "layout")
	if err := p.WriteLayout(t.Context(), dir, ""); err != nil {
		t.Fatal(err)
	}
	path, err := ocilayout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	root, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := v1.NewHash(p.Digest())
	if err != nil {
		t.Fatal(err)
	}
	index, err := root.ImageIndex(digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Platform().String() != m.Platform.String() {
			t.Errorf("the configuration is of %s, the index says %s", config.Platform(), m.Platform)
		}
		want := v1.Config{User: "65532:65532", Entrypoint: []string{"/reporter"}, WorkingDir: "/", Labels: map[string]string{"title": "reporter"}}
		if d := cmp.Diff(want, config.Config); d != "" {
			t.Errorf("configuration (-want +got):\n%s", d)
		}
	}
	if d := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); d != "" {
		t.Errorf("platforms (-want +got):\n%s", d)
	}
}

func TestPackProgramHoldsTheProgramAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	if err := packedProgram(t, "\x7fELF arm64").WriteLayout(t.Context(), dir, ""); err != nil {
		t.Fatal(err)
	}
	client := &registry.Client{Platform: "linux/arm64"}
	image, err := client.Open(t.Context(), "oci:"+dir)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	layer, err := image.Layers()[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer layer.Close()
	tr := tar.NewReader(layer)
	h, err := tr.Next()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(tr)
	if err != nil {
		t.Fatal(err)
	}
	if h.Name != "reporter" || h.Mode != 0o755 || h.Uid != 0 || h.ModTime.Unix() != 0 || string(data) != "\x7fELF arm64" {
		t.Errorf("got %s, mode %o, owner %d, time %s, content %q", h.Name, h.Mode, h.Uid, h.ModTime, data)
	}
	if h, err := tr.Next(); !errors.Is(err, io.EOF) || len(image.Layers()) != 1 {
		t.Errorf("there is more in it: %v, %v, %d layers", h, err, len(image.Layers()))
	}
}

func TestPackProgramRefuses(t *testing.T) {
	for _, name := range []string{"", ".", "../up", "a//b", "/abs"} {
		if _, err := registry.PackProgram(map[string][]byte{"linux/amd64": nil}, registry.ProgramOptions{Path: name}); err == nil {
			t.Errorf("path %q was taken", name)
		}
	}
	for _, programs := range []map[string][]byte{nil, {"linux": nil}} {
		if _, err := registry.PackProgram(programs, registry.ProgramOptions{Path: "reporter"}); err == nil {
			t.Errorf("%v were taken", programs)
		}
	}
}

// TestPackProgramUploads pushes every platform.
func TestPackProgramUploads(t *testing.T) {
	p := packedProgram(t, "\x7fELF arm64")
	dir := filepath.Join(t.TempDir(), "layout")
	if err := p.WriteLayout(t.Context(), dir, ""); err != nil {
		t.Fatal(err)
	}
	blobs, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := registrytest.New(t)
	to := server.Host + "/reporter:v1"
	client := &registry.Client{Store: blobs}
	done, err := client.Upload(t.Context(), "oci:"+dir, to)
	if err != nil || done.Digest != p.Digest() {
		t.Fatalf("got %+v, %v; want digest %s", done, err, p.Digest())
	}
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		image, err := (&registry.Client{Store: blobs, Platform: platform}).Open(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		image.Close()
	}
}

func TestPackProgramIsReproducible(t *testing.T) {
	write := func(arm string) *filetree.Tree {
		dir := t.TempDir()
		if err := packedProgram(t, arm).WriteLayout(t.Context(), dir, ""); err != nil {
			t.Fatal(err)
		}
		tree, err := filetree.Read(os.DirFS(dir))
		if err != nil {
			t.Fatal(err)
		}
		return tree
	}
	if d := filetree.Diff(write("same"), write("same")); len(d) > 0 {
		t.Errorf("the same program gives other bytes: %v", d)
	}
	if d := filetree.Diff(write("same"), write("other")); len(d) == 0 {
		t.Error("another program gives the same bytes")
	}
}
