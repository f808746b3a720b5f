package imageref

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const zeros = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

func TestSplit(t *testing.T) {
	for in, want := range map[string]Ref{
		"nginx":                         {"docker.io", "library/nginx", "", ""},
		"library/nginx:1":               {"docker.io", "library/nginx", "1", ""},
		"docker.io/nginx@sha256:0":      {"docker.io", "library/nginx", "", "sha256:0"},
		"index.docker.io/org/x:1":       {"docker.io", "org/x", "1", ""},
		"localhost/x":                   {"localhost", "x", "", ""},
		"host:5000/a/b:1@sha512:1":      {"host:5000", "a/b", "1", "sha512:1"},
		"quay.io/org/x":                 {"quay.io", "org/x", "", ""},
		"[::1]:5000/a":                  {"[::1]:5000", "a", "", ""},
		"docker-pullable://quay.io/x@d": {"docker-pullable:", "/quay.io/x", "", "d"},
		"":                              {"docker.io", "library/", "", ""},
	} {
		if d := cmp.Diff(want, Split(in)); d != "" {
			t.Errorf("%q (-want +got):\n%s", in, d)
		}
	}
}

// TestNormal checks that references have the same normal form if, and only if, they refer to the same image.
func TestNormal(t *testing.T) {
	for want, same := range map[string][]string{
		"docker.io/library/nginx:latest": {
			"nginx", "nginx:latest", "library/nginx", "docker.io/nginx", "docker.io/library/nginx", "index.docker.io/nginx",
			"index.docker.io/library/nginx:latest", "Docker.IO/nginx", "INDEX.docker.io/nginx", "docker.io:443/nginx", "index.docker.io:443/library/nginx",
			"registry-1.docker.io/library/nginx", "registry.hub.docker.com/library/nginx:latest",
		},
		"docker.io/org/tool:2":          {"org/tool:2", "index.docker.io/org/tool:2"},
		"quay.io/org/x:latest":          {"quay.io/org/x", "QUAY.io/org/x:latest", "quay.io:443/org/x"},
		"127.0.0.1/x:latest":            {"127.0.0.1:443/x", "127.0.0.1:80/x"},
		"[2001:db8::1]:5000/x:latest":   {"[2001:DB8::1]:5000/x", "[2001:db8::1]:5000/x"},
		"quay.io:80/x:latest":           {"quay.io:80/x"},
		"registry:443/x:latest":         {"Registry:443/x"},
		"quay.io/org/x@" + zeros:        {"quay.io/org/x@" + zeros, "quay.io/org/x:v1@" + zeros, "Quay.io:443/org/x:v2@" + zeros},
		"quay.io:8443/org/x:V1":         {"quay.io:8443/org/x:V1", "QUAY.IO:8443/org/x:V1"},
		"quay.io/org/x:v1":              {"quay.io/org/x:v1"},
		"localhost/x:latest":            {"localhost/x", "LOCALHOST:443/x"},
		"docker.io/library/quay:latest": {"quay"},
	} {
		for _, in := range same {
			if got, err := Normal(in); err != nil || got.String() != want {
				t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
			}
		}
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"quay.io/x/y": "quay.io/x/y:latest", "busybox": "docker.io/library/busybox:latest", "index.docker.io/org/x:1": "docker.io/org/x:1",
		"quay.io/x/y:1@" + zeros: "quay.io/x/y@" + zeros, "localhost/xy": "localhost/xy:latest",
	} {
		if got, err := Parse(in); err != nil || got.String() != want {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", "quay.io/X", "quay.io/x y", "x", "quay.io/xy@sha256:0", "quay.io/xy@sha512:" + strings.Repeat("0", 128), "quay.io/xy@" + strings.ToUpper(zeros)} {
		if got, err := Parse(in); err == nil {
			t.Errorf("%q: got %q, want an error", in, got)
		}
	}
}

func TestBelow(t *testing.T) {
	for _, tt := range []struct {
		ref, prefix, rest string
		ok                bool
	}{
		{"quay.io/org/x:1", "quay.io", "/org/x:1", true},
		{"quay.io/org/x:1", "quay.io/org", "/x:1", true},
		{"quay.io/org/x:1", "quay.io/org/x", ":1", true},
		{"quay.io/org/x@d", "quay.io/org/x", "@d", true},
		{"quay.io/org/x", "quay.io/org/x", "", true},
		{"quay.io/organ/x", "quay.io/org", "", false},
		{"quay.io:5000/org/x", "quay.io", "", false}, // another registry
		{"quay.io:5000/org/x", "quay.io:5000", "/org/x", true},
		{"a.example.com/x", "*.example.com", "/x", true},
		{"a.b.example.com/org/x", "*.example.com/org", "/x", true},
		{"a.b.example.com/org/x", "*.example.com/other", "", false},
		{"example.com/x", "*.example.com", "", false},
		{"a.example.com:5000/x", "*.example.com", "", false},
		{"quay.io/x", "", "", false},
		{"quay.io/x", "*", "/x", true},
		{"QUAY.IO/org/x:1", "quay.io:443/org", "/x:1", true},
		{"quay.io:443/org/x", "Quay.io", "/org/x", true},
		{"quay.io/ORG/x", "quay.io/org", "", false}, // paths are case-sensitive
		{"[2001:DB8::1]:5000/x", "[2001:db8::1]:5000", "/x", true},
		{"A.Example.com:443/x", "*.EXAMPLE.com", "/x", true},
		{"a.example.com:5000/x", "*.example.com:5000", "/x", true},
		{"badexample.com/x", "*.example.com", "", false},
		{"docker.io/nginx:1", "docker.io/library", "/nginx:1", true},
		{"index.docker.io/nginx@d", "docker.io/library/nginx", "@d", true},
		{"registry-1.docker.io/library/nginx", "docker.io", "/library/nginx", true},
		{"docker.io/library/nginx", "registry.hub.docker.com:443/library", "/nginx", true},
		{"localhost:5000/x", "LOCALHOST:5000", "/x", true},
		{"quay.io", "quay.io", "", true},
	} {
		if rest, ok := CutPrefix(tt.ref, tt.prefix); rest != tt.rest || ok != tt.ok {
			t.Errorf("%s below %s: %q, %v, want %q, %v", tt.ref, tt.prefix, rest, ok, tt.rest, tt.ok)
		}
	}
}

func TestIsPlace(t *testing.T) {
	for s, want := range map[string]bool{
		"quay.io": true, "quay.io/org": true, "host:5000/a/b": true, "": false, "https://quay.io": false, "quay.io/": false,
		"quay.io/org:1": false, "quay.io/org@d": false, "*.io": false, "quay.io//x": false, "a b": false,
	} {
		if got := IsRepositoryPrefix(s); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

func TestIsDigest(t *testing.T) {
	for s, want := range map[string]bool{
		zeros: true, "": false, zeros + "0": false, zeros[:70]: false, strings.Repeat("0", 71): false,
		"sha256:" + strings.Repeat("A", 64): false, "sha256:" + strings.Repeat("g", 64): false, "sha512:" + strings.Repeat("0", 64): false,
	} {
		if got := IsDigest(s); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

// FuzzRef compares the parsers. Split and Parse must return the same name. Parse must accept its own result.
// The name of a plausible reference must be plausible, too.
func FuzzRef(f *testing.F) {
	for _, s := range []string{"nginx", "docker.io/nginx:1", "quay.io/a/b@sha256:0", "host:5000/a:b@sha512:1", "a//b", ":", "@", "Docker.io/x", "quay.io/a/", "quay.io/a/b:1@" + zeros} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		split := Split(s)
		if parsed, err := Parse(s); err == nil {
			if split.Name() != parsed.Name() || split.Digest != parsed.Digest {
				t.Errorf("%q splits into %+v, but parses as %+v", s, split, parsed)
			}
			if again, err := Parse(parsed.String()); err != nil || again != parsed {
				t.Errorf("%q: %+v reads as %+v, %v", s, parsed, again, err)
			}
		}
		if split.Plausible() {
			if again := Split(split.Name()); !again.Plausible() || again.Name() != split.Name() {
				t.Errorf("%q is %q, which is %q", s, split.Name(), again.Name())
			}
		}
		for _, prefix := range []string{"*.a", "docker.io", "", "*"} {
			if rest, ok := CutPrefix(s, prefix); ok && !strings.HasSuffix(s, strings.TrimPrefix(rest, "/library")) {
				t.Errorf("%q below %q leaves %q", s, prefix, rest)
			}
		}
	})
}

// TestNormalRefuses checks that references with several possible meanings are rejected.
func TestNormalRefuses(t *testing.T) {
	for _, in := range []string{
		"", "quay.io/", "quay.io..com/x", ".quay.io/x", "quay..io/x", "quay.io../x", "-quay.io/x", "quay.io:0/x", "quay.io:65979/x", "quay.io:+443/x",
		"quay.io:4:43/x", "quay\u3002io/x", "\uff51uay.io/x", "qu\u00aday.io/x", "quay%2eio/x", "quay.io%00.com/x", "quay.io\\@evil.com/x", "us er.io/x",
		"quay.io./x", "quay.io:/x", "quay.io:0443/x", "quay.io:443:443/x", "registry./x", "[::ffff:127.0.0.1]/x", "127.0.0.1./x", "[2001:db8:0::1]/x", "[2001:db8::1]:05000/x",
		"127.1/x", "2130706433.0x7f/x", "0177.0.0.1/x", "0x7f.1:443/x", "[fe80::1%eth0]/x", "[127.0.0.1]/x", "[quay.io]/x", "[::1/x", "[::1]x/x",
		"quay.io//x/y", "quay.io/x//y", "quay.io/./x", "quay.io/x/../y", "quay.io/x/", "quay.io/X", "quay.io/x/.y", "quay.io/x%2fy", "LOCALHOST/x",
		strings.Repeat("a", 64) + ".io/x", strings.Repeat("a.", 130) + "io/x",
	} {
		if got, err := Normal(in); err == nil {
			t.Errorf("%q: got %q, want an error", in, got)
		}
	}
}

func TestNormalPrefix(t *testing.T) {
	for in, want := range map[string]string{
		"quay.io/": "quay.io/", "QUAY.io:443/org/": "quay.io/org/", "registry-1.docker.io/library/my-": "docker.io/library/my-",
		"quay.io": "", "quay": "", "quay/": "", "Registry:443/": "registry:443/", "Registry:/": "", "quay.io./": "", "quay.io:0443/": "", "": "", "quay..io/": "",
	} {
		if got, err := NormalPrefix(in); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
}

// destination returns the address that net/http dials for a reference, followed by the path of the request as a
// server resolves it. It returns false for a reference that Parse rejects.
func destination(s string) (string, bool) {
	ref, err := Parse(s)
	if err != nil {
		return "", false
	}
	var dialed string
	client := http.Client{Transport: &http.Transport{DialTLSContext: func(_ context.Context, _, addr string) (net.Conn, error) {
		dialed = addr
		return nil, errors.New("not in a test")
	}}}
	req, err := http.NewRequest(http.MethodGet, "https://"+ref.Registry+"/v2/"+ref.Repository, http.NoBody)
	if err != nil {
		return "", false
	}
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
	}
	host, port, err := net.SplitHostPort(dialed)
	if err != nil {
		return "", false
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.Unmap().String()
	}
	host = Host(strings.ToLower(strings.TrimSuffix(host, ".")))
	n, err := net.LookupPort("tcp", port)
	under := path.Clean(req.URL.Path)
	if p, ok := strings.CutPrefix(under, "/v2/"); ok && host == dockerHub && !strings.Contains(p, "/") {
		under = "/v2/library/" + p
	}
	return fmt.Sprintf("%s %d %s", host, n, under), err == nil
}

// FuzzNormal checks two properties. Two references with the same destination have the same normal form,
// unless one of them has no normal form. The normal form of a normal form is the normal form itself.
func FuzzNormal(f *testing.F) {
	for _, s := range []string{
		"quay.io:443/org/x", "QUAY.IO/org/x", "quay.io./org/x", "quay.io:0443/org/x", "quay\u3002io/org/x", "\uff51uay.io/org/x", "quay.io/org//x", "quay.io/a/../org/x", "quay.io/./org/x",
		"quay.io:/org/x", "quay.io/org/x/",
	} {
		f.Add(s, "quay.io/org/x")
	}
	for _, s := range []string{"index.docker.io/library/nginx", "docker.io./nginx", "docker.io:443/nginx", "library/nginx", "docker.io//nginx"} {
		f.Add(s, "nginx")
	}
	f.Add("[::ffff:127.0.0.1]:5000/xy", "127.0.0.1:5000/xy")
	f.Add("[0:0::1]/xy", "[::1]/xy")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, err := Normal(a)
		if err != nil {
			return
		}
		if again, err := Normal(x.String()); err != nil || again != x {
			t.Errorf("%q is normally %q, which is normally %q, %v", a, x, again, err)
		}
		y, err := Normal(b)
		from, ok := destination(a)
		to, also := destination(b)
		if err == nil && ok && also && from == to && x.Name() != y.Name() {
			t.Errorf("%q and %q both are at %s, but normally %q and %q", a, b, from, x.Name(), y.Name())
		}
	})
}
