// Package servertest records the requests to a test server, and lets a test intercept them.
//
// Start from [Guard].
package servertest

import (
	"net/http"
	"sync"
)

// Intercept handles a request in place of the server. It must write the response itself, or pass the request to
// next, which is the server.
type Intercept = func(w http.ResponseWriter, r *http.Request, next http.Handler)

// Guard records and intercepts the requests to a server. It is safe for concurrent use.
type Guard struct {
	Server http.Handler
	Line   func(r *http.Request) string // formats a request for the result of Requests

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

// Intercept sets the function that handles requests before the server. nil removes it.
func (g *Guard) Intercept(f Intercept) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.intercept = f
}

// Requests returns the requests that arrived since the last call of Requests, formatted and in order of arrival.
func (g *Guard) Requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	got := g.requests
	g.requests = nil
	return got
}
