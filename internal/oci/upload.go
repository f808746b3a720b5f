package oci

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// UploadResult describes the copy of an image to a registry.
type UploadResult struct {
	Digest   string // digest of the image
	Sent     int    // number of blobs that were sent
	Bytes    int64  // total size of the sent blobs in bytes
	UpToDate bool   // the tag already referred to this image, and nothing was sent
	Exists   bool   // the repository already had this image; at most the tag was set
}

// Upload copies the image that source refers to, with all platforms and byte for byte, to the repository and
// tag of target. Upload does not send parts that the repository has, so an interrupted copy can be continued.
// To verify blobs, it first stores them. Afterwards it removes the blobs that it added to the store.
func (c *Client) Upload(ctx context.Context, source, target string) (UploadResult, error) {
	src, err := ParseReference(source)
	if err != nil {
		return UploadResult{}, err
	}
	to, err := c.pushTarget(target)
	if err != nil {
		return UploadResult{}, err
	}
	from, digest, data, closer, err := c.openRoot(ctx, src)
	if err != nil {
		return UploadResult{}, wrapImageError(src.String(), err)
	}
	if closer != nil {
		defer closer.Close()
	}
	return to.uploadMissing(ctx, src.String(), from, digest, data)
}

// uploadMissing uploads the parts of an image that the repository lacks. data is the image's root manifest,
// and digest is the digest of data. source is the name of the image in errors.
func (t *target) uploadMissing(ctx context.Context, source string, from origin, digest string, data []byte) (UploadResult, error) {
	out := UploadResult{Digest: digest}
	if t.src.Digest != "" && t.src.Digest != digest {
		return out, wrapImageError(t.src.String(), fmt.Errorf("digest mismatch: the image to push has digest %s", digest))
	}
	var err error
	if out.UpToDate, err = t.hasReference(ctx, t.reference(), digest); err == nil && !out.UpToDate && t.src.Digest == "" {
		out.Exists, err = t.hasReference(ctx, t.repo.Digest(digest), digest)
	}
	out.Exists = out.Exists || out.UpToDate
	if err != nil || out.UpToDate {
		return out, wrapImageError(t.src.String(), err)
	}
	parts, err := t.client.listParts(ctx, from, digest, data, false)
	if err != nil {
		return out, wrapImageError(source, err)
	}
	if out.Exists {
		parts = parts[len(parts)-1:]
	}
	for _, p := range parts {
		if err := t.uploadPart(ctx, from, p, p.digest == digest, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// target is the repository and tag that an image is copied to.
type target struct {
	account
	client *Client
	src    Reference
	pusher *remote.Pusher
	opts   []remote.Option
}

// pushTarget opens the repository of ref for writing.
func (c *Client) pushTarget(ref string) (*target, error) {
	src, err := ParseReference(ref)
	if err != nil {
		return nil, err
	}
	if src.Kind != Remote {
		return nil, fmt.Errorf("image reference %q: images can only be pushed to a registry", ref)
	}
	if c.Offline {
		return nil, wrapImageError(src.String(), errors.New("cannot push with --offline"))
	}
	repo, err := c.repository(src.Name)
	if err != nil {
		return nil, err
	}
	base, err := c.transport(repo)
	if err != nil {
		return nil, wrapImageError(src.String(), err)
	}
	t := &target{account: account{repo, c.Credentials.find(repo)}, client: c, src: src}
	retry := c.Retry.withDefaults()
	t.opts = []remote.Option{
		remote.WithTransport(base), remote.WithAuth(authn.FromConfig(t.login.config)),
		remote.WithRetryBackoff(remote.Backoff{Duration: retry.Wait, Factor: 2, Steps: retry.Attempts}),
		remote.WithRetryStatusCodes(), // no retries: the transport retries
	}
	t.pusher, err = remote.NewPusher(t.opts...)
	return t, err
}

func (t *target) reference() name.Reference {
	if t.src.Digest != "" {
		return t.repo.Digest(t.src.Digest)
	}
	return t.repo.Tag(t.src.Tag)
}

// hasReference reports whether ref in the registry already has this digest.
func (t *target) hasReference(ctx context.Context, ref name.Reference, digest string) (bool, error) {
	d, err := remote.Head(ref, append(t.opts, remote.WithContext(ctx))...)
	err = t.redact(err)
	var status *statusError
	if errors.As(err, &status) && status.status != 401 && status.status != 403 && status.status < 500 {
		return false, nil
	}
	return err == nil && d.Digest.String() == digest, err
}

// uploadPart uploads one part and counts it in out. If last is true, the part is the root manifest
// and gets the tag.
func (t *target) uploadPart(ctx context.Context, from origin, p part, last bool, out *UploadResult) error {
	if p.manifest != nil {
		var ref name.Reference = t.repo.Digest(p.digest)
		if last {
			ref = t.reference()
		}
		err := t.pusher.Put(ctx, ref, rawManifest{p})
		return wrapImageError(t.src.String(), t.redact(err))
	}
	lock := t.client.lockFor("upload of " + p.digest)
	lock.Lock()
	defer lock.Unlock()
	blob := &lazyBlob{ctx: ctx, from: from, part: p}
	layer, err := partial.CompressedToLayer(blob)
	if err != nil {
		return err
	}
	key := t.repo.RegistryStr() + " " + p.digest
	if have, ok := t.client.uploaded.Load(key); ok && have != t.repo.Name() {
		if repo, err := t.client.repository(have.(string)); err == nil {
			layer = &remote.MountableLayer{Layer: layer, Reference: repo.Digest(p.digest)}
		}
	}
	held := t.client.Store != nil && t.client.Store.Has(p.digest)
	err = t.pusher.Upload(ctx, t.repo, layer)
	if blob.err != nil { // reading the blob failed: this error is more precise than that of the library
		return wrapImageError(t.src.String(), fmt.Errorf("blob %s: %w", p.digest, blob.err))
	}
	if err != nil {
		return wrapImageError(t.src.String(), fmt.Errorf("blob %s: %w", p.digest, t.redact(err)))
	}
	t.client.uploaded.Store(key, t.repo.Name())
	if !blob.opened {
		return nil
	}
	out.Sent++
	out.Bytes += p.size
	if t.client.Store != nil && !held {
		return t.client.removeBlob(p.digest)
	}
	return nil
}

// rawManifest implements the manifest interface of go-containerregistry for a part.
type rawManifest struct{ part }

func (m rawManifest) RawManifest() ([]byte, error)        { return m.manifest, nil }
func (m rawManifest) MediaType() (types.MediaType, error) { return m.mediaType, nil }

// lazyBlob implements the layer interface of go-containerregistry for a part. The blob is opened
// only if the registry does not have it.
type lazyBlob struct {
	ctx    context.Context //nolint:containedctx // used only during one upload
	from   origin
	part   part
	opened bool
	err    error
}

// Digest implements partial.CompressedLayer.
func (b *lazyBlob) Digest() (v1.Hash, error) { return v1.NewHash(b.part.digest) }

// Size implements partial.CompressedLayer.
func (b *lazyBlob) Size() (int64, error) { return b.part.size, nil }

// MediaType implements partial.CompressedLayer.
func (b *lazyBlob) MediaType() (types.MediaType, error) { return b.part.mediaType, nil }

// Compressed implements partial.CompressedLayer.
func (b *lazyBlob) Compressed() (io.ReadCloser, error) {
	b.opened = true
	r, err := openVerified(b.ctx, b.from, b.part)
	if err != nil {
		b.err = err
		return nil, err
	}
	return r, nil
}
