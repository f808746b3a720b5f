package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/quayside/quayside/internal/inert"
)

// What one reading may cost.
const (
	parallel  = 8        // requests in flight
	attempts  = 4        // of one request
	longest   = 10 << 20 // bytes of one object …
	longPage  = 64 << 20 // … and of one page of a list
	longWait  = 10 * time.Second
	pageSize  = 250 // objects of a page
	wordy     = 300 // bytes of what a server says of a failure
	plainJSON = "application/json"
)

// Cluster is the API server of one context. It is for use by several
// goroutines at once.
type Cluster struct {
	Context string // the context's name; "in-cluster" for a pod's own login
	Server  string // the server's address, without credentials

	base    *url.URL
	client  *http.Client
	timeout time.Duration
	slots   chan struct{} // one for each request in flight

	mu     sync.Mutex
	groups map[string]*group // what discovery says, by "group/version"
}

// UnreachableError is a cluster that gave no answer, or none that can be used: the
// connection failed, its certificate is not trusted, it does not accept the
// login.
type UnreachableError struct {
	Context, Server string
	Err             error
}

// Error names the context and the server.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("cluster of context %q at %s: %v", e.Context, e.Server, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Forget drops what discovery said, for a cluster in which kinds come and go.
func (c *Cluster) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.groups)
}

// Login returns what sends requests to the cluster with its login, and the
// address that they begin with, for whoever sends more than this package does. It
// follows no redirect.
func (c *Cluster) Login() (*http.Client, *url.URL) { return c.client, c.base }

// answer is what the server says to a request that it does not fulfil.
type answer struct {
	code    int // of HTTP; 0 where there was none in time, or none that is JSON
	message string
}

func (a *answer) Error() string { return a.message }

// errTooLong is an answer of more bytes than are read.
var errTooLong = errors.New("the answer is too long")

// get sends a GET and decodes the answer, of at most limit bytes, into into. It
// tries again what may pass. The error is an *answer or errTooLong where it
// concerns this request alone, an *UnreachableError where it concerns the cluster,
// or that of ctx.
func (c *Cluster) get(ctx context.Context, path string, query url.Values, accept string, limit int64, into any) error {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	pause := 200 * time.Millisecond
	for try := 1; ; try++ {
		after, err := c.try(ctx, path, query, accept, limit, into)
		if err == nil || ctx.Err() != nil || try == attempts || !passing(err) {
			return err
		}
		if err := Sleep(ctx, min(max(pause, after), longWait)); err != nil {
			return err
		}
		pause *= 2
	}
}

// passing reports whether the same request may succeed a little later.
func passing(err error) bool {
	var said *answer
	if errors.As(err, &said) {
		return said.code == http.StatusTooManyRequests || said.code == http.StatusServiceUnavailable || said.code == http.StatusGatewayTimeout
	}
	var gone *UnreachableError
	return errors.As(err, &gone) && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET))
}

// try sends a GET once. The duration is how long the server asks to wait before
// the next time.
func (c *Cluster) try(ctx context.Context, path string, query url.Values, accept string, limit int64, into any) (time.Duration, error) {
	at := *c.base.JoinPath(path)
	at.RawQuery = query.Encode()
	short, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(short, http.MethodGet, at.String(), nil)
	if err != nil {
		return 0, c.Unreachable(err)
	}
	req.Header.Set("Accept", accept)
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, c.failed(ctx, short, err)
	}
	defer resp.Body.Close()
	body, err := readAll(resp.Body, limit)
	switch {
	case errors.Is(err, errTooLong):
		return 0, err
	case err != nil:
		return 0, c.failed(ctx, short, err)
	case resp.StatusCode == http.StatusUnauthorized:
		return 0, c.Unreachable(errors.New("it does not accept the login (401 Unauthorized)"))
	case resp.StatusCode != http.StatusOK:
		wait, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return time.Duration(wait) * time.Second, &answer{resp.StatusCode, refusal(resp, body)}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return 0, &answer{message: "the answer is no JSON of that form: " + inert.Clip(err.Error(), wordy)}
	}
	return 0, nil
}

// failed tells why there was no whole answer.
func (c *Cluster) failed(ctx, short context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case short.Err() != nil:
		return &answer{message: fmt.Sprintf("no answer within %s", c.timeout)}
	default:
		return c.Unreachable(err)
	}
}

// Unreachable returns the *UnreachableError of a request that got no answer,
// without the address, which may hold a password.
func (c *Cluster) Unreachable(err error) error {
	return &UnreachableError{Context: c.Context, Server: c.Server, Err: hushed(err)}
}

// readAll reads at most limit bytes.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, errTooLong
	}
	return data, err
}

// refusal returns what the server says beside a status other than 200.
func refusal(resp *http.Response, body []byte) string {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return inert.Clip(status.Message, wordy)
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return resp.Status + ": it points elsewhere, which is not followed"
	}
	return resp.Status
}

// Sleep waits, and returns early with the cause when ctx ends.
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
