// Package kube reads and changes the objects of a cluster for what
// quayside adopt run does. It logs in as report/live does, and is the one place
// of the program that sends anything but reading to an API server.
//
// What may pass (a busy server, no answer in time) is tried again where that cannot
// do a thing twice; the rest is told, with the object and the verb, and the caller
// looks at the object before it tries again. Of Secrets only the head is read.
//
// Start from [New].
package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/run"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report/live"
)

// What one request may cost.
const (
	timeout  = 60 * time.Second // for an answer: webhooks may take half of it
	attempts = 6
	longWait = 15 * time.Second
	longest  = 16 << 20 // bytes of an answer
	wordy    = 1000     // bytes of what a server says of a failure
	headOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asJSON   = "application/json"
)

// Cluster is a cluster that is written to. It is for use by several goroutines at
// once.
type Cluster struct {
	live *live.Cluster
}

var _ run.Cluster = (*Cluster)(nil)

// New returns the cluster that c logs in to.
func New(c *live.Cluster) *Cluster { return &Cluster{live: c} }

// request is one request about one object.
type request struct {
	verb   string // for messages
	ref    plan.Ref
	method string
	query  url.Values
	header map[string]string
	body   any
	under  bool // it is about the objects of the kind, not about one: no name follows
	safe   bool // sent twice it does no more than once
}

// answer is the part of every answer that says why not.
type answer struct {
	Message string `json:"message"`
	Reason  string `json:"reason"`
	Details struct {
		Causes []struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
			Field   string `json:"field"`
		} `json:"causes"`
		RetryAfter int `json:"retryAfterSeconds"`
	} `json:"details"`
}

// send sends a request, again where that helps and does no harm, and returns the
// object of the answer.
func (c *Cluster) send(ctx context.Context, r request) (kobj.Object, error) {
	path, err := c.path(ctx, r)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(r.body)
	if err != nil {
		return nil, err
	}
	pause := 250 * time.Millisecond
	for try := 1; ; try++ {
		o, err := c.try(ctx, r, path, body)
		var refused *run.RefusedError
		again := errors.As(err, &refused) && (refused.Why == run.Busy || r.safe && refused.Passes())
		if !again || try == attempts {
			return o, err
		}
		if err := live.Sleep(ctx, min(max(pause, refused.After), longWait)); err != nil {
			return nil, err
		}
		pause *= 2
	}
}

// path returns where the object of a request is. A kind that is not served may have
// come since the server was asked.
func (c *Cluster) path(ctx context.Context, r request) (string, error) {
	if n := r.ref.Name; !r.under && (n == "" || n == "." || n == "..") {
		return "", fmt.Errorf("%s %s: %q is no name of an object", r.verb, r.ref, n)
	}
	path, err := c.live.Path(ctx, r.ref.APIVersion, r.ref.Kind, r.ref.Namespace)
	if err != nil && ctx.Err() == nil {
		c.live.Forget()
		path, err = c.live.Path(ctx, r.ref.APIVersion, r.ref.Kind, r.ref.Namespace)
	}
	if errors.Is(err, live.ErrNoKind) {
		return "", &run.RefusedError{Verb: r.verb, Object: r.ref, Why: run.NotFound, Message: strings.TrimPrefix(err.Error(), live.ErrNoKind.Error()+": ")}
	}
	if err != nil {
		return "", err
	}
	if !r.under {
		path += "/" + url.PathEscape(r.ref.Name)
	}
	return path, nil
}

// try sends a request once.
func (c *Cluster) try(ctx context.Context, r request, path string, body []byte) (kobj.Object, error) {
	client, base := c.live.Login()
	at := *base.JoinPath(path)
	at.RawQuery = r.query.Encode()
	short, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(short, r.method, at.String(), nil)
	if err != nil {
		return nil, c.live.Unreachable(err)
	}
	if r.body != nil {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Header.Set("Content-Type", asJSON)
	}
	req.Header.Set("Accept", asJSON)
	for k, v := range r.header {
		req.Header.Set(k, v)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, c.failed(ctx, short, r, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, longest+1))
	switch {
	case err != nil:
		return nil, c.failed(ctx, short, r, err)
	case resp.StatusCode == http.StatusUnauthorized:
		return nil, c.live.Unreachable(errors.New("it does not accept the login (401 Unauthorized)"))
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, refusal(r, resp, data)
	case len(data) > longest:
		return nil, fmt.Errorf("%s %s: the answer is too long", r.verb, r.ref)
	}
	var o map[string]any
	if err := utiljson.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("%s %s: the answer is no JSON: %s", r.verb, r.ref, inert.Clip(err.Error(), wordy))
	}
	return o, nil
}

// failed tells why there was no whole answer. Whether the server did what it was
// asked is not known then.
func (c *Cluster) failed(ctx, short context.Context, r request, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case short.Err() != nil:
		return &run.RefusedError{Verb: r.verb, Object: r.ref, Why: run.Unsure, Message: fmt.Sprintf("no answer within %s", timeout)}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return &run.RefusedError{Verb: r.verb, Object: r.ref, Why: run.Unsure, Message: "the connection ended before the answer"}
	default:
		return c.live.Unreachable(err)
	}
}

// refusal returns what the server says beside a status that is no success.
func refusal(r request, resp *http.Response, body []byte) error {
	var said answer
	if json.Unmarshal(body, &said) != nil || said.Message == "" {
		said.Message = resp.Status
	}
	said.Message = inert.Clip(said.Message, wordy)
	if resp.StatusCode == http.StatusConflict {
		conflict := &run.ConflictError{Verb: r.verb, Object: r.ref, Message: said.Message}
		for _, cause := range said.Details.Causes {
			if cause.Reason == "FieldManagerConflict" {
				_, manager, _ := strings.Cut(cause.Message, `conflict with "`)
				manager, _, _ = strings.Cut(manager, `"`)
				conflict.Fields = append(conflict.Fields, run.Field{Manager: inert.Clip(manager, wordy), Path: inert.Clip(cause.Field, wordy)})
			}
		}
		return conflict
	}
	wait := said.Details.RetryAfter
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		wait = max(wait, n)
	}
	return &run.RefusedError{Verb: r.verb, Object: r.ref, Why: why(resp.StatusCode), Message: said.Message, After: time.Duration(wait) * time.Second}
}

// why returns what a status of HTTP means.
func why(code int) run.Why {
	switch code {
	case http.StatusNotFound:
		return run.NotFound
	case http.StatusForbidden:
		return run.Forbidden
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return run.Invalid
	case http.StatusTooManyRequests:
		return run.Busy
	}
	if code >= http.StatusInternalServerError {
		return run.Unsure
	}
	return run.Refused
}
