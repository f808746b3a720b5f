package oci_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

// spy is a server that records whether it receives secrets.
type spy struct {
	*httptest.Server
	mu     sync.Mutex
	asked  int
	leaked []string
}

func newSpy(t *testing.T, answer http.HandlerFunc, secrets ...string) *spy {
	t.Helper()
	s := &spy{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent := fmt.Sprint(r.URL, r.Header, string(body))
		s.mu.Lock()
		s.asked++
		for _, word := range secrets {
			if strings.Contains(sent, word) {
				s.leaked = append(s.leaked, sent)
			}
		}
		s.mu.Unlock()
		answer(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	s.URL = strings.Replace(s.URL, "127.0.0.1", "localhost", 1) // another name, so another host
	return s
}

// TestTokenServer uses token servers on a host other than the registry, each with a different behavior.
// The client must send the login and the token to no third host.
func TestTokenServer(t *testing.T) {
	login := base64.StdEncoding.EncodeToString([]byte(user + ":" + secret))
	const token = "bearer-t0ken"
	identity := fmt.Sprintf(`{"auths":{"HOST":{"auth":%q,"identitytoken":%q}}}`, base64.StdEncoding.EncodeToString([]byte("<token>:")), secret)
	basicLogin := fmt.Sprintf(`{"auths":{"HOST":{"auth":%q}}}`, login)
	give := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"token":%q,"access_token":%q}`, token, token)
	}
	redirect := func(code int) func(string) http.HandlerFunc {
		return func(to string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to+"/token?"+r.URL.RawQuery, code) }
		}
	}
	answer := func(f http.HandlerFunc) func(string) http.HandlerFunc {
		return func(string) http.HandlerFunc { return f }
	}
	for _, tt := range []struct {
		name   string
		config string
		server func(elsewhere string) http.HandlerFunc
		want   string // part of the error; empty: success
	}{
		{"on another host", basicLogin, answer(give), ""},
		{"on another host, by identity token", identity, answer(give), ""},
		{"leads elsewhere", basicLogin, redirect(http.StatusFound), ""}, // the other server returns a token without a login
		{"leads elsewhere for good", basicLogin, redirect(http.StatusPermanentRedirect), ""},
		{"leads an identity token elsewhere", identity, redirect(http.StatusTemporaryRedirect), "are not forwarded to"},
		{"leads an identity token elsewhere for good", identity, redirect(http.StatusPermanentRedirect), "are not forwarded to"},
		{"refuses", basicLogin, answer(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, `{"errors":[{"code":"DENIED","message":"`+r.Header.Get("Authorization")+`"}]}`, http.StatusForbidden)
		}), "403 Forbidden"},
		{"gives no token", basicLogin, answer(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"you":%q}`, r.Header.Get("Authorization"))
		}), "the token server returned none"},
		{"never ends", basicLogin, answer(func(w http.ResponseWriter, r *http.Request) {
			for i := 0; i < 500 && r.Context().Err() == nil; i++ {
				_, _ = w.Write([]byte(" "))
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}), "sends no data, or too slowly"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := ocitest.New(t)
			_, ref := pushExample(t, srv)
			elsewhere := newSpy(t, give, secret, login)
			tokens := newSpy(t, tt.server(elsewhere.URL), secret, login)
			srv.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.Header.Get("Authorization") != "Bearer "+token {
					w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="test"`, tokens.URL))
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				next.ServeHTTP(w, r)
			})
			c := newClient(t)
			c.Credentials = &oci.Credentials{Files: []string{write(t, filepath.Join(t.TempDir(), "config.json"), strings.ReplaceAll(tt.config, "HOST", srv.Host), 0o600)}}
			var err error
			try := func(stall time.Duration) error {
				c.Retry.Stall = stall
				_, err = pull(t.Context(), c, ref)
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					return fmt.Errorf("got %w, want %q", err, tt.want)
				}
				return nil
			}
			if tt.name == "never ends" {
				retryWithLongerTimeouts(t, try)
			} else if err := try(time.Minute); err != nil {
				t.Error(err)
			}
			if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), login)) {
				t.Errorf("the error contains credentials: %v", err)
			}
			if tokens.asked == 0 || len(tokens.leaked) == 0 {
				t.Error("no login was sent to the token server: the test proves nothing")
			}
			if len(elsewhere.leaked) > 0 {
				t.Errorf("sent to another host: %q", elsewhere.leaked)
			}
			if err == nil { // otherwise the store is empty and has no directory
				checkNotStored(t, c.Store.Dir(), secret)
			}
		})
	}
}

// TestTokenServerWithoutTLS checks that a registry over HTTPS cannot make the client send the
// login over HTTP.
func TestTokenServerWithoutTLS(t *testing.T) {
	tokens := newSpy(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"token":"x"}`) })
	back := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer x" {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token"`, tokens.URL))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		back.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	host := strings.TrimPrefix(srv.URL, "https://")
	c := newClient(t)
	c.Insecure = []string{host} // accept any certificate
	c.Credentials = &oci.Credentials{Files: []string{loginFile(t, host)}}
	if _, err := c.Open(t.Context(), host+"/org/catalog:v1"); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v", err)
	}
	if tokens.asked > 0 {
		t.Errorf("%d requests", tokens.asked)
	}
}

func TestRetryAfter(t *testing.T) {
	header := func(s string) *http.Response { return &http.Response{Header: http.Header{"Retry-After": {s}}} }
	now := time.Now()
	for text, want := range map[string]time.Duration{
		"0": 0, "7": 7 * time.Second, "99999999999": 1 << 30 * time.Second,
		now.Add(90 * time.Second).UTC().Format(http.TimeFormat): 90 * time.Second,
		now.Add(-time.Hour).UTC().Format(http.TimeFormat):       0,
		now.Add(90 * time.Second).UTC().Format(time.ANSIC):      90 * time.Second,
	} {
		got, ok := oci.RetryAfter(header(text))
		if late := time.Since(now) + 2*time.Second; !ok || got > want || got < want-late {
			t.Errorf("%q: got %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-1", "soon", "1.5"} {
		if got, ok := oci.RetryAfter(header(text)); ok {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

// TestClientWaitsForRetryAfter checks that the client waits as long as requested, up to a limit.
func TestClientWaitsForRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after func() string
		least time.Duration // minimum time between the two requests
		fails bool
	}{
		{"seconds", func() string { return "1" }, time.Second, false},
		{"a date", func() string { return time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat) }, 900 * time.Millisecond, false},
		{"a date too far", func() string { return time.Now().Add(time.Hour).UTC().Format(http.TimeFormat) }, 0, true},
		{"too many seconds", func() string { return "3600" }, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := ocitest.New(t)
			_, ref := pushExample(t, srv)
			var mu sync.Mutex
			var refused, again time.Time
			srv.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case !strings.Contains(r.URL.Path, "/manifests/"):
				case refused.IsZero():
					refused = time.Now()
					w.Header().Set("Retry-After", tt.after())
					w.WriteHeader(http.StatusTooManyRequests)
					return
				case again.IsZero():
					again = time.Now()
				}
				next.ServeHTTP(w, r)
			})
			c := newClient(t)
			c.Retry.MaxWait = 5 * time.Second
			_, err := c.Open(t.Context(), ref)
			if (err != nil) != tt.fails || err != nil && !strings.Contains(err.Error(), "(retry after ") {
				t.Errorf("got %v", err)
			}
			if !tt.fails && again.Sub(refused) < tt.least {
				t.Errorf("second request after %v, want %v", again.Sub(refused), tt.least)
			}
			if tt.fails && !again.IsZero() {
				t.Error("unexpected second request")
			}
		})
	}
}
