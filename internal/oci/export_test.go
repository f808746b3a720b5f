package oci

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
)

// Unexported constants and functions for tests.

const (
	BundleKind    = bundleType
	NotaryKind    = notarySignatureType
	MaxPages      = maxPages
	MaxRedirects  = maxRedirects
	MaxSignatures = maxSignatures
)

func CheckRedirect(req *http.Request) error { return checkRedirect(req, false) }

// Connector returns a function that checks connections of clients of registry. The function returns an
// error if a client must not connect to host at address. For a connection through a proxy, host is empty.
func Connector(registry string) func(host, address string) error {
	t := &roundTripper{registry: registry}
	return func(host, address string) error {
		ctx := context.Background()
		if host != "" {
			ctx = context.WithValue(ctx, directKey{}, host)
		}
		return t.checkAddress(ctx, "tcp", address, nil)
	}
}

// ReferredConnector returns the check of a connection to host at address by a download from host that a file
// at the URL by refers to.
func ReferredConnector(by, host string) (func(address string) error, error) {
	from, err := findReferrer(ReferredBy(context.Background(), by), &url.URL{Scheme: "https", Host: host})
	t := &roundTripper{registry: cmp.Or(from.host, host)}
	t.private.Store(from.private)
	return func(address string) error {
		return t.checkAddress(context.WithValue(context.Background(), directKey{}, host), "tcp", address, nil)
	}, err
}

func LoginKeys(repo name.Repository) []string { return loginKeys(repo) }

func RetryAfter(res *http.Response) (time.Duration, bool) { return retryAfter(res) }

func (c *Client) Repository(s string) (name.Repository, error) { return c.repository(s) }

func (m Mirrors) Places(repo string, byDigest bool) ([]string, error) {
	return m.locations(repo, byDigest)
}

func (m Mirrors) IsInsecure(repo string) bool { return m.isInsecure(repo) }
