package oci_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/internal/testing/servertest"
)

const (
	user   = "alice"
	secret = "hunter2-s3cret"
)

// loginFile writes a docker config with a login for key.
func loginFile(t *testing.T, key string) string {
	t.Helper()
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + secret))
	return write(t, filepath.Join(t.TempDir(), "config.json"), fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, key, auth), 0o600)
}

func write(t *testing.T, path, data string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// requireBasic requires the login in every request.
func requireBasic(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if u, p, ok := r.BasicAuth(); !ok || u != user || p != secret {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		http.Error(w, "you sent "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		return
	}
	next.ServeHTTP(w, r)
}

// requireBearer requires a token. It is also the token server, which returns the token for the login.
func requireBearer(w http.ResponseWriter, r *http.Request, next http.Handler) {
	const token = "bearer-t0ken"
	switch {
	case r.URL.Path == "/token":
		if u, p, _ := r.BasicAuth(); u != user || p != secret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"token":%q}`, token)
	case r.Header.Get("Authorization") != "Bearer "+token:
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="test"`, r.Host))
		w.WriteHeader(http.StatusUnauthorized)
	default:
		next.ServeHTTP(w, r)
	}
}

func TestCredentials(t *testing.T) {
	for scheme, guard := range map[string]servertest.Intercept{"basic": requireBasic, "bearer": requireBearer} {
		t.Run(scheme, func(t *testing.T) {
			srv := ocitest.New(t)
			p, ref := pushExample(t, srv)
			srv.Intercept(guard)
			for _, key := range []string{srv.Host, srv.Host + "/org", srv.Host + "/org/catalog", "http://" + srv.Host + "/v1/"} {
				c := newClient(t)
				c.Credentials = &oci.Credentials{Files: []string{filepath.Join(t.TempDir(), "missing"), loginFile(t, key)}}
				if _, err := pull(t.Context(), c, ref); err != nil {
					t.Errorf("login of %s: %v", key, err)
				}
				if err := c.Push(t.Context(), srv.Host+"/org/catalog:copy", p.Packed); err != nil {
					t.Errorf("push with a login of %s: %v", key, err)
				}
				checkNotStored(t, c.Store.Dir(), secret)
			}
			c := newClient(t)
			c.Credentials = &oci.Credentials{Files: []string{loginFile(t, "elsewhere.example")}}
			if _, err := c.Open(t.Context(), ref); err == nil || !strings.Contains(err.Error(), "401 Unauthorized: log in with") {
				t.Errorf("without a login: %v", err)
			}
		})
	}
}

