// Package ocitest runs a real OCI registry on loopback for tests. A test can intercept its
// requests.
//
// Start from [New].
package ocitest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"github.com/quayside/quayside/internal/testing/servertest"
)

// Server is a registry in memory.
type Server struct {
	Host string // host and port, such as "127.0.0.1:34567"

	servertest.Guard // Requests returns "METHOD path"
}

// New starts a registry without the referrers API, and stops it at the end of the test.
func New(tb testing.TB) *Server {
	tb.Helper()
	return startServer(tb, false)
}

// NewReferring is like [New], for a registry with the referrers API.
func NewReferring(tb testing.TB) *Server {
	tb.Helper()
	return startServer(tb, true)
}

func startServer(tb testing.TB, referrers bool) *Server {
	s := &Server{Guard: servertest.Guard{
		Server: ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)), ggcr.WithReferrersSupport(referrers)),
		Line:   func(r *http.Request) string { return r.Method + " " + r.URL.Path },
	}}
	h := httptest.NewServer(s)
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	tb.Cleanup(h.Close)
	s.Host = strings.TrimPrefix(h.URL, "http://")
	return s
}
