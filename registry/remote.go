package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/store"
)

// tagRecords is the kind of record that remembers what a tag last meant.
const tagRecords = "tag"

// upstream is an image's origin in a registry, with the store in front of it.
type upstream struct {
	client  *Client
	image   string // as errors and progress name it
	repos   []name.Repository
	offline bool // nothing is fetched
}

// upstream returns the way to the images of src's repository.
func (c *Client) upstream(src Source) (*upstream, error) {
	if c.Store == nil {
		return nil, errors.New("no store to keep what the registry sends")
	}
	repos, err := c.candidates(src)
	if err != nil {
		return nil, err
	}
	return &upstream{client: c, image: src.String(), repos: repos, offline: c.Offline}, nil
}

// candidates returns the repositories to ask, in order: mirrors first.
func (c *Client) candidates(src Source) ([]name.Repository, error) {
	places, err := c.Mirrors.places(src.Name, src.Digest != "")
	if err != nil {
		return nil, err
	}
	repos := make([]name.Repository, len(places))
	for i, p := range places {
		if repos[i], err = c.repository(p); err != nil {
			return nil, err
		}
	}
	return repos, nil
}

// repository parses a repository's name; an insecure one may speak HTTP.
func (c *Client) repository(s string) (name.Repository, error) {
	repo, err := name.NewRepository(s)
	if err != nil {
		return name.Repository{}, fmt.Errorf("repository %q: want registry/name, in lower case, of 2 to 255 characters", s)
	}
	if c.insecure(repo) {
		return name.NewRepository(s, name.Insecure)
	}
	return repo, nil
}

// resolve returns the digest and the text of what src names.
func (r *upstream) resolve(ctx context.Context, src Source) (string, []byte, error) {
	if src.Digest != "" {
		data, err := r.manifest(ctx, src.Digest)
		return src.Digest, data, err
	}
	if r.offline {
		known := r.client.vendoredTag(src)
		if known == "" {
			record, err := r.client.Store.Record(tagRecords, src.String())
			if err == nil {
				known = string(record)
			}
		}
		if !imageref.IsDigest(known) {
			return "", nil, &OfflineError{Missing: fmt.Sprintf("what tag %q stands for", src.Tag)}
		}
		data, err := r.manifest(ctx, known)
		return known, data, err
	}
	data, err := r.getManifest(ctx, src.Tag, "")
	if err != nil {
		return "", nil, err
	}
	digest := store.DigestOf(data)
	if err := r.keep(ctx, digest, data); err != nil {
		return "", nil, err
	}
	return digest, data, r.client.Store.PutRecord(tagRecords, src.String(), []byte(digest))
}

// manifest returns the manifest of that digest, from the store where it is
// there.
func (r *upstream) manifest(ctx context.Context, digest string) ([]byte, error) {
	if !imageref.IsDigest(digest) {
		return nil, fmt.Errorf("manifest digest %q: only sha256 is supported", digest)
	}
	data, err := r.client.Store.Read(digest, r.client.Limits.withDefaults().Manifest)
	if err == nil || !refetchable(err) {
		return data, err
	}
	if data, err := r.client.vendoredManifest(ctx, digest); err == nil {
		return data, nil
	}
	if r.offline {
		return nil, &OfflineError{Missing: "manifest " + digest}
	}
	if data, err = r.getManifest(ctx, digest, digest); err != nil {
		return nil, err
	}
	return data, r.keep(ctx, digest, data)
}

// blob opens a blob of the store, which is fetched first where it is missing.
func (r *upstream) blob(ctx context.Context, digest string, size int64) (*store.Verifier, error) {
	if have, err := r.client.Store.Size(digest); err != nil || have != size {
		if v, err := r.client.vendoredBlob(ctx, digest, size); err == nil {
			return v, nil
		}
	}
	if err := r.ensure(ctx, digest, size); err != nil {
		return nil, err
	}
	return r.client.Store.Get(digest)
}

// refetchable reports whether fetching anew is the remedy for a store's error.
func refetchable(err error) bool {
	var corrupt *store.CorruptError
	return errors.Is(err, fs.ErrNotExist) || errors.As(err, &corrupt)
}

// keep puts a manifest that was just fetched into the store, in place of a
// damaged copy.
func (r *upstream) keep(ctx context.Context, digest string, data []byte) error {
	if _, err := r.client.Store.Read(digest, int64(len(data))); err == nil {
		return nil
	}
	if err := r.client.Store.Remove(digest); err != nil {
		return err
	}
	return r.client.Store.Put(ctx, digest, bytes.NewReader(data), int64(len(data)))
}

