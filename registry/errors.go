package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/inert"
)

// Error is a fault of one image: where it was looked for, and what is wrong.
// It never holds credentials, nor text that a registry chose.
type Error struct {
	Image  string // "quay.io/org/name:tag", "oci:catalogs/x"
	Status int    // the registry's HTTP status, 0 where it is not about one
	Err    error
}

// Error returns `image "…": what is wrong`.
func (e *Error) Error() string { return fmt.Sprintf("image %q: %v", e.Image, e.Err) }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// OfflineError says what would have to be fetched.
type OfflineError struct {
	Missing string // "manifest sha256:…", "layer sha256:…", "tag \"v1\""
}

// Error names what is missing.
func (e *OfflineError) Error() string {
	return e.Missing + " is not in the local store, and nothing is fetched offline"
}

// NotFound reports whether the registry answered that it has no such image.
func (e *Error) NotFound() bool { return e.Status == http.StatusNotFound }

// statusError is an answer of a registry that is not the one hoped for.
type statusError struct {
	host   string
	status int
	code   string // "MANIFEST_UNKNOWN"; empty where it said none
	hint   string
}

func (e *statusError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s answered %d %s", e.host, e.status, http.StatusText(e.status))
	if e.code != "" {
		fmt.Fprintf(&b, " (%s)", e.code)
	}
	if e.hint != "" {
		b.WriteString(": " + e.hint)
	}
	return b.String()
}

// hintFor says what the user can do about a status.
func hintFor(status int, host string, login credential) string {
	again := fmt.Sprintf(`log in with "podman login %s" or "docker login %s"`, host, host)
	switch {
	case status == http.StatusUnauthorized && login.found():
		return "it refused the credentials of " + login.origin + "; " + again
	case status == http.StatusUnauthorized && login.note != "":
		return login.note + "; " + again
	case status == http.StatusUnauthorized:
		return again
	case status == http.StatusForbidden && login.found():
		return "the account of " + login.origin + " may not do this"
	case status == http.StatusForbidden:
		return "it may need an account; " + again
	case status == http.StatusNotFound && !login.found():
		return "there is no such image, or it is private; for a private one " + again
	case status == http.StatusNotFound:
		return "there is no such image, or the account of " + login.origin + " may not see it"
	case status == http.StatusTooManyRequests:
		return "it limits how often it may be asked; wait, or log in if you have not"
	case status >= 500:
		return "the fault is the registry's; try again later"
	default:
		return ""
	}
}

// wrap says which image err is about, once.
func wrap(image string, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	e := &Error{Image: image, Err: err}
	var status *statusError
	if errors.As(err, &status) {
		e.Status = status.status
	}
	return e
}

// clean takes out of an error of the HTTP client whatever may hold a secret:
// URLs (redirect targets are signed in their query), bodies of answers, token
// responses.
func clean(err error, host string, login credential) error {
	if err == nil {
		return nil
	}
	host = imageref.Host(host)
	var own *statusError
	if errors.As(err, &own) {
		return own
	}
	var unproven *tls.CertificateVerificationError
	if errors.As(err, &unproven) { // whatever plain HTTP was answered, which is tried on loopback
		return fmt.Errorf("asking %s: %w: put the certificate of the authority that issued it into ~/.config/containers/certs.d/%s/ca.crt", host, &noURLError{unproven}, host)
	}
	var terr *transport.Error
	if errors.As(err, &terr) {
		code := ""
		if len(terr.Errors) > 0 {
			code = plainCode(string(terr.Errors[0].Code))
		}
		status := &statusError{host: host, status: terr.StatusCode, code: code, hint: hintFor(terr.StatusCode, host, login)}
		if later := (*retryLaterError)(nil); errors.As(err, &later) {
			status.hint += fmt.Sprintf(" (it asks to be left alone for %s)", later.wait.Round(time.Second))
		}
		return status
	}
	if asked, ok := err.(*url.Error); ok { //nolint:errorlint // where several were tried, each is told
		err = asked.Err
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, errStalled):
		return err
	case strings.Contains(err.Error(), "bearer response"):
		return fmt.Errorf("asking %s for a token: its token server gave none", host)
	default:
		return fmt.Errorf("asking %s: %w", host, &noURLError{err})
	}
}

// noURLError prints an error without the URLs in it.
type noURLError struct{ err error }

func (h *noURLError) Error() string {
	text := regexp.MustCompile(`https?://[^\s"']+`).ReplaceAllStringFunc(h.err.Error(), func(s string) string {
		u, err := url.Parse(s)
		if err != nil {
			return "a URL"
		}
		return u.Scheme + "://" + u.Host
	})
	return inert.Line(text)
}

func (h *noURLError) Unwrap() error { return h.err }

// plainCode returns a registry's error code where it looks like one.
func plainCode(s string) string {
	if len(s) > 40 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
		return ""
	}
	return s
}
