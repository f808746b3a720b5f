package oci_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

const conf = `
unqualified-search-registries = ["docker.io"]
short-name-mode = "enforcing"

[[registry]]
prefix = "quay.io/org"
location = "quay.io/org"
  [[registry.mirror]]
  location = "mirror.corp:5000/quay"
  insecure = true
  [[registry.mirror]]
  location = "digests.corp/quay"
  pull-from-mirror = "digest-only"
  [[registry.mirror]]
  location = "tags.corp/quay"
  pull-from-mirror = "tag-only"

[[registry]]
prefix = "quay.io"
location = "other.corp/quay"

[[registry]]
location = "blocked.example"
blocked = true

[[registry]]
prefix = "*.wild.example"
mirror-by-digest-only = true
  [[registry.mirror]]
  location = "mirror.corp/wild"

[[registry]]
location = "docker.io"
  [[registry.mirror]]
  location = "mirror.corp/hub"
`

const sets = `
apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata: {name: a}
spec:
  imageDigestMirrors:
  - source: registry.redhat.io/rhel
    mirrors: [one.corp/rhel, two.corp/rhel]
  - source: closed.example
    mirrors: [one.corp/closed]
    mirrorSourcePolicy: NeverContactSource
---
apiVersion: config.openshift.io/v1
kind: ImageTagMirrorSet
metadata: {name: b}
spec:
  imageTagMirrors:
  - source: registry.redhat.io/rhel
    mirrors: [tags.corp/rhel]
---
apiVersion: operator.openshift.io/v1alpha1
kind: ImageContentSourcePolicy
metadata: {name: c}
spec:
  repositoryDigestMirrors:
  - source: old.example/x
    mirrors: [one.corp/old]
---
kind: ConfigMap
data: {whatever: it holds}
`

func mirrors(t *testing.T) oci.Mirrors {
	t.Helper()
	a, err := oci.ParseMirrors("registries.conf", []byte(conf))
	if err != nil {
		t.Fatal(err)
	}
	b, err := oci.ParseMirrors("mirrors.yaml", []byte(sets))
	if err != nil {
		t.Fatal(err)
	}
	return a.Join(b)
}

func TestMirrors(t *testing.T) {
	m := mirrors(t)
	tests := []struct {
		repo   string
		digest bool
		want   string // separated by blanks
	}{
		{"quay.io/org/x", true, "mirror.corp:5000/quay/x digests.corp/quay/x quay.io/org/x"},
		{"quay.io/org/x", false, "mirror.corp:5000/quay/x tags.corp/quay/x quay.io/org/x"},
		{"quay.io/organ/x", true, "other.corp/quay/organ/x"},
		{"quay.io.example/x", true, "quay.io.example/x"},
		{"a.wild.example/x/y", true, "mirror.corp/wild/x/y a.wild.example/x/y"},
		{"a.b.wild.example/x", false, "a.b.wild.example/x"},
		{"wild.example/x", true, "wild.example/x"},
		{"docker.io/library/busybox", true, "mirror.corp/hub/library/busybox docker.io/library/busybox"},
		{"registry.redhat.io/rhel/x", true, "one.corp/rhel/x two.corp/rhel/x registry.redhat.io/rhel/x"},
		{"registry.redhat.io/rhel/x", false, "tags.corp/rhel/x registry.redhat.io/rhel/x"},
		{"closed.example/x", true, "one.corp/closed/x"},
		{"old.example/x", true, "one.corp/old old.example/x"},
		{"elsewhere.example/x", true, "elsewhere.example/x"},
	}
	for _, tt := range tests {
		got, err := m.Places(tt.repo, tt.digest)
		if diff := cmp.Diff(strings.Fields(tt.want), got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", tt.repo, err, diff)
		}
	}
	for repo, want := range map[string]string{"blocked.example/x": "registries.conf", "closed.example/x": "mirrors.yaml"} {
		if got, err := m.Places(repo, false); err == nil || !strings.HasPrefix(err.Error(), want+" blocks "+repo) {
			t.Errorf("%s: got %q, %v", repo, got, err)
		}
	}
	if got, err := m.Places("Closed.Example:443/x", true); err != nil || len(got) != 1 || got[0] != "one.corp/closed/x" {
		t.Errorf("a source in another spelling: got %q, %v", got, err)
	}
	for repo, want := range map[string]bool{"mirror.corp:5000/quay/x": true, "mirror.corp:5000/other": false, "quay.io/org/x": false} {
		if m.IsInsecure(repo) != want {
			t.Errorf("insecure %s: %v", repo, !want)
		}
	}
	if got, err := (oci.Mirrors{}).Places("a.example/x", true); err != nil || len(got) != 1 {
		t.Errorf("no mirrors: %q, %v", got, err)
	}
}

