package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/quayside/quayside/internal/store"
)

// BundleType is the type of a sigstore bundle that stands beside an image.
const BundleType = bundleType + ".v0.3+json"

const emptyType types.MediaType = "application/vnd.oci.empty.v1+json"

// Attachment is what [Client.Attach] puts beside an image.
type Attachment struct {
	Type        string // of the artifact and of Data: "application/vnd.cyclonedx+json"
	Data        []byte
	Annotations map[string]string // of the manifest
}

// Attach puts an attachment beside an image of a registry, which ref names by
// digest, and returns the attachment's own digest: it is the same for the same
// image and attachment. One that the registry lists already is not sent. A
// registry without the API for what refers to an image gets the list as an index
// below a tag.
func (c *Client) Attach(ctx context.Context, ref string, a Attachment) (digest string, sent bool, err error) {
	to, up, err := c.beside(ref)
	if err != nil {
		return "", false, err
	}
	subject, err := to.subject(ctx)
	if err != nil {
		return "", false, wrap(ref, err)
	}
	config := []byte("{}")
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  a.Type,
		Config:        described(emptyType, config),
		Layers:        []v1.Descriptor{described(types.MediaType(a.Type), a.Data)},
		Subject:       subject,
		Annotations:   a.Annotations,
	})
	if err != nil {
		return "", false, wrap(ref, err)
	}
	digest = store.DigestOf(manifest)
	listed, err := up.referrers(ctx, to.repo, to.src.Digest, func(t string) bool { return t == a.Type || t == "" || t == string(emptyType) })
	if err != nil || slices.Contains(listed, digest) {
		return digest, false, wrap(ref, err)
	}
	err = to.put(ctx, to.repo.Digest(digest), manifest, static.NewLayer(config, emptyType), static.NewLayer(a.Data, types.MediaType(a.Type)))
	return digest, err == nil, wrap(ref, err)
}

// AddSignature adds one of cosign's simple signatures to those of an image of a
// registry, which ref names by digest: below the tag sha256-<digest>.sig. One
// that is there already is not sent. What others add there in the same moment
// can be lost, for a tag holds what was written last.
func (c *Client) AddSignature(ctx context.Context, ref string, payload []byte, annotations map[string]string) (sent bool, err error) {
	to, up, err := c.beside(ref)
	if err != nil {
		return false, err
	}
	if _, err := to.subject(ctx); err != nil {
		return false, wrap(ref, err)
	}
	tag := strings.Replace(to.src.Digest, ":", "-", 1) + ".sig"
	m := &v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	data, err := up.ask(ctx, to.repo, tag)
	if err == nil && data != nil {
		m, err = v1.ParseManifest(bytes.NewReader(data))
	}
	if err != nil {
		return false, wrap(ref, fmt.Errorf("its signatures, below the tag %s: %w", tag, err))
	}
	layer := described(simpleSigningType, payload)
	layer.Annotations = annotations
	for _, l := range m.Layers {
		if l.Digest == layer.Digest && maps.Equal(l.Annotations, annotations) {
			return false, nil
		}
	}
	if len(m.Layers) >= maxSignatures {
		return false, wrap(ref, fmt.Errorf("%d signatures below the tag %s: at most %d are looked at", len(m.Layers), tag, maxSignatures))
	}
	m.Layers = append(m.Layers, layer)
	config, err := signatureConfig(m.Layers)
	if err != nil {
		return false, wrap(ref, err)
	}
	m.Config = described(types.OCIConfigJSON, config)
	manifest, err := json.Marshal(m)
	if err != nil {
		return false, wrap(ref, err)
	}
	err = to.put(ctx, to.repo.Tag(tag), manifest, static.NewLayer(config, types.OCIConfigJSON), static.NewLayer(payload, simpleSigningType))
	return err == nil, wrap(ref, err)
}

// signatureConfig returns the configuration of an image of signatures, whose
// layers are not compressed.
func signatureConfig(layers []v1.Descriptor) ([]byte, error) {
	var ids []v1.Hash
	for _, l := range layers {
		ids = append(ids, l.Digest)
	}
	return json.Marshal(map[string]any{
		"architecture": "", "os": "", "config": struct{}{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": ids},
	})
}

// beside opens an image's registry for writing, and for reading what is there.
func (c *Client) beside(ref string) (*target, *upstream, error) {
	up, src, err := c.signed(ref)
	if err != nil {
		return nil, nil, wrap(ref, err)
	}
	to, err := c.pushTarget(src.String())
	return to, up, err
}

// subject returns how an attachment names the image that it is for.
func (t *target) subject(ctx context.Context) (*v1.Descriptor, error) {
	d, err := remote.Head(t.reference(), append(t.opts, remote.WithContext(ctx))...)
	if err == nil && d.Digest.String() != t.src.Digest {
		err = fmt.Errorf("the registry gives %s for it", d.Digest)
	}
	if err != nil {
		return nil, fmt.Errorf("the image that is to have something beside it: %w", clean(err, t.repo.RegistryStr(), t.login))
	}
	return &v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}, nil
}

// put sends blobs, as far as they are not there, and then the manifest.
func (t *target) put(ctx context.Context, ref name.Reference, manifest []byte, blobs ...v1.Layer) error {
	for _, b := range blobs {
		if err := t.pusher.Upload(ctx, t.repo, b); err != nil {
			return clean(err, t.repo.RegistryStr(), t.login)
		}
	}
	err := t.pusher.Put(ctx, ref, rawManifest{part{mediaType: types.OCIManifestSchema1, manifest: manifest}})
	return clean(err, t.repo.RegistryStr(), t.login)
}

// described returns the descriptor of a blob.
func described(kind types.MediaType, data []byte) v1.Descriptor {
	hash, size, _ := v1.SHA256(bytes.NewReader(data)) // reading from memory does not fail
	return v1.Descriptor{MediaType: kind, Digest: hash, Size: size}
}
