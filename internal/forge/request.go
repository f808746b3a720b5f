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
	"github.com/quayside/quayside/internal/remote"
	"github.com/quayside/quayside/internal/sanitize"
)

const (
	requestTimeout = time.Minute // for each request
	maxResponse    = 32 << 20    // bytes of a response: a page of pull requests with their texts
	maxPages       = 100
)

// Open returns a client for the repository of a Git remote; see [Locate]. It reads the token from GIT_TOKEN.
func Open(kind, repository string, getenv func(string) string) (*Client, error) {
	at, err := Locate(kind, repository, getenv)
	if err != nil {
		return nil, err
	}
	return New(at, getenv("GIT_TOKEN"))
}

// New returns a client for a repository. It returns an error for an empty token, and for an address
// to which the token would be sent unencrypted.
func New(at Address, token string) (*Client, error) {
	known := remote.APIs()
	i := slices.IndexFunc(known, func(a remote.API) bool { return string(a.Forge) == at.Kind })
	if i < 0 {
		return nil, fmt.Errorf("unknown forge %q: must be one of %s", at.Kind, strings.Join(Kinds(), ", "))
	}
	u, err := url.Parse(at.API)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%q is not the URL of an API", diag.Redact(at.API))
	case u.User != nil:
		return nil, fmt.Errorf("%s: no credentials allowed in the URL: set GIT_TOKEN", diag.Redact(at.API))
	case !gitrepo.Confidential(u):
		return nil, fmt.Errorf("%s: GIT_TOKEN is only sent over https", at.API)
	case token == "":
		return nil, fmt.Errorf("%s requires a token: set GIT_TOKEN", u.Host)
	case strings.ContainsFunc(token, sanitize.IsInvisible) || strings.ContainsAny(token, "\r\n\t "):
		return nil, errors.New("GIT_TOKEN contains invalid characters, such as a line break")
	}
	return &Client{at: at, kind: kindOf(known[i].Dialect), token: token, http: &http.Client{
		Timeout: requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // do not follow redirects: the token is not for other hosts
		},
	}}, nil
}

// statusError is returned for a failed request.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

// do sends one request. If body is not nil, it is sent as JSON. If out is not nil, the response is
// decoded into it.
func (c *Client) do(ctx context.Context, method, path string, body, out any) error {
	_, err := c.send(ctx, method, path, body, out)
	return err
}

// list calls visit with each page of a list, until visit returns false. It computes the address of each page
// itself, and never follows an address in a response.
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
		return nil, c.withoutSecrets(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxResponse+1))
	switch {
	case err != nil:
		return nil, c.withoutSecrets(err)
	case len(data) > maxResponse:
		return nil, fmt.Errorf("%s %s: the response is larger than %d MiB", method, path, maxResponse>>20)
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		return nil, c.responseError(method, path, answer, data)
	case out == nil:
		return answer.Header, nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("%s %s: unexpected response: the server may not be %s", method, path, c.at.Kind)
	}
	return answer.Header, nil
}

// responseError returns the error for a failed request, with the server's message and a likely
// cause.
func (c *Client) responseError(method, path string, answer *http.Response, data []byte) error {
	var body struct {
		Message any `json:"message"`
		Error   any `json:"error"`
		Errors  any `json:"errors"`
	}
	text := answer.Status
	if json.Unmarshal(data, &body) == nil {
		for _, part := range []any{body.Message, body.Error, body.Errors} {
			if part != nil && part != "" {
				text += ": " + plainMessage(part)
			}
		}
	}
	switch code := answer.StatusCode; {
	case code >= 300 && code < 400:
		text += ": the repository or the server was renamed"
	case code == http.StatusUnauthorized:
		text += ": GIT_TOKEN is not accepted"
	case code == http.StatusForbidden:
		text += ": GIT_TOKEN lacks permission"
	case code == http.StatusNotFound:
		text += ": not found, or GIT_TOKEN lacks access"
	}
	path, _, _ = strings.Cut(path, "?")
	text = fmt.Sprintf("%s %s: %s", method, path, sanitize.Truncate(text, 400))
	return &statusError{answer.StatusCode, c.maskToken(sanitize.Line(text))}
}

// plainMessage returns the text of a message in a response. If the message is not a string, it returns its JSON.
func plainMessage(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(data)
}

// withoutSecrets returns err without the token and without credentials in URLs.
func (c *Client) withoutSecrets(err error) error {
	text := c.maskToken(diag.Redact(err.Error()))
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case text == err.Error():
		return err
	}
	return errors.New(text)
}

func (c *Client) maskToken(text string) string { return strings.ReplaceAll(text, c.token, "***") }
