package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Push sends p to the registry that target names, below its tag, or below its
// digest alone where target has no tag but p's digest.
func (c *Client) Push(ctx context.Context, target string, p *Packed) error {
	to, err := c.pushTarget(target)
	if err != nil {
		return err
	}
	if to.src.Digest != "" && to.src.Digest != p.digest {
		return wrap(to.src.String(), fmt.Errorf("the image to push is %s", p.digest))
	}
	img, err := partial.CompressedToImage(packedImage{p})
	if err != nil {
		return wrap(to.src.String(), err)
	}
	err = to.pusher.Push(ctx, to.reference(), img)
	return wrap(to.src.String(), clean(err, to.repo.RegistryStr(), to.login))
}

// packedImage shows a Packed to go-containerregistry.
type packedImage struct{ p *Packed }

func (i packedImage) RawConfigFile() ([]byte, error)      { return i.p.config, nil }
func (i packedImage) RawManifest() ([]byte, error)        { return i.p.manifest, nil }
func (i packedImage) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (i packedImage) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	return packedLayer{h, i.p.layer}, nil // there is only one
}

type packedLayer struct {
	hash v1.Hash
	data []byte
}

func (l packedLayer) Digest() (v1.Hash, error)            { return l.hash, nil }
func (l packedLayer) Size() (int64, error)                { return int64(len(l.data)), nil }
func (l packedLayer) MediaType() (types.MediaType, error) { return types.OCILayer, nil }
func (l packedLayer) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(l.data)), nil
}

// WriteLayout adds p to the OCI layout in dir, which is made where it is not
// there, under a name that replaces what had it before; an empty name replaces
// an image without one. Blobs are written before the index that names them, so
// that a reader sees the old layout or the new one. The same images give the
// same bytes, in whatever order they were added.
func (p *Packed) WriteLayout(dir, tag string) error {
	if err := p.writeLayout(dir, tag); err != nil {
		return fmt.Errorf("writing the layout %q: %w", dir, err)
	}
	return nil
}

func (p *Packed) writeLayout(dir, tag string) error {
	entry := layoutEntry{MediaType: types.OCIManifestSchema1, Digest: p.digest, Size: len(p.manifest)}
	return writeLayout(dir, tag, p.blobs(), entry)
}

// blobs returns what the image is made of, by digest.
func (p *Packed) blobs() map[string][]byte {
	return map[string][]byte{p.digest: p.manifest, p.configDigest: p.config, p.layerID: p.layer}
}

// writeLayout adds blobs and then the entry that names one of them.
func writeLayout(dir, tag string, blobs map[string][]byte, mine layoutEntry) error {
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		return err
	}
	entries, err := readLayoutIndex(dir)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e layoutEntry) bool { return e.Annotations[refName] == tag })
	if tag != "" {
		mine.Annotations = map[string]string{refName: tag}
	}
	entries = append(entries, mine)
	slices.SortFunc(entries, func(a, b layoutEntry) int {
		return cmp.Or(cmp.Compare(a.Annotations[refName], b.Annotations[refName]), cmp.Compare(a.Digest, b.Digest))
	})
	for digest, data := range blobs {
		path, err := blobPath(digest)
		if err != nil {
			return err
		}
		if err := replaceFile(filepath.Join(dir, filepath.FromSlash(path)), data); err != nil {
			return err
		}
	}
	index, err := json.MarshalIndent(layoutIndex{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: entries}, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(dir, "oci-layout"), []byte(layoutVersion)); err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, "index.json"), append(index, '\n'))
}

const layoutVersion = `{"imageLayoutVersion":"1.0.0"}`

type layoutIndex struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     types.MediaType `json:"mediaType,omitempty"`
	Manifests     []layoutEntry   `json:"manifests"`
}

type layoutEntry struct {
	MediaType    types.MediaType   `json:"mediaType"`
	Digest       string            `json:"digest"`
	Size         int               `json:"size"`
	ArtifactType string            `json:"artifactType,omitempty"`
	Platform     *v1.Platform      `json:"platform,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
}

// readLayoutIndex returns what the layout holds already.
func readLayoutIndex(dir string) ([]layoutEntry, error) {
	data, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var index layoutIndex
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("index.json: %w", err)
	}
	return index.Manifests, nil
}

// replaceFile writes a file by a rename; one that holds the same is left.
func replaceFile(path string, data []byte) error {
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already where the rename succeeded
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