func TestMirrorFaults(t *testing.T) {
	for _, tt := range []struct{ file, data, want string }{
		{"r.conf", "[[registry]\n", "r.conf:2:11: expected end of table"},
		{"r.conf", "[[registry]]\nlocation = 1\n", "r.conf: toml: line 2"},
		{"r.conf", "[[registry]]\nblocked = true\n", `registry[0].location: "" is not a registry`},
		{"r.conf", "[[registry]]\nlocation = \"a.example\"\n[[registry.mirror]]\nlocation = \"b example\"\npull-from-mirror = \"never\"\n", "must be one of all, digest-only, tag-only"},
		{"m.yaml", "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{source: a.example, mirors: []}]}\n", "m.yaml:2:"},
		{"m.yaml", "kind: ImageTagMirrorSet\nspec: {imageTagMirrors: [{source: a.example, mirrorSourcePolicy: Sometimes}]}\n", "must be one of AllowContactingSource, NeverContactSource"},
		{"m.yaml", "kind: ImageTagMirrorSet\nspec: {imageTagMirrors: [{source: 'a b', mirrors: ['x/*']}]}\n", `"x/*" is not a registry`},
		{"m.yaml", "kind: [", "m.yaml:1"},
	} {
		if got, err := oci.ParseMirrors(tt.file, []byte(tt.data)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %q: got %v, %v, want %q", tt.file, tt.data, got, err, tt.want)
		}
	}
}

