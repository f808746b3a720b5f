package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/store"
)

const tagRecords = "tag" // kind of record in the store: the last known digest of a tag

// conn is an authenticated connection to one repository.
type conn struct {
	account
	puller *remote.Puller
	http   *http.Client
}

// get sends requests that go-containerregistry does not support. It also fetches blobs, because
// go-containerregistry would compute their digests a second time.
func (w *conn) get(ctx context.Context, endpoint, ref string) (*http.Response, error) {
	url := fmt.Sprintf("%s://%s/v2/%s/%s/%s", w.repo.Scheme(), w.repo.RegistryStr(), w.repo.RepositoryStr(), endpoint, ref)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	if endpoint == "referrers" {
		req.Header.Set("Accept", string(types.OCIImageIndex))
	}
	return w.http.Do(req)
}

// connect returns the connection to a repository. The first call for a repository detects the
// scheme and fetches a token.
func (c *Client) connect(ctx context.Context, repo name.Repository) (*conn, error) {
	if c.Offline {
		return nil, &OfflineError{Missing: "repository " + repo.Name()}
	}
	lock := c.lockFor("connection to " + repo.Name())
	lock.Lock()
	defer lock.Unlock()
	if known, ok := c.conns.Load(repo.Name()); ok {
		return known.(*conn), nil
	}
	login := account{repo, c.Credentials.find(repo)}
	base, err := c.transport(repo)
	if err != nil {
		return nil, err
	}
	auth, err := transport.NewWithContext(ctx, repo.Registry, authn.FromConfig(login.login.config), base, []string{repo.Scope(transport.PullScope)})
	if err != nil {
		return nil, login.redact(err)
	}
	puller, err := remote.NewPuller(remote.WithTransport(auth))
	if err != nil {
		return nil, err
	}
	connected := &conn{account: login, puller: puller, http: &http.Client{Transport: auth, CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}}
	c.conns.Store(repo.Name(), connected)
	return connected, nil
}

// upstream is the origin of images in a registry. It caches content in the store.
type upstream struct {
	client  *Client
	image   string // name of the image in errors and progress
	repos   []name.Repository
	offline bool // do not fetch anything
}

// upstream returns the origin of the images in the repository of src.
func (c *Client) upstream(src Reference) (*upstream, error) {
	if c.Store == nil {
		return nil, errors.New("client has no store for downloads")
	}
	repos, err := c.candidates(src)
	if err != nil {
		return nil, err
	}
	return &upstream{client: c, image: src.String(), repos: repos, offline: c.Offline}, nil
}

// candidates returns the repositories to try for src, in order: mirrors first.
func (c *Client) candidates(src Reference) ([]name.Repository, error) {
	locations, err := c.Mirrors.locations(src.Name, src.Digest != "")
	if err != nil {
		return nil, err
	}
	repos := make([]name.Repository, len(locations))
	for i, p := range locations {
		if repos[i], err = c.repository(p); err != nil {
			return nil, err
		}
	}
	return repos, nil
}

// repository parses the name of a repository. It allows HTTP if the registry is insecure.
func (c *Client) repository(s string) (name.Repository, error) {
	repo, err := name.NewRepository(s)
	if err != nil {
		return name.Repository{}, fmt.Errorf("repository %q: must be registry/name, in lower case, with 2 to 255 characters", s)
	}
	if c.isInsecure(repo) {
		return name.NewRepository(s, name.Insecure)
	}
	return repo, nil
}

// resolve returns the digest and content of the manifest that src refers to.
func (r *upstream) resolve(ctx context.Context, src Reference) (string, []byte, error) {
	if src.Digest != "" {
		data, err := r.manifest(ctx, src.Digest)
		return src.Digest, data, err
	}
	if r.offline {
		known := r.client.vendored().tag(src)
		if known == "" {
			record, err := r.client.Store.Record(tagRecords, src.String())
			if err == nil {
				known = string(record)
			}
		}
		if !imageref.IsDigest(known) {
			return "", nil, &OfflineError{Missing: fmt.Sprintf("digest of tag %q", src.Tag)}
		}
		data, err := r.manifest(ctx, known)
		return known, data, err
	}
	data, err := r.getManifest(ctx, src.Tag, "")
	if err != nil {
		return "", nil, err
	}
	digest := store.DigestOf(data)
	if err := r.storeManifest(ctx, digest, data); err != nil {
		return "", nil, err
	}
	return digest, data, r.client.Store.PutRecord(tagRecords, src.String(), []byte(digest))
}

