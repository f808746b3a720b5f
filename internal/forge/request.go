package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/inert"
)

const (
	patience  = time.Minute // for one request
	maxAnswer = 32 << 20    // a page of pull requests with their texts
	maxPages  = 100
)

// Open returns a client for the repository that Git knows by a remote, see [Locate],
// with the token in GIT_TOKEN.
func Open(kind, repository string, getenv func(string) string) (*Client, error) {
	at, err := Locate(kind, repository, getenv)
	if err != nil {
		return nil, err
	}
	return New(at, getenv("GIT_TOKEN"))
}

// New returns a client for a repository. An empty token and an address over which it
// could be read on the way are refused.
func New(at Address, token string) (*Client, error) {
	i := slices.IndexFunc(kinds(), func(k kind) bool { return k.name == at.Kind })
	if i < 0 {
		return nil, fmt.Errorf("no forge is called %q: %s", at.Kind, strings.Join(Kinds(), ", "))
	}
	u, err := url.Parse(at.API)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%q is no address of an API", diag.Redact(at.API))
	case u.User != nil:
		return nil, fmt.Errorf("%s: the address of an API has no credentials in it: set GIT_TOKEN", diag.Redact(at.API))
	case !gitrepo.Confidential(u):
		return nil, fmt.Errorf("%s: GIT_TOKEN is sent over https only", at.API)
	case token == "":
		return nil, fmt.Errorf("%s wants a token: set GIT_TOKEN", u.Host)
	case strings.ContainsFunc(token, inert.Unseen) || strings.ContainsAny(token, "\r\n\t "):
		return nil, errors.New("GIT_TOKEN has characters that no token has, such as the end of a line")
	}
	return &Client{at: at, kind: kinds()[i], token: token, http: &http.Client{
		Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the token goes nowhere else
		},
	}}, nil
}

// statusError is an answer of a server that did not do what was asked.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

// do sends one request, with body as JSON unless it is nil, and reads the answer into
// out unless that is nil.
func (c *Client) do(ctx context.Context, method, path string, body, out any) error {
	_, err := c.send(ctx, method, path, body, out)
	return err
}

// list reads a list page by page and hands each to visit, until that returns false.
// Which page is next is counted here: no address that a server names is asked.
func list[T any](ctx context.Context, c *Client, path string, visit func([]T) bool) error {
	mark := "?"
	if strings.Contains(path, "?") {
		mark = "&"
	}
	for page := 1; page <= maxPages; page++ {
		var all []T
		header, err := c.send(ctx, http.MethodGet, path+mark+"page="+strconv.Itoa(page), nil, &all)
		if err != nil || !visit(all) || len(all) == 0 || !hasNext(header) {
			return err
		}
	}
	return fmt.Errorf("more than %d pages of %s", maxPages, path)
}

func hasNext(h http.Header) bool {
	return slices.ContainsFunc(h.Values("Link"), regexp.MustCompile(`;\s*rel="?next"?`).MatchString)
}

func (c *Client) send(ctx context.Context, method, path string, body, out any) (http.Header, error) {
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.at.API+"/"+path, payload)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "quayside")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return nil, c.safe(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, c.safe(err)
	case len(data) > maxAnswer:
		return nil, fmt.Errorf("%s %s: the answer is longer than %d MiB", method, path, maxAnswer>>20)
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		return nil, c.refusal(method, path, answer, data)
	case out == nil:
		return answer.Header, nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("%s %s: the answer is not what a %s says", method, path, c.kind.name)
	}
	return answer.Header, nil
}

// refusal puts an answer into words: what the server says, and what to do.
func (c *Client) refusal(method, path string, answer *http.Response, data []byte) error {
	var said struct {
		Message any `json:"message"`
		Error   any `json:"error"`
		Errors  any `json:"errors"`
	}
	text := answer.Status
	if json.Unmarshal(data, &said) == nil {
		for _, part := range []any{said.Message, said.Error, said.Errors} {
			if part != nil && part != "" {
				text += ": " + plain(part)
			}
		}
	}
	switch code := answer.StatusCode; {
	case code >= 300 && code < 400:
		text += ": the repository, or the server, is called otherwise by now"
	case code == http.StatusUnauthorized:
		text += ": GIT_TOKEN is not taken"
	case code == http.StatusForbidden:
		text += ": GIT_TOKEN may not do this"
	case code == http.StatusNotFound:
		text += ": it is not there, or GIT_TOKEN may not see it"
	}
	path, _, _ = strings.Cut(path, "?")
	text = fmt.Sprintf("%s %s: %s", method, path, inert.Cut(text, 400))
	return &statusError{answer.StatusCode, c.without(inert.Line(text))}
}

// plain returns what a server said in whatever form.
func plain(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(data)
}

// safe returns an error that does not hold the token.
func (c *Client) safe(err error) error {
	text := c.without(diag.Redact(err.Error()))
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case text == err.Error():
		return err
	}
	return errors.New(text)
}

func (c *Client) without(text string) string { return strings.ReplaceAll(text, c.token, "***") }
