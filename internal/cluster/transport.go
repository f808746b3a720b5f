package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What one request may cost.
const (
	parallel = 8        // requests in flight
	attempts = 4        // of one request
	longest  = 10 << 20 // bytes of one object …
	longPage = 64 << 20 // … and of one page of a list
	longWait = 10 * time.Second
	wordy    = 500 // bytes of a message of the server
)

// bounded is a transport that bounds how many requests are in flight, how long one
// may take and how long its answer may be. It repeats what the server was too busy
// for, and refuses to follow redirects: they would take the login elsewhere.
type bounded struct {
	next    http.RoundTripper
	timeout time.Duration // for each answer
	slots   chan struct{} // one for each request in flight
}

// RoundTrip implements http.RoundTripper. The answer has been read to its end.
func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for pause := 200 * time.Millisecond; ; pause *= 2 {
		sent := req.Clone(ctx)
		if req.GetBody != nil {
			var err error
			if sent.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		resp, err := b.once(sent)
		if err != nil {
			return nil, err
		}
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		resp.Header.Del("Retry-After") // client-go would wait as long as it says
		if !passes(req.Method, resp.StatusCode) || pause >= 200*time.Millisecond<<(attempts-1) {
			return resp, nil
		}
		if err := sleep(ctx, min(max(pause, time.Duration(after)*time.Second), longWait)); err != nil {
			return nil, err
		}
	}
}

// passes reports whether the same request may succeed a little later, and does not
// happen twice.
func passes(method string, code int) bool {
	return code == http.StatusTooManyRequests ||
		method == http.MethodGet && (code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout)
}

// once sends a request and reads the answer.
func (b *bounded) once(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	short, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	limit := int64(longest)
	if req.URL.Query().Has("limit") {
		limit = longPage
	}
	resp, err := b.next.RoundTrip(req.WithContext(short))
	var body []byte
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
		_ = resp.Body.Close() // of what has been read
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case short.Err() != nil:
		return nil, fault(http.StatusGatewayTimeout, fmt.Sprintf("no answer within %s", b.timeout))
	case err != nil:
		return nil, err
	case int64(len(body)) > limit:
		return nil, fault(http.StatusRequestEntityTooLarge, "the answer is too long")
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, fault(resp.StatusCode, resp.Status+": it points elsewhere, which is not followed")
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// fault is an answer that cannot be used, in the form of one that refuses.
func fault(code int, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: message}}
}

// sleep waits, and returns early with the cause when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
