package registry

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/quayside/quayside/internal/store"
)

// echoOrigin answers every question with the same bytes.
type echoOrigin []byte

func (m echoOrigin) manifest(context.Context, string) ([]byte, error) { return m, nil }
func (m echoOrigin) blob(context.Context, string, int64) (*store.Verifier, error) {
	return store.NewUnverified(io.NopCloser(bytes.NewReader(m))), nil
}

// FuzzManifest loads any bytes as manifest, index and configuration: it must
// end, and what it accepts keeps to the limits.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(manyLayers(3)))
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"digest":"` + zeroDigest + `","size":1,"platform":{"os":"linux","architecture":"amd64"}}]}`))
	f.Add([]byte(`{"schemaVersion":2,"config":{"digest":"` + zeroDigest + `","size":2,"Labels":{"a":"b"}},"layers":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		im := &Image{name: "fuzz"}
		c := &Client{Limits: Limits{Layers: 5, LayerBytes: 1000, ImageBytes: 2000}}
		if c.load(t.Context(), im, echoOrigin(data), store.DigestOf(data), data) != nil {
			return
		}
		var sum int64
		for _, l := range im.layers {
			if !store.ValidDigest(l.Digest) || l.Size < 0 || l.Size > 1000 {
				t.Errorf("layer %+v", l)
			}
			sum += l.Size
		}
		if len(im.layers) > 5 || sum > 2000 {
			t.Errorf("%d layers of %d bytes", len(im.layers), sum)
		}
	})
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
		c := &Client{Limits: Limits{ImageBytes: 1 << 20}}
		for _, kind := range []string{"oci-archive:", "docker-archive:"} {
			im, err := c.Open(t.Context(), kind+path)
			if err != nil {
				continue
			}
			if !store.ValidDigest(im.Digest()) {
				t.Errorf("digest %q", im.Digest())
			}
			if err := im.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
