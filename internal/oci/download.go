package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/store"
)

// downloads is a kind of record in the store. There is one such record for each downloaded URL.
const downloads = "downloads"

// download is a record of the last download of a URL.
type download struct {
	Digest   string `json:"digest"`
	ETag     string `json:"etag,omitempty"`     // of the response
	Modified string `json:"modified,omitempty"` // Last-Modified of the response
}

// Downloaded is a file from an HTTP server.
type Downloaded struct {
	Digest string // "sha256:…"

	data  []byte // nil: in the store
	store *store.Store
	limit int64
}

// Read returns the content.
func (d *Downloaded) Read() ([]byte, error) {
	if d.data != nil {
		return d.data, nil
	}
	return d.store.Read(d.Digest, d.limit)
}

// Download returns the file at a URL, of at most limit bytes. It uses HTTPS. For loopback addresses and for
// hosts in Insecure, it also accepts HTTP. If the server reports the file as unchanged, or with Offline, it
// returns the stored content. If digest is not empty, the content must have this digest. Stored content with
// this digest is returned without a request.
func (c *Client) Download(ctx context.Context, at, digest string, limit int64) (*Downloaded, error) {
	if digest != "" && !imageref.IsDigest(digest) {
		return nil, fmt.Errorf("digest %q: only sha256 is supported", digest)
	}
	if digest != "" && c.Store.Has(digest) {
		return &Downloaded{Digest: digest, store: c.Store, limit: limit}, nil
	}
	var last download // zero with a digest, because the stored content has another one
	if raw, err := c.Store.Record(downloads, at); digest == "" && err == nil && json.Unmarshal(raw, &last) == nil && !c.Store.Has(last.Digest) {
		last = download{}
	}
	if c.Offline {
		if last.Digest == "" {
			return nil, &OfflineError{Missing: at}
		}
		return &Downloaded{Digest: last.Digest, store: c.Store, limit: limit}, nil
	}
	res, err := c.get(ctx, at, last, limit)
	if err != nil {
		return nil, fmt.Errorf("downloading %s: %w", at, err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotModified && last.Digest != "" {
		return &Downloaded{Digest: last.Digest, store: c.Store, limit: limit}, nil
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("downloading %s: %w", at, &statusError{host: res.Request.URL.Host, status: res.StatusCode})
	}
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("downloading %s: %w", at, err)
	}
	d := &Downloaded{Digest: store.DigestOf(data), data: data, store: c.Store, limit: limit}
	if digest != "" && d.Digest != digest {
		return nil, fmt.Errorf("downloading %s: the content has digest %s, expected %s", at, d.Digest, digest)
	}
	record, err := json.Marshal(download{d.Digest, res.Header.Get("ETag"), res.Header.Get("Last-Modified")})
	if err == nil && c.Store.Put(ctx, d.Digest, bytes.NewReader(data), limit) == nil {
		_ = c.Store.PutRecord(downloads, at, record) // without a record, the next run downloads again
	}
	return d, nil
}

// get sends the request for a URL. If the file was downloaded before, the request is conditional.
func (c *Client) get(ctx context.Context, at string, last download, limit int64) (*http.Response, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, errors.New("not a URL")
	}
	by, err := findReferrer(ctx, u)
	if err != nil {
		return nil, err
	}
	base, login, err := c.connectTo(u, by, limit)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	if last.ETag != "" {
		req.Header.Set("If-None-Match", last.ETag)
	}
	if last.Modified != "" {
		req.Header.Set("If-Modified-Since", last.Modified)
	}
	if login.login.config.Username != "" {
		req.SetBasicAuth(login.login.config.Username, login.login.config.Password)
	}
	client := http.Client{Transport: base, CheckRedirect: func(*http.Request, []*http.Request) error { return nil }} // the transport checks redirects
	res, err := client.Do(req)
	if err != nil {
		return nil, login.redact(err)
	}
	return res, nil
}

// connectTo returns the transport for a server that is not a registry, and the login for its host. A response
// has at most limit bytes. by is the server that refers to u; see [ReferredBy].
func (c *Client) connectTo(u *url.URL, by referrer, limit int64) (http.RoundTripper, account, error) {
	registry, err := name.NewRegistry(u.Host, name.StrictValidation)
	if err != nil {
		return nil, account{}, fmt.Errorf("%q is not a host", u.Host)
	}
	host := registry.Repo("charts") // only the host is used
	addr, _ := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || addr.Unmap().IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !local && !c.isInsecure(host)) {
		return nil, account{}, fmt.Errorf("%s is not https", u.Scheme)
	}
	base, err := c.transportWithin(host, by, limit)
	return base, account{host, c.Credentials.find(host)}, err
}

// referrerKey is the context key for the URL of the file that refers to a download.
type referrerKey struct{}

// ReferredBy returns a context for downloading from URLs that the file at this URL contains. As with
// redirects, a server outside private networks cannot refer to a host in a private network.
func ReferredBy(ctx context.Context, at string) context.Context {
	return context.WithValue(ctx, referrerKey{}, at)
}

// referrer is a server that refers to a host other than itself. The zero value means none.
type referrer struct {
	host    string // host and port
	private bool   // whether it is in a private network
}

// findReferrer returns the server that refers to u. If u must not be downloaded because of it, this is an error.
func findReferrer(ctx context.Context, u *url.URL) (referrer, error) {
	at, _ := ctx.Value(referrerKey{}).(string)
	from, err := url.Parse(at)
	if err != nil || from.Host == "" || from.Hostname() == u.Hostname() {
		return referrer{}, nil //nolint:nilerr // without a referrer, the user chose the URL
	}
	by := referrer{from.Host, isPrivate(from.Hostname())}
	if !by.private {
		addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", from.Hostname())
		by.private = err == nil && slices.ContainsFunc(addresses, isPrivateAddress)
	}
	if isPrivate(u.Hostname()) && !by.private {
		return by, fmt.Errorf("%s refers to the private address %s: not downloaded", from.Host, u.Host)
	}
	return by, nil
}