func TestRefusedCredentialsAreNotShown(t *testing.T) {
	srv := ocitest.New(t)
	_, ref := pushExample(t, srv)
	srv.Intercept(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"errors":[{"code":"UNAUTHORIZED","message":"no: %s"}]}`, r.Header.Get("Authorization"))
	})
	file := loginFile(t, srv.Host)
	c := newClient(t)
	c.Credentials = &oci.Credentials{Files: []string{file}}
	_, err := c.Open(t.Context(), ref)
	if err == nil || !strings.Contains(err.Error(), "invalid credentials of "+file) {
		t.Fatalf("got %v", err)
	}
	for _, s := range []string{secret, base64.StdEncoding.EncodeToString([]byte(user + ":" + secret))} {
		if strings.Contains(err.Error(), s) {
			t.Errorf("shows credentials: %v", err)
		}
	}
}

func TestCredentialHelper(t *testing.T) {
	srv := ocitest.New(t)
	_, ref := pushExample(t, srv)
	srv.Intercept(requireBasic)
	bin := t.TempDir()
	write(t, filepath.Join(bin, "docker-credential-good"), fmt.Sprintf("#!/bin/sh\necho '{\"ServerURL\":\"x\",\"Username\":\"%s\",\"Secret\":\"%s\"}'\n", user, secret), 0o755)
	write(t, filepath.Join(bin, "docker-credential-bad"), "#!/bin/sh\necho "+secret+"\nexit 1\n", 0o755)
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	dir := t.TempDir()
	open := func(config string) error {
		c := newClient(t)
		c.Credentials = &oci.Credentials{Files: []string{write(t, filepath.Join(dir, "config.json"), config, 0o600)}}
		_, err := c.Open(t.Context(), ref)
		return err
	}
	if err := open(fmt.Sprintf(`{"credHelpers":{%q:"good"}}`, srv.Host)); err != nil {
		t.Error(err)
	}
	if err := open(`{"credsStore":"good"}`); err != nil {
		t.Error(err)
	}
	for config, want := range map[string]string{
		`{"credsStore":"bad"}`:     "failed (docker-credential-bad)",
		`{"credsStore":"missing"}`: "is not installed: no docker-credential-missing on the PATH",
	} {
		err := open(config)
		if err == nil || !strings.Contains(err.Error(), "the credential helper named in "+dir) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v", config, err)
		}
	}
	if err := open(`{"auths": {`); err == nil || !strings.Contains(err.Error(), "is not a valid Docker config.json") {
		t.Errorf("broken file: %v", err)
	}
	srv.Intercept(nil)
	if err := open(`{"credsStore":"missing"}`); err != nil {
		t.Errorf("a public image needs no helper: %v", err)
	}
}

func TestDefaultCredentials(t *testing.T) {
	env := map[string]string{"HOME": "/home/a", "XDG_RUNTIME_DIR": "/run/user/1", "REGISTRY_AUTH_FILE": "/auth.json"}
	got := oci.DefaultCredentials(func(k string) string { return env[k] }).Files
	want := []string{"/auth.json", "/run/user/1/containers/auth.json", "/home/a/.config/containers/auth.json", "/home/a/.docker/config.json"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	env = map[string]string{"HOME": "/home/a", "XDG_CONFIG_HOME": "/c", "DOCKER_CONFIG": "/d"}
	got = oci.DefaultCredentials(func(k string) string { return env[k] }).Files
	if diff := cmp.Diff([]string{"/c/containers/auth.json", "/d/config.json"}, got); diff != "" {
		t.Error(diff)
	}
	if got := oci.DefaultCredentials(func(string) string { return "" }).Files; got != nil {
		t.Errorf("empty environment: %q", got)
	}
}

func TestLoginKeys(t *testing.T) {
	for in, want := range map[string][]string{
		"quay.io/org/sub/x": {"quay.io/org/sub/x", "quay.io/org/sub", "quay.io/org", "quay.io"},
		"busybox": {
			"docker.io/library/busybox", "index.docker.io/library/busybox", "docker.io/library", "index.docker.io/library",
			"docker.io", "index.docker.io", "https://index.docker.io/v1/",
		},
	} {
		repo, err := name.NewRepository(in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, oci.LoginKeys(repo)); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}

// TestRedirect redirects requests for blobs to another host, as registries do, and checks that
// the other host gets no login.
func TestRedirect(t *testing.T) {
	for scheme, guard := range map[string]servertest.Intercept{"basic": requireBasic, "bearer": requireBearer} {
		t.Run(scheme, func(t *testing.T) {
			srv := ocitest.New(t)
			_, ref := pushExample(t, srv)
			var mu sync.Mutex
			var leaked []string
			var asked int
			back := newBackend(t)
			other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked++
				for k, vs := range r.Header {
					if k == "Authorization" || k == "Cookie" || strings.Contains(fmt.Sprint(vs), secret) {
						leaked = append(leaked, k+": "+strings.Join(vs, ","))
					}
				}
				mu.Unlock()
				back(w, r, srv)
			}))
			t.Cleanup(other.Close)
			srv.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if strings.Contains(r.URL.Path, "/blobs/") && r.Header.Get("X-Inside") == "" {
					guard(w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						http.Redirect(w, r, other.URL+r.URL.Path+"?signature="+secret, http.StatusTemporaryRedirect)
					}))
					return
				}
				if r.Header.Get("X-Inside") != "" {
					next.ServeHTTP(w, r)
					return
				}
				guard(w, r, next)
			})
			c := newClient(t)
			c.Credentials = &oci.Credentials{Files: []string{loginFile(t, srv.Host)}}
			if _, err := pull(t.Context(), c, ref); err != nil {
				t.Error(err)
			}
			if asked == 0 || len(leaked) > 0 {
				t.Errorf("%d requests, with %q", asked, leaked)
			}
			other.Close() // the error then contains the redirect's URL
			c = newClient(t)
			c.Credentials = &oci.Credentials{Files: []string{loginFile(t, srv.Host)}}
			if _, err := pull(t.Context(), c, ref); err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("got %v, want an error without the signature", err)
			}
		})
	}
}

// newBackend returns a handler that fetches the same path from srv, without srv's intercept function.
func newBackend(t *testing.T) func(http.ResponseWriter, *http.Request, *ocitest.Server) {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request, srv *ocitest.Server) {
		req, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://"+srv.Host+r.URL.Path, nil)
		req.Header.Set("X-Inside", "1")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		w.WriteHeader(res.StatusCode)
		_, _ = io.Copy(w, res.Body)
	}
}

// newRedirect marks the request to as the result of a redirect of the request from, and returns it.
func newRedirect(from, to *http.Request) *http.Request {
	to.Response = &http.Response{Request: from}
	return to
}

func TestRedirectRules(t *testing.T) {
	request := func(s string) *http.Request {
		r, err := http.NewRequest(http.MethodGet, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	tests := []struct {
		from, to string
		ok       bool
	}{
		{"https://quay.io/v2/", "https://cdn.quay.io/x", true},
		{"https://quay.io/v2/", "http://cdn.quay.io/x", false},
		{"https://quay.io/v2/", "https://169.254.169.254/latest", false},
		{"https://quay.io/v2/", "https://127.0.0.1/x", false},
		{"https://quay.io/v2/", "https://localhost/x", false},
		{"https://quay.io/v2/", "https://10.0.0.1/x", false},
		{"https://quay.io/v2/", "file:///etc/passwd", false},
		{"http://127.0.0.1:1/v2/", "http://127.0.0.1:2/x", true},
		{"https://10.0.0.5/v2/", "https://10.0.0.6/x", true},
		{"https://registry:5000/v2/", "https://minio/x", true},
	}
	for _, host := range []string{
		"localhost.", "LOCALHOST:2376", "foo.localhost", "127.1", "0x7f.1", "2130706433", "100.100.100.200", "[fe80::1%25eth0]", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "[2002:a00:1::]",
		"metadata", "metadata.google.internal", "kubernetes.default.svc", "printer.local", "router.home.arpa", "255.255.255.255",
	} {
		tests = append(tests, struct {
			from, to string
			ok       bool
		}{"https://quay.io/v2/", "https://" + host + "/x", false})
	}
	for _, tt := range tests {
		if err := oci.CheckRedirect(newRedirect(request(tt.from), request(tt.to))); (err == nil) != tt.ok {
			t.Errorf("%s to %s: %v", tt.from, tt.to, err)
		}
	}
	last := request("https://quay.io/")
	for range oci.MaxRedirects + 1 {
		last = newRedirect(last, request("https://quay.io/"))
	}
	if err := oci.CheckRedirect(last); err == nil {
		t.Error("redirected for ever")
	}
}

// TestAddresses checks to which addresses a registry in a public or private network may refer the client.
func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		registry  string // address of the registry; empty: reached by a proxy
		host, at  string
		connected bool
	}{
		{"203.0.113.1:443", "cdn.example.com", "203.0.113.2:443", true},
		{"203.0.113.1:443", "cdn.example.com", "10.0.0.1:443", false},
		{"203.0.113.1:443", "cdn.example.com", "[fd00::1]:443", false},
		{"203.0.113.1:443", "cdn.example.com", "[::ffff:169.254.169.254]:80", false},
		{"203.0.113.1:443", "", "10.0.0.1:3128", true}, // a proxy
		{"10.0.0.9:443", "minio.example.com", "10.0.0.1:443", true},
		{"", "cdn.example.com", "127.0.0.1:443", false},
	} {
		connect := oci.Connector("registry.example.com")
		if tt.registry != "" && connect("registry.example.com", tt.registry) != nil {
			t.Errorf("registry %s is refused", tt.registry)
		}
		if err := connect(tt.host, tt.at); (err == nil) != tt.connected {
			t.Errorf("registry %s, %s at %s: %v", tt.registry, tt.host, tt.at, err)
		}
	}
}

// TestReferredBy checks from which addresses a file may be downloaded, if a file of another server refers to it.
func TestReferredBy(t *testing.T) {
	for _, tt := range []struct {
		by, host, at string
		downloaded   bool
	}{
		{"https://203.0.113.1/charts", "cdn.example.com", "203.0.113.2:443", true},
		{"https://203.0.113.1/charts", "cdn.example.com", "10.0.0.1:443", false},
		{"https://203.0.113.1/charts", "cdn.example.com", "[fd00::1]:443", false},
		{"https://203.0.113.1/charts", "169.254.169.254", "169.254.169.254:443", false},
		{"https://203.0.113.1/charts", "metadata.google.internal", "203.0.113.2:443", false},
		{"https://203.0.113.1/charts", "localhost:8443", "127.0.0.1:8443", false},
		{"https://203.0.113.1/charts", "127.1", "127.0.0.1:443", false},
		{"https://203.0.113.1/charts", "203.0.113.1:8443", "203.0.113.1:8443", true},
		{"https://10.0.0.5/charts", "minio.example.com", "10.0.0.1:443", true},
		{"https://charts.internal", "10.0.0.1", "10.0.0.1:443", true},
		{"http://127.0.0.1:1/charts", "localhost:2", "127.0.0.1:2", true},
		{"", "10.0.0.1", "10.0.0.1:443", true}, // the URL is in the user's file
	} {
		connect, err := oci.ReferredConnector(tt.by, tt.host)
		if err == nil {
			err = connect(tt.at)
		}
		if (err == nil) != tt.downloaded {
			t.Errorf("%s refers to %s at %s: %v", tt.by, tt.host, tt.at, err)
		}
	}
}

func TestTLS(t *testing.T) {
	srv := httptest.NewTLSServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(srv.Close)
	host := strings.TrimPrefix(srv.URL, "https://")
	ref := host + "/x/y:v1"
	certs := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	write(t, filepath.Join(certs, host, "ca.crt"), string(ca), 0o644)

	c := newClient(t)
	if err := c.Push(t.Context(), ref, example(t).Packed); err == nil {
		t.Error("an untrusted certificate was accepted")
	} else if text := err.Error(); !strings.Contains(text, "x509: ") || !strings.Contains(text, "certs.d/"+host+"/ca.crt") || strings.Contains(text, " 400") {
		t.Errorf("error for an untrusted certificate: %s", text)
	}
	c.CertDirs = []string{filepath.Join(certs, "missing"), certs}
	if err := c.Push(t.Context(), ref, example(t).Packed); err != nil {
		t.Fatal(err)
	}
	if _, err := pull(t.Context(), c, ref); err != nil {
		t.Error(err)
	}
	c = newClient(t)
	c.Insecure = []string{host}
	if _, err := pull(t.Context(), c, ref); err != nil {
		t.Errorf("insecure: %v", err)
	}
	c = newClient(t)
	broken := t.TempDir()
	path := write(t, filepath.Join(broken, host, "ca.crt"), "no certificate", 0o644)
	c.CertDirs = []string{broken}
	if _, err := pull(t.Context(), c, ref); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want %s named", err, path)
	}
}

// checkNotStored fails the test if a file below dir contains word.
func checkNotStored(t *testing.T, dir, word string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if strings.Contains(string(data), word) {
			t.Errorf("%s holds %q", p, word)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
