// Package servertest lets a test stand in the way of a server, and see what the
// server was asked.
//
// Start from [Guard].
package servertest

import (
	"net/http"
	"sync"
)

// Intercept sees a request before the server does: it answers it, or passes it
// on to next.
type Intercept = func(w http.ResponseWriter, r *http.Request, next http.Handler)

// Guard stands before a server. It is for use by several goroutines at once.
type Guard struct {
	Server http.Handler
	Line   func(r *http.Request) string // what Requests says of a request

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

// Intercept puts f in front of the server, in place of what was there; nil
// takes it away.
func (g *Guard) Intercept(f Intercept) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.intercept = f
}

// Requests returns the line of every request since the last call, in the order
// they came.
func (g *Guard) Requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	got := g.requests
	g.requests = nil
	return got
}
