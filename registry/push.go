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
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/quayside/quayside/internal/store"
)

// Push sends p to the registry that target names, below its tag, or below its
// digest alone where target has no tag but p's digest. What is there already is
// not sent.
func (c *Client) Push(ctx context.Context, target string, p *Packed) error {
	_, err := c.Send(ctx, target, p)
	return err
}

// Send is Push, and says what it took.
func (c *Client) Send(ctx context.Context, target string, p *Packed) (Uploaded, error) {
	to, err := c.pushTarget(target)
	if err != nil {
		return Uploaded{}, err
	}
	return to.receive(ctx, "the image to push", held(p.blobs()), p.digest, p.manifest)
}

// held is the origin of an image whose parts are in memory, by digest.
type held map[string][]byte

func (h held) manifest(_ context.Context, digest string) ([]byte, error) { return h[digest], nil }

func (h held) blob(_ context.Context, digest string, size int64) (*store.Verifier, error) {
	return store.NewVerifier(io.NopCloser(bytes.NewReader(h[digest])), digest, size), nil
}

// WriteLayout adds p to the OCI layout in dir, which is made where it is not
// there, under a name that replaces what had it before; an empty name replaces
// an image without one. Blobs are written before the index that names them, so
// that a reader sees the old layout or the new one. The same images give the
// same bytes, in whatever order they were added.
func (p *Packed) WriteLayout(dir, tag string) error {
	return writeLayout(dir, tag, p.blobs(), layoutEntry{MediaType: types.OCIManifestSchema1, Digest: p.digest, Size: len(p.manifest)})
}

// blobs returns what the image is made of, by digest.
func (p *Packed) blobs() map[string][]byte {
	return map[string][]byte{p.digest: p.manifest, p.configDigest: p.config, p.layerID: p.layer}
}

// writeLayout adds blobs and then the entry that names one of them.
func writeLayout(dir, tag string, blobs map[string][]byte, mine layoutEntry) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing the layout %q: %w", dir, err)
		}
	}()
	release, err := useLayout(dir, ".", blobsDir)
	if err != nil {
		return err
	}
	defer release()
	unlock, err := store.Lock(dir, layoutWait)
	if err != nil {
		return err
	}
	defer unlock()
	var entries []layoutEntry
	switch index, err := new(Client).layoutIndex(dir); {
	case err == nil:
		entries = slices.DeleteFunc(index.Manifests, func(e layoutEntry) bool { return e.Annotations[refName] == tag })
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if tag != "" {
		mine.Annotations = map[string]string{refName: tag}
	}
	index, err := formatIndex(append(entries, mine))
	if err != nil {
		return err
	}
	if err := writeBlobs(dir, blobs); err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(dir, layoutFile), []byte(layoutVersion)); err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, "index.json"), index)
}

// writeBlobs writes blobs to where a layout keeps them.
func writeBlobs(dir string, blobs map[string][]byte) error {
	for digest, data := range blobs {
		path, err := blobPath(digest)
		if err != nil {
			return err
		}
		if err := replaceFile(filepath.Join(dir, filepath.FromSlash(path)), data); err != nil {
			return err
		}
	}
	return nil
}

// layoutWait is how long a run waits for another one that writes to the same
// layout; all but the vendoring of many images is over in a moment.
const layoutWait = time.Minute

const blobsDir = "blobs/sha256"

// useLayout makes the directories of a layout and says that this process writes
// to them. Where no other one does, what killed ones left in some of them is
// removed.
func useLayout(dir string, tidy ...string) (release func(), err error) {
	blobs := filepath.Join(dir, blobsDir)
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return nil, err
	}
	return store.ShareDir(blobs, func() error {
		for _, place := range tidy {
			place = filepath.Join(dir, place)
			files, err := os.ReadDir(place)
			if err != nil {
				return err
			}
			for _, f := range files {
				if !strings.HasPrefix(f.Name(), tempBlob) {
					continue
				}
				if err := os.Remove(filepath.Join(place, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
		return nil
	})
}

// formatIndex returns the bytes of a layout's index.json: the same for the same
// entries in whatever order.
func formatIndex(entries []layoutEntry) ([]byte, error) {
	compare := func(a, b layoutEntry) int {
		return cmp.Or(cmp.Compare(a.Annotations[refName], b.Annotations[refName]), cmp.Compare(a.Digest, b.Digest))
	}
	entries = slices.SortedFunc(slices.Values(entries), compare)
	entries = slices.CompactFunc(entries, func(a, b layoutEntry) bool { return compare(a, b) == 0 })
	if entries == nil {
		entries = []layoutEntry{}
	}
	data, err := json.MarshalIndent(layoutIndex{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: entries}, "", "  ")
	return append(data, '\n'), err
}

// layoutFile is what a directory is known by as a layout.
const (
	layoutFile    = "oci-layout"
	layoutVersion = `{"imageLayoutVersion":"1.0.0"}`
)

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

// replaceFile writes a file by a rename; one that holds the same is left.
func replaceFile(path string, data []byte) error {
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
		return nil
	}
	return writeFile(path, bytes.NewReader(data))
}
