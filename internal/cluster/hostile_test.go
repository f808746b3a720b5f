package cluster_test

import (
	"compress/gzip"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/testing/clustertest"
)

// TestDiscoveryFails fails the discovery of one API group. Only objects of this group must have an error.
func TestDiscoveryFails(t *testing.T) {
	s := clustertest.New(t)
	account := managedObject("v1", "ServiceAccount", "ns", "operator")
	s.Put(account)
	s.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasPrefix(r.URL.Path, "/apis/packages.example.com/") {
			clustertest.Refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable", "the server is currently unable to handle the request")
			return
		}
		next.ServeHTTP(w, r)
	})
	got := read(t, openClient(t, s, 0), []v1alpha1.ObjectReference{
		refTo(managedObject("packages.example.com/v1", "Package", "ns", "one")), refTo(account),
	})
	if got[0].Reason != v1alpha1.ReasonError || got[0].Message != "the server is currently unable to handle the request" || got[1].Object == nil {
		t.Errorf("%q", summarize(got))
	}
	asked := slices.DeleteFunc(s.Requests(), func(r string) bool { return !strings.HasPrefix(r, "GET /apis/packages.example.com/") })
	if len(asked) != 4 {
		t.Errorf("%d requests for an unavailable group, want 4", len(asked))
	}
}

// TestRetryAfter checks that the client waits as long as the server requests.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	s := clustertest.New(t)
	o := managedObject("v1", "ServiceAccount", "ns", "operator")
	s.Put(o)
	var asked []time.Time
	s.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/operator") {
			if asked = append(asked, time.Now()); len(asked) == 1 {
				w.Header().Set("Retry-After", "1")
				clustertest.Refuse(w, http.StatusTooManyRequests, "TooManyRequests", "busy")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
	if got := read(t, openClient(t, s, 0), []v1alpha1.ObjectReference{refTo(o)}); got[0].Object == nil {
		t.Fatalf("%v", got)
	}
	if len(asked) != 2 || asked[1].Sub(asked[0]) < time.Second {
		t.Errorf("requests at %v, want two, a second apart", asked)
	}
}

// TestDiscoveryLeadsNowhere reads objects whose apiVersion contains "..", and checks that no request leaves
// the paths of the API.
func TestDiscoveryLeadsNowhere(t *testing.T) {
	s := clustertest.New(t)
	got := read(t, openClient(t, s, 0), []v1alpha1.ObjectReference{
		refTo(managedObject("../../version", "Secret", "ns", "x")), refTo(managedObject("..", "Secret", "ns", "x")), refTo(managedObject("a/b/c", "Secret", "ns", "x")),
	})
	for _, o := range got {
		if o.Reason != v1alpha1.ReasonNoKind {
			t.Errorf("%v", o)
		}
	}
	for _, r := range s.Requests() {
		if strings.Contains(strings.TrimPrefix(r, "GET /api"), "/../") || !strings.HasPrefix(r, "GET /api") {
			t.Error(r)
		}
	}
}

// TestTruncated truncates a response once, and sends compressed responses that are too large
// when decompressed.
func TestTruncated(t *testing.T) {
	s := clustertest.New(t)
	o := managedObject("v1", "ServiceAccount", "ns", "operator")
	s.Put(o)
	cut, bomb := true, false
	s.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch {
		case !strings.HasSuffix(r.URL.Path, "/operator"):
			next.ServeHTTP(w, r)
		case bomb:
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(make([]byte, 70<<20))
			_ = z.Close()
		case cut:
			cut = false
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"metadata":`))
		default:
			next.ServeHTTP(w, r)
		}
	})
	c, refs := openClient(t, s, 0), []v1alpha1.ObjectReference{refTo(o)}
	if got := read(t, c, refs); got[0].Object == nil || cut {
		t.Errorf("%v", got)
	}
	bomb = true
	if got := read(t, c, refs); got[0].Message != "the response is too large" {
		t.Errorf("%v", got)
	}
}

// TestLogins logs in as described in kubeconfigs, and checks the credentials in requests.
func TestLogins(t *testing.T) {
	const program = `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"printed"}}`
	exec := map[string]any{"exec": map[string]any{
		"apiVersion": "client.authentication.k8s.io/v1", "command": "echo", "args": []string{program}, "interactiveMode": "Never",
	}}
	for _, c := range []struct {
		name    string
		address string // the address with user and password
		user    map[string]any
		header  http.Header
	}{
		{"token", "", map[string]any{"token": "t"}, http.Header{"Authorization": {"Bearer t"}}},
		{"password", "", map[string]any{"username": "u", "password": "p"}, http.Header{"Authorization": {"Basic dTpw"}}},
		{"password in the address", "user:hunter2@", map[string]any{}, http.Header{"Authorization": {"Basic dXNlcjpodW50ZXIy"}}},
		{"token, not the address", "user:hunter2@", map[string]any{"token": "t"}, http.Header{"Authorization": {"Bearer t"}}},
		{"password, not the address", "user:hunter2@", map[string]any{"username": "u", "password": "p"}, http.Header{"Authorization": {"Basic dTpw"}}},
		{"impersonation", "", map[string]any{"token": "t", "as": "jane", "as-groups": []string{"dev"}}, http.Header{"Impersonate-User": {"jane"}, "Impersonate-Group": {"dev"}}},
		{"program", "", exec, http.Header{"Authorization": {"Bearer printed"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got http.Header
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r.Header
				clustertest.Refuse(w, http.StatusNotFound, "NotFound", "nothing is served")
			}))
			defer server.Close()
			config := map[string]any{}
			if err := json.Unmarshal([]byte(clustertest.KubeconfigOf(server.URL, nil, "")), &config); err != nil {
				t.Fatal(err)
			}
			address := strings.Replace(server.URL, "https://", "https://"+c.address, 1)
			config["clusters"] = []any{object{"name": "test", "cluster": object{"server": address, "insecure-skip-tls-verify": true}}}
			config["users"] = []any{object{"name": "test", "user": c.user}}
			text, err := json.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			client, err := cluster.Open(cluster.Options{File: writeKubeconfig(t, string(text)), UserAgent: "quayside/test"})
			if err != nil {
				t.Fatal(err)
			}
			read(t, client, []v1alpha1.ObjectReference{refTo(managedObject("v1", "Secret", "ns", "x"))})
			for name, want := range c.header {
				if got.Get(name) != want[0] {
					t.Errorf("%s: %q, want %q", name, got.Get(name), want[0])
				}
			}
			if got.Get("User-Agent") != "quayside/test" {
				t.Errorf("User-Agent: %q", got.Get("User-Agent"))
			}
		})
	}
}