// getManifest asks each candidate in turn.
func (r *upstream) getManifest(ctx context.Context, ref, digest string) ([]byte, error) {
	var errs []error
	for _, repo := range r.repos {
		data, _, err := r.client.fetchText(ctx, repo, "manifests", ref)
		if err == nil {
			err = checkManifestText(data, ref, digest)
		}
		if err == nil {
			return data, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		errs = append(errs, err)
	}
	return nil, joinTries(errs)
}

// checkManifestText sees that what a registry sent for ref has the digest,
// where one is known, and is a manifest at all: proxies answer with pages.
func checkManifestText(data []byte, ref, digest string) error {
	if got := store.DigestOf(data); digest != "" && got != digest {
		return fmt.Errorf("manifest %s: %w", ref, &store.MismatchError{Got: got, WantSize: -1})
	}
	if _, err := manifestKind(data); err != nil {
		return fmt.Errorf("manifest %s: %w", ref, err)
	}
	return nil
}

// ensure fetches a blob that the store does not hold, or holds with another
// size. Within one client each blob is fetched once.
func (r *upstream) ensure(ctx context.Context, digest string, size int64) error {
	lock := r.client.lockFor(digest)
	lock.Lock()
	defer lock.Unlock()
	if have, err := r.client.Store.Size(digest); err == nil {
		if have == size {
			return nil
		}
		if err := r.client.Store.Remove(digest); err != nil { // cut short by a failing disk
			return err
		}
	}
	if v, err := r.client.vendoredBlob(ctx, digest, size); err == nil {
		return v.Close() // verified when it is read
	}
	if r.offline {
		return &OfflineError{Missing: "blob " + digest}
	}
	var errs []error
	for _, repo := range r.repos {
		err := r.download(ctx, repo, digest, size)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		errs = append(errs, err)
	}
	return joinTries(errs)
}

// download brings one blob into the store, going on where an earlier fetch
// broke off. Where what was put together of several answers is not the blob,
// it is fetched once more, in one piece.
func (r *upstream) download(ctx context.Context, repo name.Repository, digest string, size int64) error {
	for again := false; ; again = true {
		body := &resumingReader{
			ctx: ctx, client: r.client, repo: repo, digest: digest, size: size,
			progress: func(n int64) {
				r.client.report(Progress{Image: r.image, Digest: digest, Done: n, Total: size})
			},
		}
		err := r.client.Store.Fetch(ctx, digest, size, func(have int64) (io.Reader, int64, error) {
			from, err := body.begin(have)
			return body, from, err
		})
		_ = body.Close() // only read from
		var mismatch *store.MismatchError
		if again || !body.resumed || !errors.As(err, &mismatch) || mismatch.GotSize < size {
			return err
		}
	}
}

// joinTries reports on several candidates; the last one is the registry that
// the reference names.
func joinTries(errs []error) error {
	if len(errs) == 0 {
		return errors.New("nowhere to fetch it from")
	}
	last := errs[len(errs)-1]
	if len(errs) == 1 {
		return last
	}
	if len(errs) == 2 {
		return fmt.Errorf("%w (and 1 mirror before it failed: %w)", last, errs[0])
	}
	return fmt.Errorf("%w (and %d mirrors before it failed, the first: %w)", last, len(errs)-1, errs[0])
}

// fetchAll brings the layers into the store, a few at once. The error is that
// of the lowest layer that failed.
func (r *upstream) fetchAll(ctx context.Context, layers []Layer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slots := make(chan struct{}, r.client.Retry.withDefaults().Parallel)
	for _, l := range layers {
		if !r.client.Store.Has(l.Digest) {
			r.client.report(Progress{Image: r.image, Digest: l.Digest, Total: l.Size})
		}
	}
	errs := make([]error, len(layers))
	var wg sync.WaitGroup
	for i, l := range layers {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := r.ensure(ctx, l.Digest, l.Size); err != nil {
				errs[i] = fmt.Errorf("layer %s: %w", l.Digest, err)
				cancel()
			}
		})
	}
	wg.Wait()
	return firstReal(errs)
}

// firstReal returns the first error that is not the echo of another's
// cancellation, else the first.
func firstReal(errs []error) error {
	var first error
	for _, err := range errs {
		if err == nil {
			continue
		}
		if !errors.Is(err, context.Canceled) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}
