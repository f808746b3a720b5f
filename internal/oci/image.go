package oci

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/store"
)

// Image is an opened image. Its layers are fetched when they are needed.
type Image struct {
	name        string
	digest      string
	manifest    string
	labels      map[string]string
	annotations map[string]string
	layers      []Layer
	fetch       func(context.Context) error // fetches all layers; nil if they are available locally
	closers     []io.Closer
}

// Name returns the full reference of the image, as used in errors.
func (im *Image) Name() string { return im.name }

// Digest returns the digest of the index or, if there is none, of the manifest. For a docker archive, which
// has no manifest, it returns the digest of the configuration (the "image ID").
func (im *Image) Digest() string { return im.digest }

// ManifestDigest returns the digest of the manifest of the chosen image. For a multi-platform
// index, it differs from Digest. For a docker archive, it is empty.
func (im *Image) ManifestDigest() string { return im.manifest }

// Labels returns a copy of the configuration's labels.
func (im *Image) Labels() map[string]string { return maps.Clone(im.labels) }

// Annotations returns a copy of the manifest's annotations.
func (im *Image) Annotations() map[string]string { return maps.Clone(im.annotations) }

// Layers returns the layers, lowest first.
func (im *Image) Layers() []Layer { return slices.Clone(im.layers) }

// Fetch fetches all layers into the store, several of them concurrently. After an error, the layers that
// were fetched remain in the store.
func (im *Image) Fetch(ctx context.Context) error {
	if im.fetch == nil {
		return nil
	}
	return wrapImageError(im.name, im.fetch(ctx))
}

// Close closes the file of an archive. Do not open layers afterwards.
func (im *Image) Close() error {
	errs := make([]error, 0, len(im.closers))
	for _, c := range im.closers {
		errs = append(errs, c.Close())
	}
	im.closers = nil
	return errors.Join(errs...)
}

// Layer is one layer of an image.
type Layer struct {
	Digest string // digest of the layer as stored; in a docker archive, digest of the uncompressed layer
	Size   int64  // size as stored, in bytes

	image string
	open  func(context.Context) (*store.Verifier, error)
	diff  string // digest of the uncompressed layer; verified if the digest of the stored layer is unknown
}

// Open returns the uncompressed tar stream of the layer. It detects gzip, zstd and uncompressed layers by
// their first bytes. Do not trust the content before the reader returns io.EOF, because the content is
// verified at its end. A [*store.CorruptError] means that a damaged copy was removed from the store.
// Opening the layer again fetches a new copy.
func (l Layer) Open(ctx context.Context) (io.ReadCloser, error) {
	raw, err := l.open(ctx)
	if err != nil {
		return nil, l.wrap(err)
	}
	r, err := newTarStream(raw, l)
	if err != nil {
		return nil, errors.Join(l.wrap(err), raw.Close())
	}
	return r, nil
}

// Stored returns the layer as stored, which is usually compressed. The content is verified as in Open.
func (l Layer) Stored(ctx context.Context) (io.ReadCloser, error) {
	raw, err := l.open(ctx)
	if err != nil {
		return nil, l.wrap(err)
	}
	return raw, nil
}

func (l Layer) wrap(err error) error {
	return wrapImageError(l.image, fmt.Errorf("layer %s: %w", l.Digest, err))
}

// origin provides the manifests and blobs of an image.
type origin interface {
	// manifest returns the manifest or index with this digest, verified.
	manifest(ctx context.Context, digest string) ([]byte, error)
	// blob opens the layer or configuration with this digest. It is verified while it is read.
	blob(ctx context.Context, digest string, size int64) (*store.Verifier, error)
}

const (
	maxIndexDepth       = 4
	chartType           = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	chartProvenanceType = "application/vnd.cncf.helm.chart.provenance.v1.prov" // a signature file beside the layer with a chart
)

