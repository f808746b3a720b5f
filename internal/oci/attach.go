package oci

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

// BundleType is the media type of a sigstore bundle.
const BundleType = bundleType + ".v0.3+json"

const emptyType types.MediaType = "application/vnd.oci.empty.v1+json"

// Attachment is data that [Client.Attach] attaches to an image, as an OCI artifact that refers to
// the image.
type Attachment struct {
	Type        string // media type of the artifact and of Data: "application/vnd.cyclonedx+json"
	Data        []byte
	Annotations map[string]string // annotations of the manifest
}

// Attach adds the attachment a to an image in a registry, and returns the digest of the attachment. ref must
// contain the digest of the image. The returned digest depends only on the image and a. If the registry
// already lists the attachment, nothing is sent. If the registry has no referrers API, Attach
// maintains the list of attachments as an index under a tag.
func (c *Client) Attach(ctx context.Context, ref string, a Attachment) (digest string, sent bool, err error) {
	to, up, err := c.openSubject(ref)
	if err != nil {
		return "", false, err
	}
	subject, err := to.subject(ctx)
	if err != nil {
		return "", false, wrapImageError(ref, err)
	}
	config := []byte("{}")
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  a.Type,
		Config:        newDescriptor(emptyType, config),
		Layers:        []v1.Descriptor{newDescriptor(types.MediaType(a.Type), a.Data)},
		Subject:       subject,
		Annotations:   a.Annotations,
	})
	if err != nil {
		return "", false, wrapImageError(ref, err)
	}
	digest = store.DigestOf(manifest)
	listed, err := up.referrers(ctx, to.repo, to.src.Digest, func(t string) bool { return t == a.Type || t == "" || t == string(emptyType) })
	if err != nil || slices.Contains(listed, digest) {
		return digest, false, wrapImageError(ref, err)
	}
	err = to.putManifest(ctx, to.repo.Digest(digest), manifest, static.NewLayer(config, emptyType), static.NewLayer(a.Data, types.MediaType(a.Type)))
	return digest, err == nil, wrapImageError(ref, err)
}

// AddSignature adds a simple signature of cosign to an image, under the tag sha256-<digest>.sig.
// ref must contain the digest of the image. An existing signature is not sent again. A signature
// that another client adds at the same time may be lost, because the last writer of a tag wins.
func (c *Client) AddSignature(ctx context.Context, ref string, payload []byte, annotations map[string]string) (sent bool, err error) {
	to, up, err := c.openSubject(ref)
	if err != nil {
		return false, err
	}
	if _, err := to.subject(ctx); err != nil {
		return false, wrapImageError(ref, err)
	}
	tag := strings.Replace(to.src.Digest, ":", "-", 1) + ".sig"
	m := &v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	data, err := up.getOptional(ctx, to.repo, tag)
	if err == nil && data != nil {
		m, err = v1.ParseManifest(bytes.NewReader(data))
	}
	if err != nil {
		return false, wrapImageError(ref, fmt.Errorf("signatures with tag %s: %w", tag, err))
	}
	layer := newDescriptor(simpleSigningType, payload)
	layer.Annotations = annotations
	for _, l := range m.Layers {
		if l.Digest == layer.Digest && maps.Equal(l.Annotations, annotations) {
			return false, nil
		}
	}
	if len(m.Layers) >= maxSignatures {
		return false, wrapImageError(ref, fmt.Errorf("%d signatures with tag %s exceed the limit of %d", len(m.Layers), tag, maxSignatures))
	}
	m.Layers = append(m.Layers, layer)
	config, err := signatureConfig(m.Layers)
	if err != nil {
		return false, wrapImageError(ref, err)
	}
	m.Config = newDescriptor(types.OCIConfigJSON, config)
	manifest, err := json.Marshal(m)
	if err != nil {
		return false, wrapImageError(ref, err)
	}
	err = to.putManifest(ctx, to.repo.Tag(tag), manifest, static.NewLayer(config, types.OCIConfigJSON), static.NewLayer(payload, simpleSigningType))
	return err == nil, wrapImageError(ref, err)
}

// signatureConfig returns the configuration of an image whose layers are these signatures.
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

// openSubject opens the repository of an image for reading and writing. ref must contain the digest
// of the image.
func (c *Client) openSubject(ref string) (*target, *upstream, error) {
	up, src, err := c.parseSigned(ref)
	if err != nil {
		return nil, nil, wrapImageError(ref, err)
	}
	to, err := c.pushTarget(src.String())
	return to, up, err
}

// subject returns the descriptor of the image that an attachment refers to.
func (t *target) subject(ctx context.Context) (*v1.Descriptor, error) {
	d, err := remote.Head(t.reference(), append(t.opts, remote.WithContext(ctx))...)
	if err == nil && d.Digest.String() != t.src.Digest {
		err = fmt.Errorf("the registry returned the wrong digest %s", d.Digest)
	}
	if err != nil {
		return nil, fmt.Errorf("subject image: %w", t.redact(err))
	}
	return &v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}, nil
}

// putManifest uploads the blobs that the registry lacks, and then the manifest.
func (t *target) putManifest(ctx context.Context, ref name.Reference, manifest []byte, blobs ...v1.Layer) error {
	for _, b := range blobs {
		if err := t.pusher.Upload(ctx, t.repo, b); err != nil {
			return t.redact(err)
		}
	}
	err := t.pusher.Put(ctx, ref, rawManifest{part{mediaType: types.OCIManifestSchema1, manifest: manifest}})
	return t.redact(err)
}

func newDescriptor(kind types.MediaType, data []byte) v1.Descriptor {
	hash, size, _ := v1.SHA256(bytes.NewReader(data)) // ignore the error: reading from memory cannot fail
	return v1.Descriptor{MediaType: kind, Digest: hash, Size: size}
}