// manifest returns the manifest with this digest, from the store, the vendored layout or a
// registry.
func (r *upstream) manifest(ctx context.Context, digest string) ([]byte, error) {
	if !imageref.IsDigest(digest) {
		return nil, fmt.Errorf("manifest digest %q: only sha256 is supported", digest)
	}
	data, err := r.client.Store.Read(digest, r.client.Limits.withDefaults().Manifest)
	if err == nil || !canRefetch(err) {
		return data, err
	}
	if data, err := r.client.vendored().manifest(ctx, digest); err == nil {
		return data, nil
	}
	if r.offline {
		return nil, &OfflineError{Missing: "manifest " + digest}
	}
	if data, err = r.getManifest(ctx, digest, digest); err != nil {
		return nil, err
	}
	return data, r.storeManifest(ctx, digest, data)
}

// blob opens a blob in the store. It first fetches the blob if the store does not have it. A lock prevents
// concurrent calls of removeBlob from removing the blob before it is open.
func (r *upstream) blob(ctx context.Context, digest string, size int64) (*store.Verifier, error) {
	if have, err := r.client.Store.Size(digest); err != nil || have != size {
		if v, err := r.client.vendored().blob(ctx, digest, size); err == nil {
			return v, nil
		}
	}
	lock := r.client.lockFor(digest)
	lock.Lock()
	defer lock.Unlock()
	if err := r.ensureLocked(ctx, digest, size); err != nil {
		return nil, err
	}
	return r.client.Store.Get(digest)
}

// removeBlob removes from the store a blob that was fetched only to be copied.
func (c *Client) removeBlob(digest string) error {
	lock := c.lockFor(digest)
	lock.Lock()
	defer lock.Unlock()
	return c.Store.Remove(digest)
}

// canRefetch reports whether an error of the store can be fixed by fetching the content again.
func canRefetch(err error) bool {
	var corrupt *store.CorruptError
	return errors.Is(err, fs.ErrNotExist) || errors.As(err, &corrupt)
}

// storeManifest stores a manifest. It replaces a damaged copy.
func (r *upstream) storeManifest(ctx context.Context, digest string, data []byte) error {
	if _, err := r.client.Store.Read(digest, int64(len(data))); err == nil {
		return nil
	}
	if err := r.client.Store.Remove(digest); err != nil {
		return err
	}
	return r.client.Store.Put(ctx, digest, bytes.NewReader(data), int64(len(data)))
}

