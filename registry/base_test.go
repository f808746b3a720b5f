package registry_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/registrytest"
)

// file is an entry of a layer; a name that ends with a slash is a directory's.
type file struct {
	name string
	kind byte // default: a regular file, or a directory
	mode int64
	text string // or where a link leads
}

func git() file { return file{name: "usr/bin/git", mode: 0o755, text: "git"} }

// layerOf returns an uncompressed layer.
func layerOf(t *testing.T, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Typeflag: f.kind, Mode: f.mode, Size: int64(len(f.text))}
		if f.kind == tar.TypeSymlink || f.kind == tar.TypeLink {
			h.Linkname, h.Size, f.text = f.text, 0, ""
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, f.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// baseImage is one platform's image of a base, as it is written into a layout.
type baseImage struct {
	platform string
	layers   [][]byte                 // uncompressed; stored with gzip
	change   func(config, m *jsonMap) // what is wrong with it; may be nil
}

type jsonMap = map[string]any

// base writes a layout with an index of images, and returns it as a source. Layers
// are of Docker's kind.
func base(t *testing.T, images ...baseImage) string {
	t.Helper()
	blobs := map[string][]byte{}
	add := func(data []byte) string {
		digest := store.DigestOf(data)
		blobs[digest] = data
		return digest
	}
	var entries []any
	for _, im := range images {
		system, arch, _ := strings.Cut(im.platform, "/")
		var layers, diffs []any
		for _, l := range im.layers {
			packed := []byte(gzipped(t, l))
			layers = append(layers, jsonMap{"mediaType": types.DockerLayer, "digest": add(packed), "size": len(packed)})
			diffs = append(diffs, store.DigestOf(l))
		}
		config := jsonMap{
			"os": system, "architecture": arch, "rootfs": jsonMap{"type": "layers", "diff_ids": diffs},
			"config": jsonMap{"User": "root", "user": "0", "Cmd": []string{"sh"}, "Env": []string{"PATH=/usr/bin:/bin", "HOME=/root", "LANG=C.UTF-8"}, "Labels": jsonMap{"of": "base"}},
		}
		m := jsonMap{"schemaVersion": 2, "mediaType": types.DockerManifestSchema2, "layers": layers}
		if im.change != nil {
			im.change(&config, &m)
		}
		text := marshal(t, config)
		m["config"] = jsonMap{"mediaType": types.DockerConfigJSON, "digest": add(text), "size": len(text)}
		manifest := marshal(t, m)
		entries = append(entries, jsonMap{"mediaType": types.DockerManifestSchema2, "digest": add(manifest), "size": len(manifest), "platform": jsonMap{"os": system, "architecture": arch}})
	}
	index := marshal(t, jsonMap{"schemaVersion": 2, "mediaType": types.OCIImageIndex, "manifests": entries})
	dir := filepath.Join(t.TempDir(), "base")
	add(index)
	for digest, data := range blobs {
		write(t, filepath.Join(dir, "blobs", "sha256", strings.TrimPrefix(digest, "sha256:")), string(data), 0o644)
	}
	write(t, filepath.Join(dir, "oci-layout"), `{"imageLayoutVersion":"1.0.0"}`, 0o644)
	write(t, filepath.Join(dir, "index.json"), string(marshal(t, jsonMap{"schemaVersion": 2, "manifests": []any{descriptorOf(types.OCIImageIndex, index)}})), 0o644)
	return "oci:" + dir
}

func descriptorOf(kind types.MediaType, data []byte) jsonMap {
	return jsonMap{"mediaType": kind, "digest": store.DigestOf(data), "size": len(data)}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// random returns a layer of random content.
func random(t *testing.T, seed uint64) []byte {
	text := make([]byte, 3000)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(text)
	return layerOf(t, file{name: "lib/", mode: 0o755, kind: tar.TypeDir}, file{name: "lib/noise", mode: 0o644, text: string(text)})
}

func gitBase(t *testing.T) string {
	return base(t,
		baseImage{platform: "linux/amd64", layers: [][]byte{random(t, 1), layerOf(t, git())}},
		baseImage{platform: "linux/arm64", layers: [][]byte{random(t, 1), random(t, 2), layerOf(t, git())}},
	)
}

func onBase(t *testing.T, source string) (*registry.PackedIndex, error) {
	t.Helper()
	return new(registry.Client).PackProgramOn(t.Context(), registry.Base{Source: source, Needs: []string{"usr/bin/git"}},
		map[string][]byte{"linux/amd64": []byte("\x7fELF amd64"), "linux/arm64": []byte("\x7fELF arm64")},
		registry.ProgramOptions{Path: "usr/local/bin/tool", User: "65532:65532", Dir: "/work", Env: []string{"HOME=/tmp"}, Labels: map[string]string{"title": "tool"}})
}

func writtenOn(t *testing.T, source string) (dir string, p *registry.PackedIndex) {
	t.Helper()
	p, err := onBase(t, source)
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "layout")
	if err := p.WriteLayout(t.Context(), dir, ""); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, p
}

// TestPackProgramOn reads what was put on a base with the library that others read it
// with: the base's layers are the same, byte for byte, and one more lies on them.
func TestPackProgramOn(t *testing.T) {
	source := gitBase(t)
	dir, p := writtenOn(t, source)
	was, now := index(t, strings.TrimPrefix(source, "oci:")), index(t, dir)
	if err := validate.Index(now); err != nil {
		t.Error(err)
	}
	if digest, err := now.Digest(); err != nil || digest.String() != p.Digest() {
		t.Errorf("the digest is %s, %v, want %s", digest, err, p.Digest())
	}
	baseDigest, err := was.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for i, platform := range []string{"linux/amd64", "linux/arm64"} {
		below, image := imageOf(t, was, i, platform), imageOf(t, now, i, platform)
		old, err := below.Layers()
		if err != nil {
			t.Fatal(err)
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != len(old)+1 {
			t.Fatalf("%s: %d layers, %v, want %d", platform, len(layers), err, len(old)+1)
		}
		for i, l := range old {
			a, errA := l.Digest()
			b, errB := layers[i].Digest()
			kind, _ := layers[i].MediaType()
			if a != b || errA != nil || errB != nil || kind != types.OCILayer {
				t.Errorf("%s: layer %d is %s, %s, want %s", platform, i, b, kind, a)
			}
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		want := v1.Config{
			User: "65532:65532", Entrypoint: []string{"/usr/local/bin/tool"}, WorkingDir: "/work",
			Env:    []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/tmp"},
			Labels: map[string]string{"title": "tool", "org.opencontainers.image.base.digest": baseDigest.String()},
		}
		if d := cmp.Diff(want, config.Config); d != "" || len(config.History) != len(layers) || config.Platform().String() != platform {
			t.Errorf("%s: %d entries of history, configuration of %s (-want +got):\n%s", platform, len(config.History), config.Platform(), d)
		}
		top, err := layers[len(old)].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for tr := tar.NewReader(top); ; {
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
		if want := []string{"work/ ", "usr/local/bin/tool \x7fELF " + strings.TrimPrefix(platform, "linux/")}; !slices.Equal(got, want) {
			t.Errorf("the layer has %q, want %q", got, want)
		}
	}
}

func index(t *testing.T, dir string) v1.ImageIndex {
	t.Helper()
	layout, err := ocilayout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	root, err := layout.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	m, err := root.IndexManifest()
	if err != nil || len(m.Manifests) != 1 {
		t.Fatalf("%v, %v", m, err)
	}
	out, err := root.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func imageOf(t *testing.T, index v1.ImageIndex, i int, platform string) v1.Image {
	t.Helper()
	m, err := index.IndexManifest()
	if err != nil || m.Manifests[i].Platform.String() != platform {
		t.Fatalf("%v, %v, want %s", m, err, platform)
	}
	out, err := index.Image(m.Manifests[i].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPackProgramOnIsReproducible packs twice, and on a base of a registry, which gives
// the same but for the base's name.
func TestPackProgramOnIsReproducible(t *testing.T) {
	source := gitBase(t)
	one, p := writtenOn(t, source)
	two, _ := writtenOn(t, source)
	if d := filetree.Diff(read(t, one), read(t, two)); len(d) > 0 {
		t.Errorf("packed twice, it differs: %v", d)
	}
	server := registrytest.New(t)
	blobs, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &registry.Client{Store: blobs}
	done, err := c.Upload(t.Context(), source, server.Host+"/git:v1")
	if err != nil {
		t.Fatal(err)
	}
	options := registry.ProgramOptions{Path: "tool"}
	programs := map[string][]byte{"linux/arm64": []byte("program")}
	_, err = c.PackProgramOn(t.Context(), registry.Base{Source: server.Host + "/git:v1"}, programs, options)
	if err == nil || !strings.Contains(err.Error(), "today it is "+server.Host+"/git@"+done.Digest) {
		t.Errorf("by a tag: %v", err)
	}
	if _, err = c.PackProgramOn(t.Context(), registry.Base{Source: server.Host + "/nothing:v1"}, programs, options); err == nil || !strings.Contains(err.Error(), "name it by its digest") {
		t.Errorf("by a tag that there is not: %v", err)
	}
	pulled, err := c.PackProgramOn(t.Context(), registry.Base{Source: server.Host + "/git:v1@" + done.Digest, Needs: []string{"usr/bin/git"}}, programs, options)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "layout")
	if err := pulled.WriteLayout(t.Context(), dir, ""); err != nil {
		t.Fatal(err)
	}
	config, err := imageOf(t, index(t, dir), 0, "linux/arm64").ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"org.opencontainers.image.base.name": server.Host + "/git", "org.opencontainers.image.base.digest": done.Digest}; !maps.Equal(config.Config.Labels, want) {
		t.Errorf("labels %v, want %v", config.Config.Labels, want)
	}
	if p.Digest() == pulled.Digest() {
		t.Error("another image has the same digest")
	}
}

func read(t *testing.T, dir string) *filetree.Tree {
	t.Helper()
	tree, err := filetree.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestBaseHolds looks for git as a runtime would find it: through what upper layers
// take away.
func TestBaseHolds(t *testing.T) {
	dir := func(name string) file { return file{name: name, kind: tar.TypeDir, mode: 0o755} }
	plain := func(name string) file { return file{name: name, mode: 0o644} }
	for name, c := range map[string]struct {
		layers [][]file
		has    bool
	}{
		"there":                   {[][]file{{git()}}, true},
		"with a dot":              {[][]file{{{name: "./usr/bin/git", mode: 0o755}}}, true},
		"with a slash":            {[][]file{{{name: "/usr/bin/git", mode: 0o755}}}, true},
		"a link":                  {[][]file{{{name: "usr/bin/git", kind: tar.TypeSymlink, text: "../libexec/git"}}}, true},
		"below others":            {[][]file{{git()}, {dir("usr/"), dir("usr/bin/"), plain("usr/bin/other")}}, true},
		"no layers":               {nil, false},
		"elsewhere":               {[][]file{{{name: "opt/usr/bin/git", mode: 0o755}}}, false},
		"may not be run":          {[][]file{{plain("usr/bin/git")}}, false},
		"a directory":             {[][]file{{dir("usr/bin/git/")}}, false},
		"removed":                 {[][]file{{git()}, {plain("usr/bin/.wh.git")}}, false},
		"its directory removed":   {[][]file{{git()}, {plain("usr/.wh.bin")}}, false},
		"made anew":               {[][]file{{git()}, {plain("usr/bin/.wh..wh..opq")}}, false},
		"everything made anew":    {[][]file{{git()}, {plain(".wh..wh..opq")}}, false},
		"replaced by a directory": {[][]file{{git()}, {dir("usr/bin/git/")}}, false},
		"a file for a directory":  {[][]file{{git()}, {plain("usr/bin")}}, false},
		"put back":                {[][]file{{git()}, {plain("usr/bin/.wh.git")}, {git()}}, true},
		"anew, and there":         {[][]file{{git()}, {git(), plain("usr/bin/.wh..wh..opq")}}, true},
		"another is removed":      {[][]file{{git()}, {plain("usr/bin/.wh.gi"), plain("usr/bi/.wh..wh..opq")}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			im := baseImage{platform: "linux/amd64"}
			for _, l := range c.layers {
				im.layers = append(im.layers, layerOf(t, l...))
			}
			arm := im
			arm.platform = "linux/arm64"
			_, err := onBase(t, base(t, im, arm))
			if c.has != (err == nil) || err != nil && !strings.Contains(err.Error(), "/usr/bin/git is missing: the program needs it") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestHostileBases refuses what does not hold together.
func TestHostileBases(t *testing.T) {
	sound := func(platform string) baseImage {
		return baseImage{platform: platform, layers: [][]byte{layerOf(t, git())}}
	}
	with := func(change func(config, m *jsonMap)) []baseImage {
		arm := sound("linux/arm64")
		arm.change = change
		return []baseImage{sound("linux/amd64"), arm}
	}
	layer := func(m *jsonMap) jsonMap { return (*m)["layers"].([]any)[0].(jsonMap) }
	for name, c := range map[string]struct {
		images []baseImage
		want   string
	}{
		"a platform is missing": {[]baseImage{sound("linux/amd64")}, `no image for platform "linux/arm64" (have linux/amd64)`},
		"another platform":      {with(func(config, _ *jsonMap) { (*config)["architecture"] = "amd64" }), "for linux/arm64: the image is for linux/amd64"},
		"too few in its configuration": {with(func(config, _ *jsonMap) {
			(*config)["rootfs"] = jsonMap{"diff_ids": []string{}}
		}), "has 1 layers, its configuration 0"},
		"too many in its configuration": {with(func(config, _ *jsonMap) {
			(*config)["rootfs"] = jsonMap{"diff_ids": []string{zeroDigest, zeroDigest}}
		}), "has 1 layers, its configuration 2"},
		"too many layers": {with(func(config, m *jsonMap) {
			(*m)["layers"] = slices.Repeat((*m)["layers"].([]any), 300)
		}), "300 layers: at most 256"},
		"content of another digest": {with(func(config, _ *jsonMap) {
			(*config)["rootfs"] = jsonMap{"diff_ids": []string{zeroDigest}}
		}), "the content is not what the digest names"},
		"a layer of another size": {with(func(_, m *jsonMap) { layer(m)["size"] = 7 }), "7"},
		"a layer from elsewhere": {with(func(_, m *jsonMap) {
			layer(m)["mediaType"] = types.DockerForeignLayer
		}), "which cannot be copied"},
		"a layer that is not there": {with(func(_, m *jsonMap) { layer(m)["digest"] = zeroDigest }), "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := onBase(t, base(t, c.images...)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	t.Run("a layer that was changed", func(t *testing.T) {
		source := base(t, with(nil)...)
		spoil(t, filepath.Join(strings.TrimPrefix(source, "oci:"), "blobs", "sha256"), store.DigestOf([]byte(gzipped(t, layerOf(t, git())))))
		if _, err := onBase(t, source); err == nil || !strings.Contains(err.Error(), "layer sha256:") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a layer that changes after it was read", func(t *testing.T) {
		source := base(t, with(nil)...)
		p, err := onBase(t, source)
		if err != nil {
			t.Fatal(err)
		}
		spoil(t, filepath.Join(strings.TrimPrefix(source, "oci:"), "blobs", "sha256"), store.DigestOf([]byte(gzipped(t, layerOf(t, git())))))
		dir := filepath.Join(t.TempDir(), "layout")
		if err := p.WriteLayout(t.Context(), dir, ""); err == nil {
			t.Error("it is taken")
		}
		if _, err := os.Stat(filepath.Join(dir, "index.json")); err == nil {
			t.Error("the layout names it")
		}
	})
}

// spoil changes the last byte of a blob.
func spoil(t *testing.T, dir, digest string) {
	t.Helper()
	name := filepath.Join(dir, strings.TrimPrefix(digest, "sha256:"))
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
