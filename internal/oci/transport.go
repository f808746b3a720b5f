package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

const (
	maxRedirects = 5
	minRate      = 1 << 10 // minimum bytes per second, on average over Retry.Stall
)

// roundTripper sends the requests of go-containerregistry. It retries after temporary errors, obeys
// Retry-After, refuses unsafe redirects, and limits the size and duration of every response.
type roundTripper struct {
	inner    http.RoundTripper
	retry    Retry
	limit    int64       // maximum bytes of a response; does not apply to blobs
	registry string      // host and port of the registry
	private  atomic.Bool // whether the registry has an address in a private network
}

// transport returns the transport for a repository, without authentication. As in net/http, the
// environment determines the proxy.
func (c *Client) transport(repo name.Repository) (http.RoundTripper, error) {
	return c.transportWithin(repo, referrer{}, c.Limits.withDefaults().Manifest)
}

// transportWithin is like transport, with limit as the maximum number of bytes of a response. If by is not
// zero, connections to private networks are allowed only if by is in a private network.
func (c *Client) transportWithin(repo name.Repository, by referrer, limit int64) (http.RoundTripper, error) {
	retry := c.Retry.withDefaults()
	config, err := c.tlsConfig(repo)
	if err != nil {
		return nil, err
	}
	own := &roundTripper{retry: retry, limit: limit, registry: cmp.Or(by.host, repo.RegistryStr())}
	own.private.Store(by.private)
	own.inner = &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: retry.Stall, KeepAlive: 30 * time.Second, ControlContext: own.checkAddress}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   retry.Parallel,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: retry.Stall,
		TLSClientConfig:       config,
	}
	return transport.NewUserAgent(own, cmp.Or(c.UserAgent, "quayside")), nil
}

// RoundTrip implements http.RoundTripper. Requests with a body are not retried.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := checkRedirect(req, t.private.Load()); err != nil {
		return nil, err
	}
	if proxy, err := http.ProxyFromEnvironment(req); err == nil && proxy == nil {
		req = req.WithContext(context.WithValue(req.Context(), directKey{}, req.URL.Host))
	}
	for attempt := 1; ; attempt++ {
		res, err := t.send(req)
		if req.Body != nil && req.Body != http.NoBody || attempt >= t.retry.Attempts || !isTemporary(res, err) {
			return res, err
		}
		wait := t.retry.backoff(attempt)
		if res != nil {
			delay, ok := retryAfter(res)
			if delay > t.retry.MaxWait {
				defer res.Body.Close()
				return nil, &retryLaterError{wait: delay, err: transport.CheckError(res)}
			}
			if ok {
				wait = delay
			}
			_, _ = io.CopyN(io.Discard, res.Body, 64<<10) // read the rest, so that the connection can be reused
			res.Body.Close()
		}
		if err := sleepContext(req.Context(), wait); err != nil {
			return nil, err
		}
	}
}

// retryLaterError means that a registry requests a longer delay than [Retry] allows.
type retryLaterError struct {
	wait time.Duration
	err  error
}

// Error implements error.
func (e *retryLaterError) Error() string { return e.err.Error() }

// Unwrap returns the error of the response.
func (e *retryLaterError) Unwrap() error { return e.err }

// unboundedKey is the context key for requests of blobs, whose responses are not limited here: the
// reader of the blob checks the size.
type unboundedKey struct{}

func (t *roundTripper) send(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	res, err := t.inner.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	b := &boundedBody{ReadCloser: res.Body, host: req.URL.Host, ctx: ctx, cancel: cancel, limit: t.limit, unbounded: ctx.Value(unboundedKey{}) != nil}
	go b.watch(t.retry.Stall)
	res.Body, res.Request = b, req
	return res, nil
}

var errStalled = errors.New("stalled")

// boundedBody is a response body. Reading returns an error if the body is too long or too slow.
type boundedBody struct {
	io.ReadCloser
	host      string
	ctx       context.Context //nolint:containedctx // context of the request
	cancel    context.CancelCauseFunc
	limit     int64
	unbounded bool
	read      int64
	recent    atomic.Int64 // bytes received since the last check
}

// watch cancels the request if the response is slower than minRate in any period of length window.
func (b *boundedBody) watch(window time.Duration) {
	tick := time.NewTicker(window)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if float64(b.recent.Swap(0)) < minRate*window.Seconds() {
				b.cancel(errStalled)
				return
			}
		case <-b.ctx.Done():
			return
		}
	}
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.recent.Add(int64(n))
	if b.read += int64(n); b.read > b.limit && !b.unbounded {
		return 0, fmt.Errorf("the response exceeds the limit of %d bytes", b.limit)
	}
	if err != nil && errors.Is(context.Cause(b.ctx), errStalled) {
		err = fmt.Errorf("%s sends no data, or too slowly: %w", b.host, errStalled)
	}
	return n, err
}

