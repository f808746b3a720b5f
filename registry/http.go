package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	maxRedirects = 5
	minRate      = 1 << 10 // bytes a second, over Retry.Stall
)

// conn is an authenticated way to one repository.
type conn struct {
	http  *http.Client
	login credential
}

// manifestTypes are the media types that are understood.
func manifestTypes() []string {
	return []string{
		string(types.OCIImageIndex), string(types.DockerManifestList),
		string(types.OCIManifestSchema1), string(types.DockerManifestSchema2),
	}
}

// connect returns the way to a repository: the registry is asked how it wants
// to be spoken to, and for a token.
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
	login := c.Credentials.find(repo)
	base, err := c.transport(repo)
	if err != nil {
		return nil, err
	}
	auth, err := transport.NewWithContext(ctx, repo.Registry, authn.FromConfig(login.config), base, []string{repo.Scope(transport.PullScope)})
	if err != nil {
		return nil, clean(err, repo.RegistryStr(), login)
	}
	made := &conn{login: login, http: &http.Client{Transport: auth, CheckRedirect: checkRedirect}}
	c.conns.Store(repo.Name(), made)
	return made, nil
}

// transport returns what carries requests to a repository, with retries and without
// authentication. Proxies are taken from the environment, as net/http does.
func (c *Client) transport(repo name.Repository) (http.RoundTripper, error) {
	retry := c.Retry.withDefaults()
	config, err := c.tlsConfig(repo)
	if err != nil {
		return nil, err
	}
	base := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: retry.Stall, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   retry.Parallel,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: retry.Stall,
		TLSClientConfig:       config,
	}
	return transport.NewUserAgent(&retryTransport{inner: base, retry: retry}, cmp.Or(c.UserAgent, "quayside")), nil
}

// checkRedirect follows a few redirects, as registries use them to hand out
// blobs, but never from HTTPS to HTTP, nor from a public host into a private
// network. Credentials are only ever added for the registry itself.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("redirected more than %d times", maxRedirects)
	case req.URL.Scheme != "https" && (req.URL.Scheme != "http" || from.Scheme == "https"):
		return fmt.Errorf("redirected from %s to %s, which is not followed", from.Scheme, req.URL.Scheme)
	case req.URL.Hostname() != from.Hostname() && private(req.URL.Hostname()) && !private(from.Hostname()):
		return fmt.Errorf("redirected from %s to the private address %s, which is not followed", from.Host, req.URL.Host)
	}
	return nil
}

func private(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified())
}

// fetchText gets one manifest, or another list of the same form: what is
// "manifests" or "referrers". The header is the answer's.
func (c *Client) fetchText(ctx context.Context, repo name.Repository, what, ref string) ([]byte, http.Header, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	res, err := c.get(ctx, repo, what, ref, http.Header{"Accept": {strings.Join(manifestTypes(), ", ")}})
	if err != nil {
		return nil, nil, err
	}
	limit := c.Limits.withDefaults().Manifest
	body := watch(res.Body, c.Retry.withDefaults().Stall, cancel)
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, nil, fmt.Errorf("manifest %s: %w", ref, stalledOr(ctx, err, repo.RegistryStr()))
	}
	if int64(len(data)) > limit {
		return nil, nil, fmt.Errorf("manifest %s: larger than %d bytes", ref, limit)
	}
	return data, res.Header, nil
}

// get sends one request below a repository. Any answer but 200 and 206 is an
// error.
func (c *Client) get(ctx context.Context, repo name.Repository, what, ref string, header http.Header) (*http.Response, error) {
	way, err := c.connect(ctx, repo)
	if err != nil {
		return nil, err
	}
	host := repo.RegistryStr()
	url := fmt.Sprintf("%s://%s/v2/%s/%s/%s", repo.Scheme(), host, repo.RepositoryStr(), what, ref)
	req, err := http.NewRequestWithContext(context.WithValue(ctx, streamed{}, true), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	res, err := way.http.Do(req)
	if err != nil {
		return nil, stalledOr(ctx, clean(err, host, way.login), host)
	}
	if res.StatusCode == http.StatusOK || res.StatusCode == http.StatusPartialContent {
		return res, nil
	}
	defer res.Body.Close()
	err = clean(transport.CheckError(res, http.StatusOK), host, way.login)
	var status *statusError
	if wait, ok := retryAfter(res); ok && errors.As(err, &status) {
		status.hint += fmt.Sprintf(" (it asks to be left alone for %s)", wait.Round(time.Second))
	}
	return nil, err
}

var errStalled = errors.New("stalled")

// stalledOr returns what a cancelled read really was.
func stalledOr(ctx context.Context, err error, host string) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("%s sends nothing, or next to nothing: %w", host, errStalled)
	}
	return err
}

// watchdog cancels a request whose body arrives too slowly.
type watchdog struct {
	r    io.ReadCloser
	seen atomic.Int64
	done chan struct{}
}

// watch returns r, read under guard: less than minRate over a window cancels
// with errStalled.
func watch(r io.ReadCloser, window time.Duration, cancel context.CancelCauseFunc) io.ReadCloser {
	w := &watchdog{r: r, done: make(chan struct{})}
	go w.guard(window, cancel)
	return w
}

func (w *watchdog) guard(window time.Duration, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(window)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if float64(w.seen.Swap(0)) < minRate*window.Seconds() {
				cancel(errStalled)
				return
			}
		case <-w.done:
			return
		}
	}
}

// Read implements io.Reader.
func (w *watchdog) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.seen.Add(int64(n))
	return n, err
}

// Close ends the guard and closes the body. It must be called once.
func (w *watchdog) Close() error {
	close(w.done)
	return w.r.Close()
}
