// Package registrytest runs a real registry on loopback for tests, and lets a
// test stand in its way.
//
// Start from [New].
package registrytest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	ggcr "github.com/google/go-containerregistry/pkg/registry"
)

// Intercept sees a request before the registry does: it answers it, or passes
// it on to next.
type Intercept func(w http.ResponseWriter, r *http.Request, next http.Handler)

// Server is a registry in memory.
type Server struct {
	Host string // "127.0.0.1:34567"

	mu        sync.Mutex
	intercept Intercept
	requests  []string
}

// New starts a registry that ends with the test. It does not tell what refers
// to a manifest.
func New(tb testing.TB) *Server {
	tb.Helper()
	return start(tb, false)
}

// NewReferring is New for a registry that does.
func NewReferring(tb testing.TB) *Server {
	tb.Helper()
	return start(tb, true)
}

func start(tb testing.TB, referrers bool) *Server {
	s := &Server{}
	back := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)), ggcr.WithReferrersSupport(referrers))
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		f := s.intercept
		s.mu.Unlock()
		if f != nil {
			f(w, r, back)
			return
		}
		back.ServeHTTP(w, r)
	}))
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	tb.Cleanup(h.Close)
	s.Host = strings.TrimPrefix(h.URL, "http://")
	return s
}

// Intercept puts f in front of the registry, in place of what was there; nil
// takes it away.
func (s *Server) Intercept(f Intercept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

// Requests returns "METHOD path" of every request since the last call, in the
// order they came.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.requests
	s.requests = nil
	return got
}
