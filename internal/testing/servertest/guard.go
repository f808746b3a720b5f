// Package servertest lets a test intercept and record the requests to a server.
//
// Start from [Guard].
package servertest

import (
	"net/http"
	"sync"
)

// Intercept handles a request before the server does: it answers the request or
// passes it on to next.
type Intercept = func(w http.ResponseWriter, r *http.Request, next http.Handler)

// Guard wraps a server. It is safe for concurrent use.
type Guard struct {
	Server http.Handler
	Line   func(r *http.Request) string // formats a request for Requests

	mu        sync.Mutex
	intercept Intercept
	requests  []string
}

// ServeHTTP implements http.Handler.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.requests = append(g.requests, g.Line(r))
	f := g.intercept
	g.mu.Unlock()
	if f != nil {
		f(w, r, g.Server)
		return
	}
	g.Server.ServeHTTP(w, r)
}

// Intercept puts f in front of the server and replaces any previous function; nil
// removes it.
func (g *Guard) Intercept(f Intercept) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.intercept = f
}

// Requests returns the line of every request since the last call, in order of arrival.
func (g *Guard) Requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	got := g.requests
	g.requests = nil
	return got
}
