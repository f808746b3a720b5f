package oci

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
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/store"
)

// Push sends p to the repository of target and sets the tag of target. If target has a digest
// instead of a tag, it must be the digest of p. Blobs that the repository has are not sent.
func (c *Client) Push(ctx context.Context, target string, p *Packed) error {
	_, err := c.Send(ctx, target, p)
	return err
}

// Send pushes p like [Client.Push], and returns statistics of the transfer.
func (c *Client) Send(ctx context.Context, target string, p *Packed) (UploadResult, error) {
	to, err := c.pushTarget(target)
	if err != nil {
		return UploadResult{}, err
	}
	return to.uploadMissing(ctx, "image to push", memoryOrigin(p.blobs()), p.digest, p.manifest)
}

// memoryOrigin is the origin of an image in memory. The keys are digests.
type memoryOrigin map[string][]byte

func (h memoryOrigin) manifest(_ context.Context, digest string) ([]byte, error) {
	return h[digest], nil
}

func (h memoryOrigin) blob(_ context.Context, digest string, size int64) (*store.Verifier, error) {
	return store.NewVerifier(io.NopCloser(bytes.NewReader(h[digest])), digest, size), nil
}

// WriteLayout adds p with a tag, which may be empty, to the OCI layout in dir. It replaces an image with
// the same tag, and creates dir if needed. The index is written last, so that concurrent readers find
// either the old or the new layout. The result does not depend on the order in which images are added.
func (p *Packed) WriteLayout(dir, tag string) error {
	entry := layoutEntry{MediaType: types.OCIManifestSchema1, Digest: p.digest, Size: len(p.manifest)}
	root, err := openLayout(filetree.OpenUserDir(dir))
	if err == nil {
		err = errors.Join(writeLayout(root, tag, p.blobs(), entry), root.Close())
	}
	if err != nil {
		return fmt.Errorf("writing the layout %q: %w", dir, err)
	}
	return nil
}

// openLayout opens the directory of a layout for writing. It creates the directory if needed.
func openLayout(dir filetree.Dir) (*os.Root, error) {
	if err := dir.CheckLinks(blobsDir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return dir.Open(0o755)
}

// Keep adds p to a store.
func (p *Packed) Keep(ctx context.Context, s *store.Store) error {
	for digest, data := range p.blobs() {
		if err := s.Put(ctx, digest, bytes.NewReader(data), int64(len(data))); err != nil {
			return err
		}
	}
	return nil
}

// blobs returns the manifest, the configuration and the layer by digest.
func (p *Packed) blobs() map[string][]byte {
	return map[string][]byte{p.digest: p.manifest, p.configDigest: p.config, p.layerID: p.layer}
}

// writeLayout writes blobs to a layout, and then adds entry to its index.
func writeLayout(root *os.Root, tag string, blobs map[string][]byte, entry layoutEntry) error {
	release, err := useLayout(root, ".", blobsDir)
	if err != nil {
		return err
	}
	defer release()
	unlock, err := lockLayout(root)
	if err != nil {
		return err
	}
	defer unlock()
	var entries []layoutEntry
	switch index, err := (&layout{files: dirFiles{root.FS()}, limit: Limits{}.withDefaults().Manifest}).index(); {
	case err == nil:
		entries = slices.DeleteFunc(index.Manifests, func(e layoutEntry) bool { return e.Annotations[refName] == tag })
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if tag != "" {
		entry.Annotations = map[string]string{refName: tag}
	}
	index, err := formatIndex(append(entries, entry))
	if err != nil {
		return err
	}
	if err := writeBlobs(root, blobs); err != nil {
		return err
	}
	if err := replaceFile(root, layoutFile, []byte(layoutVersion)); err != nil {
		return err
	}
	return replaceFile(root, "index.json", index)
}

func writeBlobs(root *os.Root, blobs map[string][]byte) error {
	for digest, data := range blobs {
		name, err := blobPath(digest)
		if err != nil {
			return err
		}
		if err := replaceFile(root, name, data); err != nil {
			return err
		}
	}
	return nil
}

// lockLayout waits until no other process writes the index of the layout, and locks it. The caller
// must call unlock.
func lockLayout(root *os.Root) (unlock func(), err error) {
	self, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	return store.LockFile(self, layoutWait)
}

// layoutWait is the maximum time to wait for other processes that write to the same layout. Only
// vendoring of many images takes so long.
const layoutWait = time.Minute

const blobsDir = "blobs/sha256"

// useLayout creates the directories of a layout, and marks the layout as in use until release is
// called. If no other process uses the layout, useLayout removes the temporary files of killed processes
// from the directories in tidy.
func useLayout(root *os.Root, tidy ...string) (release func(), err error) {
	if err := root.MkdirAll(blobsDir, 0o755); err != nil {
		return nil, err
	}
	blobs, err := root.Open(blobsDir)
	if err != nil {
		return nil, err
	}
	return store.ShareDir(blobs, func() error {
		for _, place := range tidy {
			files, err := fs.ReadDir(root.FS(), place)
			if err != nil {
				return err
			}
			for _, f := range files {
				if !strings.HasPrefix(f.Name(), tempBlob) {
					continue
				}
				if err := root.Remove(path.Join(place, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
		return nil
	})
}

// formatIndex returns the content of index.json. The order of entries does not matter.
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

// Name and content of the file that marks a directory as an OCI layout.
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

// replaceFile replaces the content of a file atomically. It does not write if the content is the
// same.
func replaceFile(root *os.Root, name string, data []byte) error {
	if have, err := root.ReadFile(name); err == nil && bytes.Equal(have, data) {
		return nil
	}
	return writeFile(root, name, bytes.NewReader(data))
}