// loadImage decodes data, the manifest or index with this digest, and sets the fields of im.
func (c *Client) loadImage(ctx context.Context, im *Image, from origin, digest string, data []byte) error {
	im.digest = digest
	var err error
	if im.manifest, data, err = resolveImage(ctx, from, digest, data, c.Platform); err != nil {
		return err
	}
	return c.loadManifest(ctx, im, from, im.manifest, data)
}

// resolveImage returns the digest and content of the manifest of the image that [Client.Open] chooses. data
// is an index or a manifest, and root is the digest of data.
func resolveImage(ctx context.Context, from origin, root string, data []byte, platform string) (digest string, manifest []byte, err error) {
	digest = root
	for range maxIndexDepth {
		kind, err := manifestKind(data)
		if err != nil {
			return "", nil, fmt.Errorf("manifest %s: %w", digest, err)
		}
		if kind == "image" {
			return digest, data, nil
		}
		index, err := v1.ParseIndexManifest(bytes.NewReader(data))
		if err != nil {
			return "", nil, fmt.Errorf("index %s: %w", digest, err)
		}
		if digest, err = chooseImage(index.Manifests, platform); err != nil {
			return "", nil, fmt.Errorf("index %s: %w", root, err)
		}
		if data, err = from.manifest(ctx, digest); err != nil {
			return "", nil, err
		}
	}
	return "", nil, fmt.Errorf("index %s: nested deeper than %d levels", root, maxIndexDepth)
}