// TestPullFromMirror checks that the client tries a mirror first, and the original registry if the mirror
// does not have the image.
func TestPullFromMirror(t *testing.T) {
	source, near := ocitest.New(t), ocitest.New(t)
	p, ref := pushExample(t, source)
	m, err := oci.ParseMirrors("m.conf", []byte("[[registry]]\nlocation = \""+source.Host+"/org\"\n[[registry.mirror]]\nlocation = \""+near.Host+"/copy\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	open := func() (*oci.Image, error) {
		c := newClient(t)
		c.Mirrors = m
		return pull(t.Context(), c, ref)
	}
	if _, err := open(); err != nil {
		t.Errorf("an empty mirror: %v", err)
	}
	if err := newClient(t).Push(t.Context(), near.Host+"/copy/catalog:v1", p.Packed); err != nil {
		t.Fatal(err)
	}
	source.Requests()
	im, err := open()
	if err != nil || im.Digest() != p.Digest() || im.Name() != ref {
		t.Errorf("from the mirror: %v", err)
	}
	if got := source.Requests(); len(got) != 0 {
		t.Errorf("requests to the source: %q", got)
	}
	near.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.Contains(r.URL.Path, "/blobs/") {
			sendScrambled(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	})
	if _, err := open(); err != nil {
		t.Errorf("a mirror with wrong bytes: %v", err)
	}
	refuse := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path == "/v2/" {
			next.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}
	near.Intercept(refuse)
	source.Intercept(refuse)
	if _, err := open(); err == nil || !strings.Contains(err.Error(), source.Host+" responded with 404") || !strings.Contains(err.Error(), "1 mirror also failed: "+near.Host) {
		t.Errorf("neither has it: %v", err)
	}
}

func FuzzParseMirrors(f *testing.F) {
	f.Add("a.conf", conf)
	f.Add("a.yaml", sets)
	f.Fuzz(func(t *testing.T, file, data string) {
		m, err := oci.ParseMirrors(file, []byte(data))
		if err != nil {
			return
		}
		for _, repo := range []string{"quay.io/org/x", "a.wild.example/x"} {
			if got, err := m.Places(repo, true); err == nil && len(got) == 0 {
				t.Errorf("%s: nowhere to ask", repo)
			}
		}
	})
}

func TestRewrites(t *testing.T) {
	m, err := oci.ParseMirrors("registries.conf", []byte(conf))
	if err != nil {
		t.Fatal(err)
	}
	more, err := oci.ParseMirrors("sets.yaml", []byte(sets))
	if err != nil {
		t.Fatal(err)
	}
	got := m.Join(more).Rewrites()
	want := []oci.Rewrite{
		{Prefix: "quay.io/org", Mirror: "mirror.corp:5000/quay", Tags: true, Digests: true},
		{Prefix: "*.wild.example", Mirror: "mirror.corp/wild", Digests: true},
		{Prefix: "docker.io", Mirror: "mirror.corp/hub", Tags: true, Digests: true},
		{Prefix: "registry.redhat.io/rhel", Mirror: "one.corp/rhel", Digests: true},
		{Prefix: "closed.example", Mirror: "one.corp/closed", Digests: true},
	}
	if d := cmp.Diff(want, got[:len(want)]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestRegistriesConf checks the rules of containers-registries.conf(5).
func TestRegistriesConf(t *testing.T) {
	const longest = `
[[registry]]
location = "example.com"
[[registry.mirror]]
location = "one.corp"
[[registry]]
prefix = "example.com/foo"
location = "internal.corp/bar/"
[[registry.mirror]]
location = "mirror-0.corp/foo/"
[[registry.mirror]]
location = "mirror-1.corp:8443/mirrors/foo"
insecure = true
[[registry]]
prefix = "example.com/foo/own"
`
	for _, tt := range []struct {
		name, conf, repo string
		byTag, byDigest  string // locations separated by blanks; empty: an error
	}{
		{"the longest prefix", longest, "example.com/foo/image", "mirror-0.corp/foo/image mirror-1.corp:8443/mirrors/foo/image internal.corp/bar/image", "same"},
		{"a prefix without anything", longest, "example.com/foo/own/xx", "example.com/foo/own/xx", "same"},
		{"a prefix ends at a slash", longest, "example.com/food/xx", "one.corp/food/xx example.com/food/xx", "same"},
		{"a port is part of the host", longest, "example.com:5000/foo/xx", "example.com:5000/foo/xx", "same"},
		{"a host in another", longest, "sub.example.com/foo/xx", "sub.example.com/foo/xx", "same"},

		{"subdomains", "[[registry]]\nprefix = \"*.example.com\"\n[[registry.mirror]]\nlocation = \"m.corp/all\"\n", "blah.example.com/foo/xx", "m.corp/all/foo/xx blah.example.com/foo/xx", "same"},
		{"not the domain itself", "[[registry]]\nprefix = \"*.example.com\"\nblocked = true\n", "example.com/foo/xx", "example.com/foo/xx", "same"},
		{"similar suffix", "[[registry]]\nprefix = \"*.example.com\"\nblocked = true\n", "badexample.com/foo/xx", "badexample.com/foo/xx", "same"},
		{"not in the path", "[[registry]]\nprefix = \"*.example.com\"\nblocked = true\n", "quay.io/a.example.com/xx", "quay.io/a.example.com/xx", "same"},
		{"subdomains blocked", "[[registry]]\nprefix = \"*.example.com\"\nblocked = true\n", "a.b.example.com/foo/xx", "", ""},
		{"subdomains moved", "[[registry]]\nprefix = \"*.example.com\"\nlocation = \"moved.corp/x\"\n", "a.example.com/foo", "moved.corp/x/foo", "same"},
		{"the longer wildcard", "[[registry]]\nprefix = \"*.com\"\nblocked = true\n[[registry]]\nprefix = \"*.example.com\"\n", "a.example.com/foo", "a.example.com/foo", "same"},
		{"a host in a wildcard", "[[registry]]\nprefix = \"*.example.com\"\nblocked = true\n[[registry]]\nprefix = \"ok-a.example.com\"\n", "ok-a.example.com/foo", "ok-a.example.com/foo", "same"},

		{"blocked", "[[registry]]\nlocation = \"bad.example\"\nblocked = true\n", "bad.example/xx", "", ""},
		{"blocked, with a mirror", "[[registry]]\nlocation = \"bad.example\"\nblocked = true\n[[registry.mirror]]\nlocation = \"m.corp\"\n", "bad.example/xx", "m.corp/xx", "same"},
		{"a mirror that is blocked", "[[registry]]\nlocation = \"a.example\"\n[[registry.mirror]]\nlocation = \"bad.example/m\"\n[[registry.mirror]]\nlocation = \"m.corp\"\n[[registry]]\nlocation = \"bad.example\"\nblocked = true\n", "a.example/xx", "m.corp/xx a.example/xx", "same"},
		{"moved to where it is blocked", "[[registry]]\nprefix = \"a.example\"\nlocation = \"bad.example\"\n[[registry]]\nlocation = \"bad.example\"\nblocked = true\n", "a.example/xx", "", ""},

		{"blocked in capitals", "[[registry]]\nlocation = \"QUAY.IO\"\nblocked = true\n", "quay.io/org/xx", "", ""},
		{"blocked, asked in capitals", "[[registry]]\nlocation = \"quay.io\"\nblocked = true\n", "QUAY.IO/org/xx", "", ""},
		{"blocked with its port", "[[registry]]\nprefix = \"quay.io:443/org\"\nblocked = true\n", "quay.io/org/xx", "", ""},
		{"blocked, asked with its port", "[[registry]]\nprefix = \"quay.io/org\"\nblocked = true\n", "quay.io:443/org/xx", "", ""},
		{"another port", "[[registry]]\nlocation = \"quay.io\"\nblocked = true\n", "quay.io:8443/org/xx", "quay.io:8443/org/xx", "same"},
		{"subdomains blocked in capitals", "[[registry]]\nprefix = \"*.Example.com\"\nblocked = true\n", "a.EXAMPLE.com:443/foo/xx", "", ""},
		{"Docker's library blocked", "[[registry]]\nlocation = \"index.docker.io/library\"\nblocked = true\n", "nginx", "", ""},
		{"Docker's machine", "[[registry]]\nlocation = \"docker.io/library/nginx\"\nblocked = true\n", "registry-1.docker.io/library/nginx", "", ""},
		{"one prefix in two spellings", "[[registry]]\nlocation = \"quay.io/org\"\nblocked = true\n[[registry]]\nlocation = \"Quay.IO:443/org\"\n[[registry.mirror]]\nlocation = \"m.corp/o\"\n", "quay.io/org/xx", "m.corp/o/xx", "same"},
		{"a mirror that is blocked in capitals", "[[registry]]\nlocation = \"a.example\"\n[[registry.mirror]]\nlocation = \"bad.example:443/m\"\n[[registry]]\nlocation = \"BAD.example\"\nblocked = true\n", "a.example/xx", "a.example/xx", "same"},
		{"an address in another spelling", "[[registry]]\nlocation = \"127.0.0.1\"\nblocked = true\n", "127.1/xx", "", ""},

		{"mirror-by-digest-only", "[[registry]]\nlocation = \"a.example\"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = \"m.corp\"\n", "a.example/xx", "a.example/xx", "m.corp/xx a.example/xx"},
		{"pull-from-mirror", "[[registry]]\nlocation = \"a.example\"\n" + mirrorsFor("all", "digest-only", "tag-only"), "a.example/xx", "all.corp/xx tag-only.corp/xx a.example/xx", "all.corp/xx digest-only.corp/xx a.example/xx"},

		{"Docker's names", "[[registry]]\nlocation = \"docker.io\"\n[[registry.mirror]]\nlocation = \"m.corp/hub\"\n", "nginx", "m.corp/hub/library/nginx docker.io/library/nginx", "same"},
		{"Docker's library", "[[registry]]\nprefix = \"docker.io/library\"\nlocation = \"m.corp/library\"\n", "docker.io/nginx", "m.corp/library/nginx", "same"},
		{"Docker's other name", "[[registry]]\nlocation = \"docker.io\"\n[[registry.mirror]]\nlocation = \"m.corp/hub\"\n", "index.docker.io/library/nginx", "m.corp/hub/library/nginx docker.io/library/nginx", "same"},
		{"Docker's organizations", "[[registry]]\nlocation = \"docker.io/org\"\n[[registry.mirror]]\nlocation = \"m.corp/o\"\n", "org/tool", "m.corp/o/tool docker.io/org/tool", "same"},
		{"not Docker's library", "[[registry]]\nprefix = \"docker.io/nginx\"\nlocation = \"m.corp/nginx\"\n", "library/nginx", "docker.io/library/nginx", "same"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := oci.ParseMirrors("registries.conf", []byte(tt.conf))
			if err != nil {
				t.Fatal(err)
			}
			for ref, want := range map[string]string{tt.repo + ":v1": tt.byTag, tt.repo + "@" + zeroDigest: tt.byDigest} {
				if want == "same" {
					want = tt.byTag
				}
				src, err := oci.ParseReference("image:" + ref)
				if err != nil {
					t.Fatal(err)
				}
				got, err := m.Places(src.Name, src.Digest != "")
				if (err == nil) != (want != "") || strings.Join(got, " ") != want {
					t.Errorf("%s: got %q, %v, want %q", ref, got, err, want)
				}
			}
		})
	}
	for conf, want := range map[string]string{
		"[registries.block]\nregistries = [\"bad.example\"]\n":             "version 1 of the format",
		"[[registry]]\nlocation = \"https://a.example\"\n":                 "without a scheme",
		"[[registry]]\nprefix = \"a.example/x:v1\"\n":                      "without a scheme, a tag and a digest",
		"[[registry]]\nprefix = \"a.example\"\nlocation = \"b example\"\n": "registry[0].location",
		"[[registry]]\nprefix = \"a.*.example\"\n":                         "registry[0].prefix",
		"[[registry]]\nlocation = \"a.example\"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = \"b.example\"\npull-from-mirror = \"all\"\n": "set only one",
	} {
		if _, err := oci.ParseMirrors("registries.conf", []byte(conf)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", conf, err, want)
		}
	}
}

// mirrorsFor returns a configuration with one mirror for each of kinds. These are kinds of references.
func mirrorsFor(kinds ...string) string {
	var out strings.Builder
	for _, k := range kinds {
		out.WriteString("[[registry.mirror]]\nlocation = \"" + k + ".corp\"\npull-from-mirror = \"" + k + "\"\n")
	}
	return out.String()
}

// TestInsecureMirror checks that HTTP is used only for insecure locations.
func TestInsecureMirror(t *testing.T) {
	m, err := oci.ParseMirrors("registries.conf", []byte(`
[[registry]]
prefix = "a.example"
location = "moved.example/a"
insecure = true
[[registry.mirror]]
location = "m.corp/a"
[[registry]]
location = "b.example"
[[registry.mirror]]
location = "m.corp/bb"
insecure = true
[[registry]]
prefix = "*.c.example"
insecure = true
`))
	if err != nil {
		t.Fatal(err)
	}
	c := &oci.Client{Mirrors: m}
	for repo, want := range map[string]string{
		"moved.example/a/xx": "http", "moved.example/bb": "https", "a.example/xx": "http", "m.corp/a/xx": "https",
		"b.example/xx": "https", "m.corp/bb/xx": "http", "m.corp/bbb/xx": "https", "x.c.example/yy": "http", "c.example/yy": "https",
	} {
		got, err := c.Repository(repo)
		if err != nil || got.Scheme() != want {
			t.Errorf("%s: %s, %v, want %s", repo, got.Scheme(), err, want)
		}
	}
}

// TestMirrorForms checks the rules in files of containerd and of k3s, and the errors for files of an unknown form.
func TestMirrorForms(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"k3s":                      {"registries.yaml", "mirrors:\n  quay.io: {endpoint: [\"https://m1.corp\", \"http://m2.corp:5000/v2/x\"]}\n", "quay.io→m1.corp"},
		"k3s all":                  {"registries.yaml", "mirrors:\n  \"*\": {endpoint: [\"https://m1.corp\"]}\n", "*→m1.corp"},
		"k3s rewrite":              {"registries.yaml", "mirrors:\n  docker.io:\n    endpoint: [\"https://m1.corp\"]\n    rewrite: {\"^rancher/(.*)\": \"prod/rancher/$1\", \"(.*)\": \"hub/$1\"}\n", "docker.io→m1.corp/hub docker.io/rancher→m1.corp/prod/rancher"},
		"k3s login":                {"registries.yaml", "mirrors: {quay.io: {endpoint: [m1.corp]}}\nconfigs: {m1.corp: {auth: {username: a, password: b}, tls: {insecure_skip_verify: true}}}\n", "quay.io→m1.corp"},
		"error/k3s rewrite":        {"registries.yaml", "mirrors: {quay.io: {endpoint: [m1.corp], rewrite: {\"a(b|c)\": x}}}\n", `mirrors["quay.io"].rewrite: "a(b|c)": "x" cannot be applied`},
		"error/k3s field":          {"registries.yaml", "mirrors: {quay.io: {endpoints: [m1.corp]}}\n", "endpoints"},
		"error/k3s path":           {"registries.yaml", "mirrors: {quay.io: {endpoint: [\"https://m1.corp/other\"]}}\n", "must be below /v2"},
		"containerd":               {"certs.d/quay.io/hosts.toml", "server = \"https://quay.io\"\n[host.\"https://m1.corp\"]\n  capabilities = [\"pull\", \"resolve\"]\n[host.\"http://m2.corp\"]\n", "quay.io→m1.corp"},
		"containerd digests":       {"hosts.toml", "server = \"https://quay.io\"\n[host.\"https://m1.corp\"]\n  capabilities = [\"pull\"]\n", "quay.io→m1.corp@"},
		"containerd hub":           {"hosts.toml", "server = \"https://registry-1.docker.io\"\n[host.\"https://m1.corp/v2/hub\"]\n  override_path = true\n", "docker.io→m1.corp/hub"},
		"error/containerd server":  {"hosts.toml", "[host.\"https://m1.corp\"]\n", "server is missing"},
		"error/containerd field":   {"hosts.toml", "server = \"https://quay.io\"\n[host.\"https://m1.corp\"]\n  capability = [\"pull\"]\n", `.capability"`},
		"error/containerd path":    {"hosts.toml", "server = \"https://quay.io\"\n[host.\"https://m1.corp/x\"]\n", "must be below /v2"},
		"error/kind":               {"kind.yaml", "apiVersion: config.openshift.io/v1\nkind: ImageDigestMirorSet\nmetadata: {name: a}\n", "kind.yaml:2:7: kind ImageDigestMirorSet: must be one of ImageDigestMirrorSet, ImageTagMirrorSet, ImageContentSourcePolicy"},
		"error/table":              {"registries.conf", "[[registries-list]]\nprefix = \"quay.io\"\nlocation = \"m1.corp\"\n", `unknown field "registries-list"`},
		"error/field":              {"registries.conf", "[[registry]]\nlocation = \"quay.io\"\nmiror = \"m1.corp\"\n", `unknown field "registry.miror"`},
		"error/no mirror":          {"a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "a.yaml: contains no mirror"},
		"error/empty":              {"registries.conf", "", "registries.conf: contains no mirror"},
		"search registries":        {"registries.conf", "unqualified-search-registries = [\"quay.io\"]\nshort-name-mode = \"enforcing\"\ncredential-helpers = [\"a\"]\n[[registry]]\nlocation = \"quay.io\"\n[[registry.mirror]]\nlocation = \"m1.corp\"\n[aliases]\na = \"quay.io/a\"\n", "quay.io→m1.corp"},
		"objects of another group": {"all.yaml", "apiVersion: config.openshift.io/v1\nkind: ImageTagMirrorSet\nmetadata: {name: a}\nspec: {imageTagMirrors: [{source: quay.io, mirrors: [m1.corp]}]}\n---\napiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: a}\n", "quay.io→m1.corp:"},
	} {
		m, err := oci.ParseMirrors(c.file, []byte(c.text))
		var list []string
		for _, w := range m.Rewrites() {
			list = append(list, w.Prefix+"→"+w.Mirror+map[[2]bool]string{{true, true}: "", {true, false}: ":", {false, true}: "@"}[[2]bool{w.Tags, w.Digests}])
		}
		got := strings.Join(list, " ")
		if strings.HasPrefix(name, "error/") {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", name, err, c.want)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
}
