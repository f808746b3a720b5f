package registry

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/registry/registrytest"
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

func mirrors(t *testing.T) Mirrors {
	t.Helper()
	a, err := ParseMirrors("registries.conf", []byte(conf))
	if err != nil {
		t.Fatal(err)
	}
	b, err := ParseMirrors("mirrors.yaml", []byte(sets))
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
		want   string // blank-separated
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
		got, err := m.places(tt.repo, tt.digest)
		if diff := cmp.Diff(strings.Fields(tt.want), got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", tt.repo, err, diff)
		}
	}
	for repo, want := range map[string]string{"blocked.example/x": "registries.conf", "closed.example/x": "mirrors.yaml"} {
		if got, err := m.places(repo, false); err == nil || !strings.HasPrefix(err.Error(), want+" does not allow to ask "+repo) {
			t.Errorf("%s: got %q, %v", repo, got, err)
		}
	}
	for repo, want := range map[string]bool{"mirror.corp:5000/quay/x": true, "mirror.corp:5000/other": false, "quay.io/org/x": false} {
		if m.insecure(repo) != want {
			t.Errorf("insecure %s: %v", repo, !want)
		}
	}
	if got, err := (Mirrors{}).places("a.example/x", true); err != nil || len(got) != 1 {
		t.Errorf("no mirrors: %q, %v", got, err)
	}
}

func TestMirrorFaults(t *testing.T) {
	for _, tt := range []struct{ file, data, want string }{
		{"r.conf", "[[registry]\n", "r.conf:2:11: expected end of table"},
		{"r.conf", "[[registry]]\nlocation = 1\n", "r.conf: toml: line 2"},
		{"r.conf", "[[registry]]\nblocked = true\n", `registry[0].prefix: "" is not a registry`},
		{"r.conf", "[[registry]]\nlocation = \"a.example\"\n[[registry.mirror]]\nlocation = \"b example\"\npull-from-mirror = \"never\"\n", "want all, digest-only or tag-only"},
		{"m.yaml", "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{source: a.example, mirors: []}]}\n", "m.yaml:2:"},
		{"m.yaml", "kind: ImageTagMirrorSet\nspec: {imageTagMirrors: [{source: a.example, mirrorSourcePolicy: Sometimes}]}\n", "want AllowContactingSource or NeverContactSource"},
		{"m.yaml", "kind: ImageTagMirrorSet\nspec: {imageTagMirrors: [{source: 'a b', mirrors: ['x/*']}]}\n", `"x/*" is not a registry`},
		{"m.yaml", "kind: [", "m.yaml:1"},
	} {
		if got, err := ParseMirrors(tt.file, []byte(tt.data)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %q: got %v, %v, want %q", tt.file, tt.data, got, err, tt.want)
		}
	}
}

// TestPullFromMirror asks a mirror first, and the source where the mirror has
// not got it.
func TestPullFromMirror(t *testing.T) {
	source, near := registrytest.New(t), registrytest.New(t)
	p, ref := pushed(t, source)
	m, err := ParseMirrors("m.conf", []byte("[[registry]]\nlocation = \""+source.Host+"/org\"\n[[registry.mirror]]\nlocation = \""+near.Host+"/copy\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	open := func() (*Image, error) {
		c := newClient(t)
		c.Mirrors = m
		return pull(t.Context(), c, ref)
	}
	if _, err := open(); err != nil {
		t.Errorf("an empty mirror: %v", err)
	}
	if err := newClient(t).Push(t.Context(), near.Host+"/copy/catalog:v1", p); err != nil {
		t.Fatal(err)
	}
	source.Requests()
	im, err := open()
	if err != nil || im.Digest() != p.Digest() || im.Name() != ref {
		t.Errorf("from the mirror: %v", err)
	}
	if got := source.Requests(); len(got) != 0 {
		t.Errorf("the source was asked: %q", got)
	}
	near.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.Contains(r.URL.Path, "/blobs/") {
			scramble(w, r, next)
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
	if _, err := open(); err == nil || !strings.Contains(err.Error(), source.Host+" answered 404") || !strings.Contains(err.Error(), "1 mirror before it failed: "+near.Host) {
		t.Errorf("neither has it: %v", err)
	}
}

func FuzzParseMirrors(f *testing.F) {
	f.Add("a.conf", conf)
	f.Add("a.yaml", sets)
	f.Fuzz(func(t *testing.T, file, data string) {
		m, err := ParseMirrors(file, []byte(data))
		if err != nil {
			return
		}
		for _, repo := range []string{"quay.io/org/x", "a.wild.example/x"} {
			if got, err := m.places(repo, true); err == nil && len(got) == 0 {
				t.Errorf("%s: nowhere to ask", repo)
			}
		}
	})
}

func TestRewrites(t *testing.T) {
	m, err := ParseMirrors("registries.conf", []byte(conf))
	if err != nil {
		t.Fatal(err)
	}
	more, err := ParseMirrors("sets.yaml", []byte(sets))
	if err != nil {
		t.Fatal(err)
	}
	got := m.Join(more).Rewrites()
	want := []Rewrite{
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