// getManifest fetches a manifest from the first candidate repository that has it.
func (r *upstream) getManifest(ctx context.Context, ref, digest string) ([]byte, error) {
	var errs []error
	for _, repo := range r.repos {
		data, err := r.client.fetchManifest(ctx, repo, ref)
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
	return nil, joinAttemptErrors(errs)
}

// fetchManifest fetches the manifest with a tag or digest from a repository.
func (c *Client) fetchManifest(ctx context.Context, repo name.Repository, ref string) ([]byte, error) {
	connection, err := c.connect(ctx, repo)
	if err != nil {
		return nil, err
	}
	var from name.Reference = repo.Tag(ref)
	if imageref.IsDigest(ref) {
		from = repo.Digest(ref)
	}
	found, err := connection.puller.Get(ctx, from)
	if err != nil {
		return nil, connection.redact(err)
	}
	return found.Manifest, nil
}

// checkManifestText returns an error if data is not a manifest with this digest: a proxy may send
// an HTML page. An empty digest is not compared. ref is the name of the manifest in errors.
func checkManifestText(data []byte, ref, digest string) error {
	if got := store.DigestOf(data); digest != "" && got != digest {
		return fmt.Errorf("manifest %s: %w", ref, &store.MismatchError{Got: got, WantSize: -1})
	}
	if _, err := manifestKind(data); err != nil {
		return fmt.Errorf("manifest %s: %w", ref, err)
	}
	return nil
}

// ensureBlob fetches a blob if the store has no complete copy and the vendored layout does not
// contain it. A client fetches each blob only once.
func (r *upstream) ensureBlob(ctx context.Context, digest string, size int64) error {
	lock := r.client.lockFor(digest)
	lock.Lock()
	defer lock.Unlock()
	return r.ensureLocked(ctx, digest, size)
}

// ensureLocked is ensureBlob for callers that hold the lock of the digest.
func (r *upstream) ensureLocked(ctx context.Context, digest string, size int64) error {
	if have, err := r.client.Store.Size(digest); err == nil {
		if have == size {
			return nil
		}
		if err := r.client.Store.Remove(digest); err != nil { // the copy has the wrong size
			return err
		}
	}
	if v, err := r.client.vendored().blob(ctx, digest, size); err == nil {
		return v.Close() // the size is right; the content is verified when it is read
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
	return joinAttemptErrors(errs)
}

// download fetches one blob into the store. It starts again after an interrupted transfer.
func (r *upstream) download(ctx context.Context, repo name.Repository, digest string, size int64) error {
	retry := r.client.Retry.withDefaults()
	for attempt := 1; ; attempt++ {
		t := &transfer{size: size, progress: func(done int64) {
			r.client.report(Progress{Image: r.image, Digest: digest, Done: done, Total: size})
		}}
		err := r.fetchBlob(ctx, repo, digest, t)
		var status *statusError
		switch {
		case err == nil || ctx.Err() != nil || errors.As(err, &status) || !t.broken && attempt == 1:
			return err
		case attempt < retry.Attempts:
			if err := sleepContext(ctx, retry.backoff(attempt)); err != nil {
				return err
			}
		case errors.Is(err, errBroken):
			return fmt.Errorf("the transfer was interrupted %d times, last after %d of %d bytes: %w", attempt, t.done, size, account{repo: repo}.redact(err))
		default:
			return err
		}
	}
}

// fetchBlob fetches a blob from one repository into the store. t reads the response and counts its
// bytes.
func (r *upstream) fetchBlob(ctx context.Context, repo name.Repository, digest string, t *transfer) error {
	connection, err := r.client.connect(ctx, repo)
	if err != nil {
		return err
	}
	res, err := connection.get(context.WithValue(ctx, unboundedKey{}, true), "blobs", digest)
	if err == nil {
		t.body = res.Body
		defer t.body.Close()
		err = transport.CheckError(res, http.StatusOK)
	}
	if err != nil {
		return connection.redact(err)
	}
	err = r.client.Store.Put(ctx, digest, t, t.size)
	var mismatch *store.MismatchError
	if errors.As(err, &mismatch) {
		return fmt.Errorf("%s sent wrong content: %w", repo.RegistryStr(), err)
	}
	return err
}

// errBroken means that the connection was lost during a transfer.
var errBroken = errors.New("connection lost")

// transfer reads the body of a response whose size is known.
type transfer struct {
	body       io.ReadCloser
	size, done int64
	broken     bool // the body ended before the expected size
	progress   func(done int64)
}

// Read implements io.Reader. It returns an error if the body has another size than expected.
func (t *transfer) Read(p []byte) (int, error) {
	n, err := t.body.Read(p)
	t.done += int64(n)
	if n > 0 {
		t.progress(min(t.done, t.size))
	}
	switch {
	case t.done > t.size:
		return 0, &store.MismatchError{WantSize: t.size, GotSize: t.done}
	case err == nil:
		return n, nil
	case t.done == t.size:
		return n, io.EOF // complete; the store verifies the content
	}
	t.broken = true
	if isTemporaryError(err) && !errors.Is(err, io.EOF) || errors.Is(err, errStalled) {
		return n, fmt.Errorf("%w: %w", errBroken, err)
	}
	return n, &store.MismatchError{WantSize: t.size, GotSize: t.done}
}

// joinAttemptErrors joins the errors from all candidate repositories. The last one is from the
// original registry.
func joinAttemptErrors(errs []error) error {
	if len(errs) == 0 {
		return errors.New("no registry or mirror to fetch it from")
	}
	last := errs[len(errs)-1]
	if len(errs) == 1 {
		return last
	}
	if len(errs) == 2 {
		return fmt.Errorf("%w (1 mirror also failed: %w)", last, errs[0])
	}
	return fmt.Errorf("%w (%d mirrors also failed, the first: %w)", last, len(errs)-1, errs[0])
}

// fetchAll fetches layers into the store, several concurrently.
func (r *upstream) fetchAll(ctx context.Context, layers []Layer) error {
	for _, l := range layers {
		if !r.client.Store.Has(l.Digest) {
			r.client.report(Progress{Image: r.image, Digest: l.Digest, Total: l.Size})
		}
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(r.client.Retry.withDefaults().Parallel)
	for _, l := range layers {
		work.Go(func() error {
			if err := r.ensureBlob(ctx, l.Digest, l.Size); err != nil {
				return fmt.Errorf("layer %s: %w", l.Digest, err)
			}
			return nil
		})
	}
	return work.Wait()
}