// Close ends the request.
func (b *boundedBody) Close() error {
	b.cancel(nil)
	return b.ReadCloser.Close()
}

// directKey is the context key for the host of a request that is sent without a proxy.
type directKey struct{}

// checkAddress returns an error if a public registry refers the client to an address in a private network,
// in a redirect or as the address of its token server. The address is that of the resolved host name. If
// the registry itself is in a private network, all addresses are allowed.
func (t *roundTripper) checkAddress(ctx context.Context, _, address string, _ syscall.RawConn) error {
	host, direct := ctx.Value(directKey{}).(string)
	ip, err := netip.ParseAddrPort(address)
	if err != nil || !direct || !isPrivateAddress(ip.Addr()) {
		return nil //nolint:nilerr // an address that is not IP is no network
	}
	if host == t.registry {
		t.private.Store(true)
		return nil
	}
	if t.private.Load() {
		return nil
	}
	return fmt.Errorf("%s of registry %s has the private address %s: not connected", host, t.registry, ip.Addr())
}

// checkRedirect returns an error if a redirect must not be followed. It limits the number of
// redirects, and refuses redirects from HTTPS to HTTP and from a public host to a private network. A
// form is never redirected, because the form for a token server may contain an identity token.
// Credentials are added only for the registry itself. private is true if the registry is known to be in a
// private network although its name does not show it.
func checkRedirect(req *http.Request, private bool) error {
	first, n := req, 0
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
		n++
	}
	from, to := first.URL, req.URL
	switch {
	case n == 0:
		return nil
	case n > maxRedirects:
		return fmt.Errorf("redirected more than %d times", maxRedirects)
	case to.Scheme != "https" && (to.Scheme != "http" || from.Scheme == "https"):
		return fmt.Errorf("redirect from %s to %s not followed", from.Scheme, to.Scheme)
	case to.Hostname() != from.Hostname() && isPrivate(to.Hostname()) && !private && !isPrivate(from.Hostname()):
		return fmt.Errorf("redirect from %s to the private address %s not followed", from.Host, to.Host)
	case req.Body != nil && req.Header.Get("Content-Type") == "application/x-www-form-urlencoded" && (from.Host != to.Host || from.Scheme != to.Scheme):
		return fmt.Errorf("credentials are not forwarded to %s", to.Host)
	}
	return nil
}

// isPrivate reports whether the name of a host shows that the host is in a private network. It also returns
// true for a name without a dot, which is in the local network, and for a name that ends in a number,
// because some resolvers parse it as an IPv4 address.
func isPrivate(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		return isPrivateAddress(ip)
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil || last == host || strings.Trim(last, "0123456789") == "" || slices.Contains([]string{"localhost", "localdomain", "local", "internal", "svc"}, last) || host == "home.arpa" || strings.HasSuffix(host, ".home.arpa")
}

// isPrivateAddress reports whether an address is not for public hosts: the special-purpose addresses
// of IANA (RFC 6890), and addresses that contain such an IPv4 address.
func isPrivateAddress(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	all := ip.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(ip): // NAT64
		return isPrivateAddress(netip.AddrFrom4([4]byte(all[12:])))
	case netip.MustParsePrefix("2002::/16").Contains(ip): // 6to4
		return isPrivateAddress(netip.AddrFrom4([4]byte(all[2:])))
	}
	for _, prefix := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3",
		"::/96", "64:ff9b:1::/48", "100::/64", "fc00::/7", "fe80::/9", "ff00::/8",
	} {
		if netip.MustParsePrefix(prefix).Contains(ip) {
			return true
		}
	}
	return false
}

// isTemporary reports whether a retry may help.
func isTemporary(res *http.Response, err error) bool {
	if err != nil {
		return isTemporaryError(err)
	}
	switch res.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

func isTemporaryError(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var timeout net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// retryAfter returns the delay that the registry requests, and whether it requests one.
func retryAfter(res *http.Response) (time.Duration, bool) {
	text := res.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 1<<30)) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at)), true
	}
	return 0, false
}

// backoff returns the delay after this number of failed attempts.
func (r Retry) backoff(attempts int) time.Duration {
	return min(r.Wait<<(attempts-1), r.MaxWait)
}

func sleepContext(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
