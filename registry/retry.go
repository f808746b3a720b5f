package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// retryTransport sends a request again where the fault may pass. Only requests
// without a body are repeated.
type retryTransport struct {
	inner http.RoundTripper
	retry Retry
}

// RoundTrip implements http.RoundTripper.
func (t *retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := sentOn(req); err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		res, err := t.once(req)
		if req.Body != nil || attempt >= t.retry.Attempts || !passing(res, err) {
			return res, err
		}
		wait := t.retry.Wait << (attempt - 1)
		if res != nil {
			asked, ok := retryAfter(res)
			if asked > t.retry.MaxWait {
				return res, nil // the caller reports the status
			}
			if ok {
				wait = asked
			}
			_, _ = io.CopyN(io.Discard, res.Body, 64<<10) // so that the connection can be used again
			res.Body.Close()
		}
		if err := sleep(req.Context(), min(wait, t.retry.MaxWait)); err != nil {
			return nil, err
		}
	}
}

// sentOn refuses a request that a redirect makes of a form, which is how
// identity tokens are shown to a token server, where it leads to another host.
func sentOn(req *http.Request) error {
	if req.Response == nil || req.Body == nil || req.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return nil
	}
	if from := req.Response.Request; from != nil && from.URL.Host == req.URL.Host && from.URL.Scheme == req.URL.Scheme {
		return nil
	}
	return fmt.Errorf("credentials are not forwarded to %s", req.URL.Host)
}

// streamed marks the context of a request whose answer may be long: its reader
// watches over it.
type streamed struct{}

const maxAnswer = 1 << 20

// once sends the request once. An answer that nobody watches over (a greeting,
// a token, the receipt of an upload) is read at once, within bounds of time
// and size.
func (t *retryTransport) once(req *http.Request) (*http.Response, error) {
	if req.Context().Value(streamed{}) != nil || req.ContentLength > maxAnswer || req.ContentLength < 0 {
		return t.inner.RoundTrip(req)
	}
	ctx, cancel := context.WithTimeoutCause(req.Context(), 2*t.retry.Stall, errStalled)
	defer cancel()
	res, err := t.inner.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, stalledOr(ctx, err, req.URL.Host)
	}
	res.Body = io.NopCloser(bytes.NewReader(data))
	return res, nil
}

// passing reports whether a fault may be gone the next time.
func passing(res *http.Response, err error) bool {
	if err != nil {
		return passingError(err)
	}
	switch res.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

func passingError(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var timeout net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// retryAfter returns what the registry asks for, and whether it asks.
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

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
