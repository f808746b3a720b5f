package registry

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

// Uploaded says what copying an image to a registry took.
type Uploaded struct {
	Digest  string // of what the source named, and the target names now
	Sent    int    // blobs that the target did not hold
	Bytes   int64  // of these
	Present bool   // the target named this image already; nothing was sent
	Held    bool   // the repository held this image already; at most the name was set
}

// Upload copies the image that source names, with all its platforms and byte
// for byte, to the registry, repository and tag that target names. What the
// registry holds already is not sent again, so that a copy that broke off goes
// on where it was. Blobs pass through the store, verified, and those that were
// not there before do not stay there.
func (c *Client) Upload(ctx context.Context, source, target string) (Uploaded, error) {
	src, err := ParseSource(source)
	if err != nil {
		return Uploaded{}, err
	}
	to, err := c.pushTarget(target)
	if err != nil {
		return Uploaded{}, err
	}
	from, digest, data, closer, err := c.root(ctx, src)
	if err != nil {
		return Uploaded{}, wrap(src.String(), err)
	}
	if closer != nil {
		defer closer.Close()
	}
	return to.receive(ctx, src.String(), from, digest, data)
}

// receive sends what digest names, of which data is the text, and the target does
// not hold; source is what errors call it.
func (t *target) receive(ctx context.Context, source string, from origin, digest string, data []byte) (Uploaded, error) {
	out := Uploaded{Digest: digest}
	if t.src.Digest != "" && t.src.Digest != digest {
		return out, wrap(t.src.String(), fmt.Errorf("the image to push is %s", digest))
	}
	var err error
	if out.Present, err = t.names(ctx, t.reference(), digest); err == nil && !out.Present && t.src.Digest == "" {
		out.Held, err = t.names(ctx, t.repo.Digest(digest), digest)
	}
	out.Held = out.Held || out.Present
	if err != nil || out.Present {
		return out, wrap(t.src.String(), err)
	}
	parts, err := t.client.parts(ctx, from, digest, data, false)
	if err != nil {
		return out, wrap(source, err)
	}
	if out.Held {
		parts = parts[len(parts)-1:]
	}
	for _, p := range parts {
		if err := t.send(ctx, from, p, p.digest == digest, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// target is where an image goes.
type target struct {
	client *Client
	src    Source
	repo   name.Repository
	login  credential
	pusher *remote.Pusher
	opts   []remote.Option
}

// pushTarget opens a registry for writing.
func (c *Client) pushTarget(ref string) (*target, error) {
	src, err := ParseSource(ref)
	if err != nil {
		return nil, err
	}
	if src.Kind != Remote {
		return nil, fmt.Errorf("image reference %q: only a registry can be pushed to", ref)
	}
	if c.Offline {
		return nil, wrap(src.String(), errors.New("nothing is pushed offline"))
	}
	repo, err := c.repository(src.Name)
	if err != nil {
		return nil, err
	}
	base, err := c.transport(repo)
	if err != nil {
		return nil, wrap(src.String(), err)
	}
	t := &target{client: c, src: src, repo: repo, login: c.Credentials.find(repo)}
	retry := c.Retry.withDefaults()
	t.opts = []remote.Option{
		remote.WithTransport(base), remote.WithAuth(authn.FromConfig(t.login.config)),
		remote.WithRetryBackoff(remote.Backoff{Duration: retry.Wait, Factor: 2, Steps: retry.Attempts}),
		remote.WithRetryStatusCodes(), // the transport has repeated it
	}
	t.pusher, err = remote.NewPusher(t.opts...)
	return t, err
}

// reference returns what the image is to be called.
func (t *target) reference() name.Reference {
	if t.src.Digest != "" {
		return t.repo.Digest(t.src.Digest)
	}
	return t.repo.Tag(t.src.Tag)
}

// names reports whether the registry has that digest by a reference already.
func (t *target) names(ctx context.Context, ref name.Reference, digest string) (bool, error) {
	d, err := remote.Head(ref, append(t.opts, remote.WithContext(ctx))...)
	err = clean(err, t.repo.RegistryStr(), t.login)
	var status *statusError
	if errors.As(err, &status) && status.status != 401 && status.status != 403 && status.status < 500 {
		return false, nil
	}
	return err == nil && d.Digest.String() == digest, err
}

// send uploads one part; last is the one that gets the name.
func (t *target) send(ctx context.Context, from origin, p part, last bool, out *Uploaded) error {
	if p.manifest != nil {
		var ref name.Reference = t.repo.Digest(p.digest)
		if last {
			ref = t.reference()
		}
		err := t.pusher.Put(ctx, ref, rawManifest{p})
		return wrap(t.src.String(), clean(err, t.repo.RegistryStr(), t.login))
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
	if blob.err != nil { // says more than the registry's client makes of it
		return wrap(t.src.String(), fmt.Errorf("blob %s: %w", p.digest, blob.err))
	}
	if err != nil {
		return wrap(t.src.String(), fmt.Errorf("blob %s: %w", p.digest, clean(err, t.repo.RegistryStr(), t.login)))
	}
	t.client.uploaded.Store(key, t.repo.Name())
	if !blob.opened {
		return nil
	}
	out.Sent++
	out.Bytes += p.size
	if t.client.Store != nil && !held {
		return t.client.Store.Remove(p.digest)
	}
	return nil
}

// rawManifest shows a manifest to go-containerregistry.
type rawManifest struct{ part }

func (m rawManifest) RawManifest() ([]byte, error)        { return m.manifest, nil }
func (m rawManifest) MediaType() (types.MediaType, error) { return m.mediaType, nil }

// lazyBlob shows a blob to go-containerregistry, which opens it only where the
// registry does not hold it.
type lazyBlob struct {
	ctx    context.Context //nolint:containedctx // lives no longer than the upload it belongs to
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
	r, err := whole(b.ctx, b.from, b.part)
	if err != nil {
		b.err = err
		return nil, err
	}
	return r, nil
}