// manifestKind returns the kind of a manifest according to its content: image or index. Content
// that clients could interpret as either is an error.
func manifestKind(data []byte) (string, error) {
	var m struct {
		SchemaVersion int             `json:"schemaVersion"`
		Manifests     json.RawMessage `json:"manifests"`
		Layers        json.RawMessage `json:"layers"`
		Config        json.RawMessage `json:"config"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return "", fmt.Errorf("not a manifest: %w", err)
	}
	switch {
	case m.SchemaVersion != 2:
		return "", fmt.Errorf("manifest schema version %d is not supported, only 2 is", m.SchemaVersion)
	case m.Manifests != nil && (m.Layers != nil || m.Config != nil):
		return "", errors.New("ambiguous manifest: both an image and an index")
	case m.Manifests != nil:
		return "index", nil
	case m.Config != nil:
		return "image", nil
	default:
		return "", errors.New("neither an image nor an index")
	}
}

// chooseImage returns the digest of the image that [Client.Open] chooses from the entries of an
// index.
func chooseImage(ms []v1.Descriptor, platform string) (string, error) {
	want := cmp.Or(platform, "linux/amd64")
	var have []string
	var first, linux *v1.Descriptor
	for i := range ms {
		d := &ms[i]
		if isAttestation(d) {
			continue
		}
		p := platformOf(d)
		if p == want || strings.HasPrefix(p, want+"/") {
			return d.Digest.String(), nil
		}
		have = append(have, p)
		if first == nil {
			first = d
		}
		if linux == nil && strings.HasPrefix(p, "linux/") {
			linux = d
		}
	}
	switch {
	case platform != "" && first != nil:
		return "", fmt.Errorf("no image for platform %q (available: %s)", platform, strings.Join(have, ", "))
	case linux != nil:
		return linux.Digest.String(), nil
	case first != nil:
		return first.Digest.String(), nil
	default:
		return "", errors.New("contains no image")
	}
}

func platformOf(d *v1.Descriptor) string {
	if d.Platform == nil {
		return "unknown"
	}
	p := d.Platform.OS + "/" + d.Platform.Architecture
	if d.Platform.Variant != "" {
		p += "/" + d.Platform.Variant
	}
	return p
}

// isAttestation reports whether an entry of an index is an attestation that a build tool added, and
// not an image.
func isAttestation(d *v1.Descriptor) bool {
	return d.Annotations["vnd.docker.reference.type"] != "" || platformOf(d) == "unknown/unknown"
}

// loadManifest decodes data, the manifest with this digest, and sets the fields of im.
func (c *Client) loadManifest(ctx context.Context, im *Image, from origin, digest string, data []byte) error {
	m, err := c.Limits.parseManifest(digest, data)
	if err != nil {
		return err
	}
	im.labels, err = readLabels(ctx, from, m.Config)
	var damaged *store.CorruptError
	if errors.As(err, &damaged) { // the store has removed the damaged copy: fetch it again
		im.labels, err = readLabels(ctx, from, m.Config)
	}
	if err != nil {
		return fmt.Errorf("configuration %s: %w", m.Config.Digest, err)
	}
	im.annotations = m.Annotations
	for _, d := range m.Layers {
		if d.MediaType == chartProvenanceType {
			continue
		}
		im.layers = append(im.layers, Layer{
			Digest: d.Digest.String(), Size: d.Size, image: im.name,
			open: func(ctx context.Context) (*store.Verifier, error) { return from.blob(ctx, d.Digest.String(), d.Size) },
		})
	}
	return nil
}

// parseManifest decodes the manifest of an image and checks it against the limits.
func (l Limits) parseManifest(digest string, data []byte) (*v1.Manifest, error) {
	m, err := v1.ParseManifest(bytes.NewReader(data))
	if err == nil {
		err = l.checkManifest(m)
	}
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", digest, err)
	}
	return m, nil
}

func (l Limits) checkManifest(m *v1.Manifest) error {
	lim := l.withDefaults()
	if n := len(m.Layers); n > lim.Layers {
		return fmt.Errorf("%d layers exceed the limit of %d", n, lim.Layers)
	}
	if err := checkDescriptor("configuration", m.Config, lim.Config); err != nil {
		return err
	}
	var sum int64
	for _, d := range m.Layers {
		if err := checkDescriptor("layer", d, lim.LayerBytes); err != nil {
			return err
		}
		if t := string(d.MediaType); t != "" && t != chartProvenanceType && (!strings.Contains(t, "tar") || strings.HasSuffix(t, "+encrypted")) {
			return fmt.Errorf("layer %s is %q, not a filesystem layer", d.Digest, t)
		}
		if sum += d.Size; sum > lim.ImageBytes {
			return fmt.Errorf("the layers exceed the limit of %d bytes", lim.ImageBytes)
		}
	}
	return nil
}

func checkDescriptor(noun string, d v1.Descriptor, limit int64) error {
	switch {
	case !imageref.IsDigest(d.Digest.String()):
		return fmt.Errorf("%s digest %q: only sha256 is supported", noun, d.Digest.String())
	case d.Size < 0:
		return fmt.Errorf("%s %s: invalid size %d", noun, d.Digest, d.Size)
	case d.Size > limit:
		return fmt.Errorf("%s %s: %d bytes exceed the limit of %d", noun, d.Digest, d.Size, limit)
	default:
		return nil
	}
}

// readLabels returns the labels in the image configuration d. The caller must have checked its
// size.
func readLabels(ctx context.Context, from origin, d v1.Descriptor) (map[string]string, error) {
	data, err := readAll(ctx, from, d)
	if err != nil {
		return nil, err
	}
	labels, _, err := parseConfig(data)
	return labels, err
}

// readAll returns the content of the blob d, verified. The caller must have checked its size.
func readAll(ctx context.Context, from origin, d v1.Descriptor) ([]byte, error) {
	r, err := from.blob(ctx, d.Digest.String(), d.Size)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()               // ignore the error: the blob was only read
	return io.ReadAll(io.LimitReader(r, d.Size+1)) // one byte more than the size: the blob is verified when the reader reaches the end
}

// parseConfig decodes an image configuration. It returns the labels, and in diffs the digests of the
// uncompressed layers.
func parseConfig(data []byte) (labels map[string]string, diffs []string, err error) {
	var config struct {
		Config struct {
			Labels map[string]string
		} `json:"config"`
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, nil, fmt.Errorf("not an image configuration: %w", err)
	}
	return config.Config.Labels, config.RootFS.DiffIDs, nil
}
