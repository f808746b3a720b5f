package oci

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
	"github.com/quayside/quayside/internal/sanitize"
)

// Error is an error about one image. Its message contains neither credentials nor text from a
// registry.
type Error struct {
	Image  string // reference: "quay.io/org/name:tag" or "oci:catalogs/x"
	Status int    // HTTP status from the registry; 0 for other errors
	Err    error
}

// Error returns `image "…": cause`.
func (e *Error) Error() string { return fmt.Sprintf("image %q: %v", e.Image, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// OfflineError means that content is not available locally, and that downloads are not allowed.
type OfflineError struct {
	Missing string // the content: "manifest sha256:…", "layer sha256:…" or "tag \"v1\""
}

func (e *OfflineError) Error() string {
	return e.Missing + " is not in the cache, and --offline allows no download"
}

// NotFound reports whether the registry does not have the image.
func (e *Error) NotFound() bool { return e.Status == http.StatusNotFound }

// statusError is an HTTP response with an unexpected status.
type statusError struct {
	host   string
	status int
	code   string // error code of the registry: "MANIFEST_UNKNOWN"; may be empty
	hint   string
}

func (e *statusError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s responded with %d %s", e.host, e.status, http.StatusText(e.status))
	if e.code != "" {
		fmt.Fprintf(&b, " (%s)", e.code)
	}
	if e.hint != "" {
		b.WriteString(": " + e.hint)
	}
	return b.String()
}

// hintFor returns a hint for the message about an HTTP status, such as how to log in.
func hintFor(status int, host string, login credential) string {
	again := fmt.Sprintf(`log in with "podman login %s" or "docker login %s"`, host, host)
	switch {
	case status == http.StatusUnauthorized && login.found():
		return "invalid credentials of " + login.origin + "; " + again
	case status == http.StatusUnauthorized && login.note != "":
		return login.note + "; " + again
	case status == http.StatusUnauthorized:
		return again
	case status == http.StatusForbidden && login.found():
		return "the account of " + login.origin + " lacks permission"
	case status == http.StatusForbidden:
		return "it may require a login; " + again
	case status == http.StatusNotFound && !login.found():
		return "image not found, or private; for a private image " + again
	case status == http.StatusNotFound:
		return "image not found, or the account of " + login.origin + " lacks access to it"
	case status == http.StatusTooManyRequests:
		return "rate limit exceeded; wait, or log in if you have not"
	case status >= 500:
		return "registry error; try again later"
	default:
		return ""
	}
}

// wrapImageError adds the name of the image to err, unless err already contains the name.
func wrapImageError(image string, err error) error {
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

// redact removes possible secrets from an error of the HTTP client: URLs, because a redirect may
// contain a signed query, and response bodies, which may contain tokens.
func (a account) redact(err error) error {
	if err == nil {
		return nil
	}
	host := imageref.Host(a.repo.RegistryStr())
	var own *statusError
	if errors.As(err, &own) {
		return own
	}
	var unproven *tls.CertificateVerificationError
	if errors.As(err, &unproven) { // checked first: on loopback, HTTP is tried as well, and its error would hide this one
		return fmt.Errorf("connecting to %s: %w: add the certificate of its CA to ~/.config/containers/certs.d/%s/ca.crt", host, &noURLError{unproven}, host)
	}
	var terr *transport.Error
	if errors.As(err, &terr) {
		code := ""
		if len(terr.Errors) > 0 {
			code = plainCode(string(terr.Errors[0].Code))
		}
		status := &statusError{host: host, status: terr.StatusCode, code: code, hint: hintFor(terr.StatusCode, host, a.login)}
		if later := (*retryLaterError)(nil); errors.As(err, &later) {
			status.hint += fmt.Sprintf(" (retry after %s)", later.wait.Round(time.Second))
		}
		return status
	}
	if urlErr, ok := err.(*url.Error); ok { //nolint:errorlint // unwrap only a bare url.Error, to keep the joined errors of several hosts
		err = urlErr.Err
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, errStalled):
		return err
	case strings.Contains(err.Error(), "bearer response"):
		return fmt.Errorf("requesting a token for %s: the token server returned none", host)
	default:
		return fmt.Errorf("request to %s failed: %w", host, &noURLError{err})
	}
}

// noURLError wraps an error and removes the URLs from its message.
type noURLError struct{ err error }

func (h *noURLError) Error() string {
	text := regexp.MustCompile(`https?://[^\s"']+`).ReplaceAllStringFunc(h.err.Error(), func(s string) string {
		u, err := url.Parse(s)
		if err != nil {
			return "a URL"
		}
		return u.Scheme + "://" + u.Host
	})
	return sanitize.Line(text)
}

func (h *noURLError) Unwrap() error { return h.err }

// plainCode returns the error code of a registry, or "" if it is not in the usual form.
func plainCode(s string) string {
	if len(s) > 40 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
		return ""
	}
	return s
}
