package sign

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/sigstore/sigstore-go/pkg/sign"
)

// Services are those that vouch for an identity: an authority for certificates
// (Fulcio), and a log (Rekor, in its first version) or a clock (a timestamp
// authority), or both.
type Services struct {
	Fulcio    string // URL
	Rekor     string // URL; may be empty
	Timestamp string // URL with path; may be empty
	Token     string // what the identity is proved by: a token of OpenID Connect
}

// A service that fails is asked again so often, and has so long to answer.
const (
	attempts = 2
	patience = 30 * time.Second
)

// Keyless returns a signer with a key that is used for one run, and for which an
// authority issues a certificate when it is first used. Everything that is
// signed is made known to the log, if there is one.
func Keyless(s Services) (*Signer, error) {
	if s.Token == "" {
		return nil, errors.New("an identity is proved by a token, and there is none")
	}
	if s.Rekor == "" && s.Timestamp == "" {
		return nil, errors.New("neither a log nor a timestamp authority is named, so nothing would say when it was signed")
	}
	optional := slices.DeleteFunc([]string{s.Rekor, s.Timestamp}, func(service string) bool { return service == "" })
	for _, service := range append(optional, s.Fulcio) {
		u, err := url.Parse(service)
		if err == nil {
			err = private(u)
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
	out.options.CertificateProvider = &certificates{from: sign.NewFulcio(&sign.FulcioOptions{BaseURL: s.Fulcio, Retries: attempts, Transport: guarded{}})}
	out.options.CertificateProviderOptions = &sign.CertificateProviderOptions{IDToken: s.Token}
	if s.Rekor != "" {
		out.options.TransparencyLogs = []sign.Transparency{sign.NewRekor(&sign.RekorOptions{BaseURL: s.Rekor, Retries: attempts})}
	}
	if s.Timestamp != "" {
		out.options.TimestampAuthorities = []*sign.TimestampAuthority{
			sign.NewTimestampAuthority(&sign.TimestampAuthorityOptions{URL: s.Timestamp, Retries: attempts, Transport: guarded{}}),
		}
	}
	return out, nil
}

// certificates asks for a certificate once.
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
		return nil, fmt.Errorf("asking for a certificate: %w", err)
	}
	return c.cert, nil
}

// guarded keeps a token from going over a wire in the clear, wherever a service
// redirects to.
type guarded struct{}

// RoundTrip implements http.RoundTripper.
func (guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := private(r.URL); err != nil {
		return nil, err
	}
	return http.DefaultTransport.RoundTrip(r)
}

// private sees that a service is asked in private: over TLS, or on this machine.
func private(u *url.URL) error {
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return errors.New("want an https URL")
	}
	return nil
}
