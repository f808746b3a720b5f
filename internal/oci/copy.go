package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/quayside/quayside/internal/store"
)

const maxParts = 10_000 // maximum number of blobs and manifests of an image with all its platforms

// part is a manifest or a blob of an image.
type part struct {
	digest    string
	size      int64
	mediaType types.MediaType
	manifest  []byte // nil for a blob
}

// openRoot opens the image that src refers to. It returns the digest and content of the image's root
// manifest, and the origin of the other parts. The caller must close closer unless closer is nil.
func (c *Client) openRoot(ctx context.Context, src Reference) (from origin, digest string, data []byte, closer io.Closer, err error) {
	var f files
	switch src.Kind {
	case Remote:
		r, err := c.upstream(src)
		if err != nil {
			return nil, "", nil, nil, err
		}
		digest, data, err := r.resolve(ctx, src)
		return r, digest, data, nil, err
	case Layout:
		f, err = c.Lookup.openDir(src.Name)
	case LayoutArchive:
		f, err = c.openTar(ctx, src.Name)
	case DockerArchive:
		err = errors.New("a docker archive has no manifest to copy")
	}
	if err != nil {
		return nil, "", nil, nil, err
	}
	l := &layout{files: f, limit: c.Limits.withDefaults().Manifest}
	digest, data, err = l.root(ctx, src)
	if err != nil {
		return nil, "", nil, nil, errors.Join(err, f.Close())
	}
	return l, digest, data, f, nil
}

// listParts returns all parts of an image. A part comes after the parts that it refers to. The last part is
// the root manifest. For an index, the parts include all images or, if chosenOnly is true, only the image
// that [Client.Open] chooses.
func (c *Client) listParts(ctx context.Context, from origin, digest string, data []byte, chosenOnly bool) ([]part, error) {
	w := &partWalk{client: c, from: from, chosenOnly: chosenOnly, seen: map[string]bool{}}
	err := w.manifest(ctx, digest, data, 0)
	return w.parts, err
}

// partWalk collects the parts of an image.
type partWalk struct {
	client     *Client
	from       origin
	chosenOnly bool
	seen       map[string]bool
	parts      []part
}

func (w *partWalk) add(p part) error {
	if w.seen[p.digest] {
		return nil
	}
	if len(w.parts) == maxParts {
		return fmt.Errorf("the image consists of more than %d manifests and blobs, which is not supported", maxParts)
	}
	w.seen[p.digest] = true
	w.parts = append(w.parts, p)
	return nil
}

func (w *partWalk) manifest(ctx context.Context, digest string, data []byte, depth int) error {
	if w.seen[digest] {
		return nil
	}
	if depth > maxIndexDepth {
		return fmt.Errorf("nested deeper than %d levels", maxIndexDepth)
	}
	kind, err := manifestKind(data)
	if err == nil && kind == "image" {
		err = w.image(data)
	} else if err == nil {
		err = w.index(ctx, data, depth)
	}
	if err != nil {
		return fmt.Errorf("manifest %s: %w", digest, err)
	}
	return w.add(part{digest: digest, size: int64(len(data)), mediaType: mediaTypeOf(data, kind), manifest: data})
}

func (w *partWalk) image(data []byte) error {
	m, err := v1.ParseManifest(bytes.NewReader(data))
	if err != nil {
		return err
	}
	lim := w.client.Limits.withDefaults()
	if n := len(m.Layers); n > lim.Layers {
		return fmt.Errorf("%d layers exceed the limit of %d", n, lim.Layers)
	}
	for _, d := range append([]v1.Descriptor{m.Config}, m.Layers...) {
		if !d.MediaType.IsDistributable() && len(d.URLs) > 0 {
			continue // a foreign layer: registries do not have it
		}
		if err := checkDescriptor("blob", d, lim.LayerBytes); err != nil {
			return err
		}
		if err := w.add(part{digest: d.Digest.String(), size: d.Size, mediaType: d.MediaType}); err != nil {
			return err
		}
	}
	return nil
}

func (w *partWalk) index(ctx context.Context, data []byte, depth int) error {
	index, err := v1.ParseIndexManifest(bytes.NewReader(data))
	if err != nil {
		return err
	}
	children := index.Manifests
	if w.chosenOnly {
		chosen, err := chooseImage(index.Manifests, w.client.Platform)
		if err != nil {
			return err
		}
		hash, err := v1.NewHash(chosen)
		if err != nil {
			return err
		}
		children = []v1.Descriptor{{Digest: hash}}
	}
	for _, d := range children {
		digest := d.Digest.String()
		child, err := w.from.manifest(ctx, digest)
		if err != nil {
			return err
		}
		if err := w.manifest(ctx, digest, child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// mediaTypeOf returns the media type in a manifest. OCI manifests may omit the media type: mediaTypeOf then
// returns the OCI type for kind.
func mediaTypeOf(data []byte, kind string) types.MediaType {
	if m, err := v1.ParseManifest(bytes.NewReader(data)); err == nil && m.MediaType != "" {
		return m.MediaType
	}
	if kind == "image" {
		return types.OCIManifestSchema1
	}
	return types.OCIImageIndex
}

// openVerified opens a blob for reading. The returned reader ends with io.EOF only if the content
// matches the digest.
func openVerified(ctx context.Context, from origin, p part) (*store.Verifier, error) {
	if p.manifest != nil {
		return store.NewVerifier(io.NopCloser(bytes.NewReader(p.manifest)), p.digest, p.size), nil
	}
	return from.blob(ctx, p.digest, p.size)
}
