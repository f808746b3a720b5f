package gitrepo_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/gitrepo"
)

// TestTokenOverHTTP checks that a token is sent only over https or to this machine.
func TestTokenOverHTTP(t *testing.T) {
	for remote, want := range map[string]bool{
		"https://example.com/x": true, "HTTPS://example.com/x": true, "http://localhost:3000/x": true, "http://127.0.0.1/x": true, "http://[::1]:80/x": true,
		"http://example.com/x": false, "HTTP://example.com/x": false, "http://127.0.0.1.example.com/x": false, "http://localhost.example.com/x": false,
		"http://10.0.0.1/x": false, "ssh://git@example.com/x": false, "git@example.com:x": false, "/tmp/x": false, "https://bob:own@example.com/x": false,
	} {
		if got, err := gitrepo.TakesToken(remote); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", remote, got, err, want)
		}
	}
}

// TestPushHidesCredentials pushes to URLs with credentials. Errors must not contain the credentials, and Push
// must not send them over http to another machine.
func TestPushHidesCredentials(t *testing.T) {
	dir := newRepository(t)
	r := open(t, dir)
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, sent, _ = req.BasicAuth()
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	_, host, _ := strings.Cut(server.URL, "://")
	git(t, dir, "remote", "add", "two", "https://bob:SECRET@example.invalid/x")
	git(t, dir, "remote", "set-url", "--add", "two", "http://bob:SECRET@example.invalid/x")
	for remote, want := range map[string]string{
		"http://bob:SECRET@example.invalid/x": "to http://***@example.invalid/x: credentials are only sent over https",
		"http://SECRET@example.invalid/x":     "to http://***@example.invalid/x: credentials are only sent over https",
		"two":                                 "credentials are only sent over https",
		"http://bob:SECRET@" + host + "/x":    "to http://***@" + host + "/x: ",
		"https://SECRET@" + host + "/x":       "to https://***@" + host + "/x: ",
		"https://SECRET@":                     `no remote "https://***@"`,
		"https://SECRET%zz@example.invalid/x": `no remote "https://***@example.invalid/x"`,
	} {
		_, err := r.Push(t.Context(), remote, "main", "TOKEN", "")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: got %v, want %q", remote, err, want)
		}
	}
	if sent != "SECRET" {
		t.Errorf("to this machine was sent %q", sent)
	}
}
