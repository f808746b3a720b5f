package main

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/gittest"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

// writeBase writes an OCI layout with one image that contains one program. It returns the directory of the
// layout.
func writeBase(t *testing.T, path string) string {
	t.Helper()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range imagePlatforms() {
		image, err := recipe{path: path, env: []string{"PATH=/usr/bin", "HOME=/root"}}.image(p, map[string][]byte{path: []byte("program for " + p.String())}, nil)
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &p}})
	}
	dir := filepath.Join(t.TempDir(), "base")
	root, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := root.AppendIndex(index); err != nil {
		t.Fatal(err)
	}
	return dir
}

// images returns the images of a layout with one index, by platform.
func images(t *testing.T, dir string) map[string]v1.Image {
	t.Helper()
	root, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := root.IndexManifest()
	if err != nil || len(list.Manifests) != 1 {
		t.Fatal(list, err)
	}
	index, err := root.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	if list, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	out := map[string]v1.Image{}
	for _, m := range list.Manifests {
		if out[m.Platform.String()], err = index.Image(m.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// newOptions returns options that write into a temporary directory. Instead of compiling the program, they use
// a file that contains the architecture.
func newOptions(t *testing.T) options {
	t.Helper()
	return options{
		layout: filepath.Join(t.TempDir(), "dist", "image"), stdout: io.Discard, stderr: io.Discard, getenv: func(string) string { return "" },
		compile: func(_ context.Context, _ recipe, p v1.Platform, _ string) ([]byte, error) {
			return []byte(p.Architecture), nil
		},
	}
}

// writeImage writes the image for CI, and returns the output.
func writeImage(t *testing.T, o options) (string, error) {
	t.Helper()
	var out bytes.Buffer
	o.stdout = &out
	err := o.run(t.Context(), []string{"ci"})
	return strings.TrimSpace(out.String()), err
}

// TestImageForCI writes the image for CI twice to the same layout and pushes it.
func TestImageForCI(t *testing.T) {
	o := newOptions(t)
	o.base = "oci:" + writeBase(t, "usr/bin/git")
	first, err := writeImage(t, o)
	if err != nil {
		t.Fatal(err)
	}
	before := readTree(t, o.layout)
	writeFile(t, filepath.Join(o.layout, "left over"))
	second, err := writeImage(t, o)
	if err != nil || first != second {
		t.Fatalf("%s, then %s, %v", first, second, err)
	}
	if d := filetree.Diff(before, readTree(t, o.layout)); len(d) > 0 {
		t.Errorf("written twice, it differs: %v", d)
	}
	if entries, err := os.ReadDir(filepath.Dir(o.layout)); err != nil || len(entries) != 1 {
		t.Errorf("leftover files: %v, %v", entries, err)
	}
	image, err := (&oci.Client{Platform: "linux/arm64"}).Open(t.Context(), "oci:"+o.layout)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	base, err := new(oci.Client).Inspect(t.Context(), o.base)
	if err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{
		"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.source": "https://github.com/quayside/quayside",
		"org.opencontainers.image.base.digest": base.Digest,
	} {
		if got := image.Labels()[label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
	o.push = ocitest.New(t).Host + "/ci/quayside:v1"
	_, digest, _ := strings.Cut(first, "@")
	if pushed, err := writeImage(t, o); err != nil || pushed != strings.TrimSuffix(o.push, ":v1")+"@"+digest {
		t.Errorf("pushed as %q, %v", pushed, err)
	}
}

// TestGoBuild tests the labels that name the commit, and that uncommitted changes require -snapshot.
func TestGoBuild(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/program\n\ngo 1.26\n")
	write("main.go", "package main\n\nfunc main() {}\n")
	gittest.Run(t, dir, "init", "--quiet")
	gittest.Run(t, dir, "add", ".")
	gittest.Run(t, dir, "commit", "--quiet", "--message=first")
	commit := strings.TrimSpace(gittest.Run(t, dir, "rev-parse", "HEAD"))
	t.Chdir(dir)
	o := newOptions(t)
	r := recipe{source: ".", path: "usr/local/bin/program", needs: "usr/bin/git", labels: map[string]string{}}
	build := func() error {
		text, err := o.goBuild(t.Context(), r, imagePlatforms()[0], filepath.Join(t.TempDir(), "program"))
		if err == nil && !bytes.HasPrefix(text, []byte("\x7fELF")) {
			t.Error("the program is not one for Linux")
		}
		return err
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
	if r.labels["org.opencontainers.image.title"] != "program" || r.labels["org.opencontainers.image.revision"] != commit || !strings.HasSuffix(r.labels["org.opencontainers.image.version"], commit[:12]) {
		t.Errorf("labels %v, want commit %s", r.labels, commit)
	}
	write("main.go", "package main\n\nfunc main() { println() }\n")
	if err := build(); err == nil || !strings.Contains(err.Error(), "changes that are not committed") {
		t.Errorf("with changes: %v", err)
	}
	o.snapshot = true
	if err := build(); err != nil || !strings.HasSuffix(r.labels["org.opencontainers.image.version"], "+dirty") {
		t.Errorf("a snapshot: %v, %v", r.labels, err)
	}
}

// TestOnBase tests that an image has the unchanged layers of the base. From the configuration of the base, it
// must have only the environment variables.
func TestOnBase(t *testing.T) {
	o := newOptions(t)
	dir := writeBase(t, "usr/bin/git")
	o.base = "oci:" + dir
	if _, err := writeImage(t, o); err != nil {
		t.Fatal(err)
	}
	baseImages := images(t, dir)
	for platform, image := range images(t, o.layout) {
		old, err := baseImages[platform].Layers()
		if err != nil {
			t.Fatal(err)
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != len(old)+1 {
			t.Fatalf("%s: %d layers, %v", platform, len(layers), err)
		}
		for i, l := range old {
			want, wantErr := l.Digest()
			got, gotErr := layers[i].Digest()
			if want != got || wantErr != nil || gotErr != nil {
				t.Errorf("%s: layer %d is %s, want %s", platform, i, got, want)
			}
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		config.Config.Labels = nil
		want := v1.Config{
			User: "65532:65532", Entrypoint: []string{"/usr/local/bin/quayside"}, WorkingDir: "/work",
			Env: []string{"PATH=/usr/local/bin:/usr/bin", "HOME=/tmp"},
		}
		if d := cmp.Diff(want, config.Config); d != "" || config.Platform().String() != platform || len(config.History) != len(layers) {
			t.Errorf("%s: for %s, %d entries of history (-want +got):\n%s", platform, config.Platform(), len(config.History), d)
		}
		r, err := layers[len(old)].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for tr := tar.NewReader(r); ; {
			h, err := tr.Next()
			if err == io.EOF {
				break
			}
			text, _ := io.ReadAll(tr)
			if err != nil || h.Mode != 0o755 || h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 0 {
				t.Fatalf("%+v, %v", h, err)
			}
			got = append(got, h.Name+" "+string(text))
		}
		arch := strings.TrimPrefix(platform, "linux/")
		if want := []string{"work/ ", "usr/local/bin/quayside " + arch, "usr/local/bin/quayside-charts " + arch}; !slices.Equal(got, want) {
			t.Errorf("the layer has %q, want %q", got, want)
		}
	}
}

// TestBaseOfRegistry tests a base image in a registry, referenced by its digest.
func TestBaseOfRegistry(t *testing.T) {
	o := newOptions(t)
	blobs, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	host := ocitest.New(t).Host
	client := &oci.Client{Store: blobs}
	done, err := client.Upload(t.Context(), "oci:"+writeBase(t, "usr/bin/git"), host+"/git:v1")
	if err != nil {
		t.Fatal(err)
	}
	o.base = host + "/git@" + done.Digest
	if _, err := writeImage(t, o); err != nil {
		t.Fatal(err)
	}
	for platform, image := range images(t, o.layout) {
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		l := config.Config.Labels
		if l["org.opencontainers.image.base.name"] != host+"/git" || l["org.opencontainers.image.base.digest"] != done.Digest {
			t.Errorf("%s: labels %v", platform, l)
		}
	}
}

// TestSpoiledBase tests that a base is rejected if a file does not match its digest.
func TestSpoiledBase(t *testing.T) {
	dir := writeBase(t, "usr/bin/git")
	layers, err := images(t, dir)["linux/arm64"].Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "blobs", "sha256", digest.Hex)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	o := newOptions(t)
	o.base = "oci:" + dir
	if _, err := writeImage(t, o); err == nil || !strings.Contains(err.Error(), "for linux/arm64: ") {
		t.Errorf("got %v", err)
	}
}

// TestRefused tests invalid command lines and bases. The existing layout must not change.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ base, want string }{
		"without git": {"oci:" + writeBase(t, "usr/bin/other"), "the base has no /usr/bin/git"},
		"by a tag":    {"127.0.0.1:1/git:latest", "must be a registry image with a digest"},
		"not there":   {"oci:" + t.TempDir() + "/no", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOptions(t)
			o.base = "oci:" + writeBase(t, "usr/bin/git")
			if _, err := writeImage(t, o); err != nil {
				t.Fatal(err)
			}
			before := readTree(t, o.layout)
			o.base = c.base
			if _, err := writeImage(t, o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if d := filetree.Diff(before, readTree(t, o.layout)); len(d) > 0 {
				t.Errorf("the existing image changed: %v", d)
			}
		})
	}
	o := newOptions(t)
	o.base = "oci:" + writeBase(t, "usr/bin/git")
	writeFile(t, filepath.Join(o.layout, "thesis"))
	if err := o.run(context.Background(), []string{"ci"}); err == nil || !strings.Contains(err.Error(), "not an OCI layout") {
		t.Errorf("in a directory with other files: %v", err)
	}
	for args, want := range map[string]string{"": "one of reporter, ci", "ci reporter": "one of reporter, ci", "cj": "unknown image", "reporter": "omit -base"} {
		if err := o.run(context.Background(), strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", args, err, want)
		}
	}
	o.base = ""
	if err := o.run(context.Background(), []string{"ci"}); err == nil || !strings.Contains(err.Error(), "an image with /usr/bin/git") {
		t.Errorf("without a base: %v", err)
	}
}

func readTree(t *testing.T, dir string) *filetree.Tree {
	t.Helper()
	out, err := filetree.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func writeFile(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
}
