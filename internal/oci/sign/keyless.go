package sign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/sigstore/sigstore-go/pkg/sign"
)

// Services are the external services for signing with an identity: a certificate authority
// (Fulcio), and at least one of a transparency log (Rekor v1) and a timestamp authority.
type Services struct {
	Fulcio    string // URL of the certificate authority
	Rekor     string // URL of the transparency log; may be empty
	Timestamp string // URL of the timestamp authority with its path; may be empty
	Token     string // OpenID Connect token of the identity
}

// Retries and timeout of requests to services.
const (
	maxAttempts    = 2
	requestTimeout = 30 * time.Second
)

// maxResponse is the maximum size of a response in bytes. Log entries are small: they contain
// hashes and an inclusion proof.
const maxResponse = 1 << 20

// Keyless returns a signer with a temporary key. The signer requests a certificate for the first signature.
// If s has a transparency log, all signatures are published in the log.
func Keyless(s Services) (*Signer, error) {
	if s.Token == "" {
		return nil, errors.New("no identity token")
	}
	if s.Rekor == "" && s.Timestamp == "" {
		return nil, errors.New("need a transparency log or a timestamp authority to prove the time of signing")
	}
	optional := slices.DeleteFunc([]string{s.Rekor, s.Timestamp}, func(service string) bool { return service == "" })
	for _, service := range append(optional, s.Fulcio) {
		u, err := url.Parse(service)
		if err == nil {
			err = checkConfidential(u)
		}
		if err != nil {
			return nil, fmt.Errorf("service %q: %w", service, err)
		}
	}
	pair, err := sign.NewEphemeralKeypair(nil)
	if err != nil {
		return nil, err
	}
	out := &Signer{pair: pair}
	out.options.CertificateProvider = &certificates{from: sign.NewFulcio(&sign.FulcioOptions{BaseURL: s.Fulcio, Retries: maxAttempts, Transport: guardedTransport{}})}
	out.options.CertificateProviderOptions = &sign.CertificateProviderOptions{IDToken: s.Token}
	if s.Rekor != "" {
		client, err := newRekor(s.Rekor)
		if err != nil {
			return nil, err
		}
		out.options.TransparencyLogs = []sign.Transparency{sign.NewRekor(&sign.RekorOptions{Client: client})}
	}
	if s.Timestamp != "" {
		out.options.TimestampAuthorities = []*sign.TimestampAuthority{
			sign.NewTimestampAuthority(&sign.TimestampAuthorityOptions{URL: s.Timestamp, Retries: maxAttempts, Transport: guardedTransport{}}),
		}
	}
	return out, nil
}

// certificates requests a certificate and caches it.
type certificates struct {
	from sign.CertificateProvider
	cert []byte
}

// GetCertificate implements sign.CertificateProvider.
func (c *certificates) GetCertificate(ctx context.Context, pair sign.Keypair, opts *sign.CertificateProviderOptions) ([]byte, error) {
	if c.cert != nil {
		return c.cert, nil
	}
	var err error
	c.cert, err = c.from.GetCertificate(ctx, pair, opts)
	if err != nil {
		return nil, fmt.Errorf("requesting a certificate: %w", err)
	}
	return c.cert, nil
}

// guardedTransport refuses to send a token without TLS, also after redirects, and limits the size
// of responses.
type guardedTransport struct{}

// RoundTrip implements http.RoundTripper.
func (guardedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := checkConfidential(r.URL); err != nil {
		return nil, err
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxResponse), resp.Body}
	return resp, nil
}

// checkConfidential returns an error unless a URL uses TLS or a loopback address.
func checkConfidential(u *url.URL) error {
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return errors.New("must be an https URL")
	}
	return nil
}
