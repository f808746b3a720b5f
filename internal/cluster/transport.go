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

// Limits for requests.
const (
	maxRequests     = 8        // concurrent requests
	maxAttempts     = 4        // attempts for one request
	maxObjectBytes  = 10 << 20 // bytes in the response for one object
	maxPageBytes    = 64 << 20 // bytes in the response for one page of a list
	maxRetryWait    = 10 * time.Second
	maxMessageBytes = 500 // bytes of a server message that are kept
)

// limitedTransport limits the number of concurrent requests, their duration, and the size of
// responses. It retries a request that a busy server rejected. It does not follow redirects, which
// would send the credentials to another server.
type limitedTransport struct {
	next    http.RoundTripper
	timeout time.Duration // maximum time for each response
	slots   chan struct{} // contains one entry for each running request
}

// RoundTrip implements http.RoundTripper. It reads the body of the response into memory.
func (b *limitedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
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
		resp, err := b.roundTripOnce(sent)
		if err != nil {
			return nil, err
		}
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		resp.Header.Del("Retry-After") // otherwise client-go would wait again
		if !isRetryable(req.Method, resp.StatusCode) || pause >= 200*time.Millisecond<<(maxAttempts-1) {
			return resp, nil
		}
		if err := Sleep(ctx, min(max(pause, time.Duration(after)*time.Second), maxRetryWait)); err != nil {
			return nil, err
		}
	}
}

// isRetryable reports whether to repeat a request after a response with this status. It returns false if
// the server may have executed a change.
func isRetryable(method string, code int) bool {
	return code == http.StatusTooManyRequests ||
		method == http.MethodGet && (code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout)
}

// roundTripOnce sends a request and reads the response.
func (b *limitedTransport) roundTripOnce(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	short, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	limit := int64(maxObjectBytes)
	if req.URL.Query().Has("limit") {
		limit = maxPageBytes
	}
	resp, err := b.next.RoundTrip(req.WithContext(short))
	var body []byte
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
		_ = resp.Body.Close() // the body has been read completely
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case short.Err() != nil:
		return nil, newStatusError(http.StatusGatewayTimeout, fmt.Sprintf("no response within %s", b.timeout))
	case err != nil:
		return nil, err
	case int64(len(body)) > limit:
		return nil, newStatusError(http.StatusRequestEntityTooLarge, "the response is too large")
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, newStatusError(resp.StatusCode, resp.Status+": redirect to another host not followed")
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// newStatusError returns the error for a request without a usable response.
func newStatusError(code int, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: message}}
}

// Sleep waits for d. If ctx ends first, it returns the cause of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
