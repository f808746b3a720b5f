package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/internal/testing/trusttest"
)

// signedWorkspace is a workspace whose catalog and bundles are images in a registry, and must be
// signed.
type signedWorkspace struct {
	testing.TB
	server *ocitest.Server
	key    *trusttest.Key
	dir    string
	cache  string
	images []string // "127.0.0.1:…/signed/etcd@sha256:…", the catalog first
}

func newSignedWorkspace(t *testing.T) *signedWorkspace {
	t.Helper()
	s := &signedWorkspace{TB: t, server: ocitest.NewReferring(t), key: trusttest.NewKey(t), dir: quickstart(t), cache: t.TempDir()}
	repo := s.server.Host + "/signed/"
	s.run(0, "push", "catalog-src", repo+"catalog:v1", "--bundle-repository", repo+"{package}")
	put(t, s.dir, "quayside.yaml", strings.ReplaceAll(read(t, s.dir, "quayside.yaml"), "oci:catalog", "image:"+repo+"catalog:v1"))
	remove(t, s.dir, "quayside.lock", "rendered", "catalog", "catalog-src")
	s.run(0, "resolve")
	lock := parseLock(t, read(t, s.dir, "quayside.lock"))
	s.images = []string{repo + "catalog@" + string(lock.Pins[0].Catalog.Digest)}
	for _, p := range lock.Pins {
		s.images = append(s.images, p.Image)
	}
	put(t, s.dir, "cosign.pub", string(s.key.Public))
	put(t, s.dir, "quayside.yaml", read(t, s.dir, "quayside.yaml")+"  trust:\n  - {match: \""+repo+"*\", keys: [cosign.pub]}\n")
	return s
}

// run runs a command, checks its exit code, and returns stderr.
func (s *signedWorkspace) run(code int, args ...string) string {
	s.Helper()
	got := quaysideIn(s, s.dir, s.cache, args...)
	if got.code != code {
		s.Fatalf("%q: exit code %d, want %d\n%s%s", args, got.code, code, got.stdout, got.stderr)
	}
	return got.stderr
}

func (s *signedWorkspace) sign(images ...string) {
	s.Helper()
	for i, im := range images {
		repo, digest, _ := strings.Cut(im, "@")
		if i%2 == 0 {
			trusttest.PushSimple(s, repo, digest, s.key.Simple(s, digest))
		} else {
			trusttest.PushBundle(s, repo, digest, s.key.Bundle(s, digest, trusttest.SignPredicate))
		}
	}
}

// checkContains fails the test unless text contains each word.
func checkContains(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in:\n%s", w, text)
		}
	}
}

// TestTrust adds required signatures to a workspace step by step.
func TestTrust(t *testing.T) {
	s := newSignedWorkspace(t)
	unsigned := read(t, s.dir, "quayside.lock")
	for _, args := range [][]string{{"resolve"}, {"resolve", "--check"}, {"verify"}, {"resolve", "--keep-going"}} {
		checkContains(t, s.run(2, args...), s.images[0], "quayside.yaml:", "requires a signature by key cosign.pub, but the image has none")
	}
	checkContains(t, s.run(2, "render"), s.images[1], "but the image has none")
	if read(t, s.dir, "quayside.lock") != unsigned {
		t.Error("the lock was written")
	}

	s.sign(s.images[0])
	checkContains(t, s.run(2, "resolve"), s.images[1], s.images[len(s.images)-1], "but the image has none")
	s.sign(s.images...)
	checkContains(t, s.run(1, "resolve", "--check"), "catalog \"olm/quickstart\" is signed by \"key sha256:", "which is not recorded: run 'quayside resolve'")
	s.run(0, "resolve")
	lock := parseLock(t, read(t, s.dir, "quayside.lock"))
	for _, id := range []string{lock.Pins[0].Catalog.Identity, lock.Pins[0].Identity, lock.Pins[len(lock.Pins)-1].Identity} {
		if !strings.HasPrefix(id, "key sha256:") {
			t.Errorf("identity %q", id)
		}
	}
	s.run(0, "resolve", "--check")
	s.run(0, "render")
	s.run(0, "verify")

	// A lock is out of date if a signer changes, or if signatures are no longer required.
	yaml := read(t, s.dir, "quayside.yaml")
	put(t, s.dir, "quayside.yaml", yaml[:strings.Index(yaml, "  trust:")])
	checkContains(t, s.run(1, "verify"), "but quayside.yaml requires no signature: run 'quayside resolve'")
	s.run(0, "resolve")
	if read(t, s.dir, "quayside.lock") != unsigned {
		t.Error("the lock without required signatures differs from the original one")
	}
	put(t, s.dir, "quayside.yaml", yaml)
	put(t, s.dir, "cosign.pub", string(trusttest.NewKey(t).Public))
	for _, args := range [][]string{{"resolve"}, {"render"}, {"verify"}, {"vendor"}} {
		checkContains(t, s.run(2, args...), "quayside.yaml:", "the only one is not accepted:")
	}
	remove(t, s.dir, "cosign.pub")
	checkContains(t, s.run(2, "resolve"), "quayside.yaml:", "cosign.pub: no such file")
}

// TestTrustPropose proposes upgrades while the signature of one next bundle is missing. The
// operator is held back at its version; --strict fails. Other commands still reject a catalog
// without a signature.
func TestTrustPropose(t *testing.T) {
	s := newSignedWorkspace(t)
	s.sign(s.images...)
	s.run(0, "resolve")
	s.run(0, "render")
	gitIn(t, s.dir, "init", "-q")
	gitIn(t, s.dir, "config", "user.name", "a")
	gitIn(t, s.dir, "config", "user.email", "a@example.com")
	gitIn(t, s.dir, "add", "-A")
	gitIn(t, s.dir, "commit", "-qm", "start")
	for _, args := range [][]string{{"propose"}, {"propose", "--one-branch"}} {
		checkContains(t, s.run(0, args...), "memcached-operator-system/memcached-operator is held back at 0.0.1: bundle memcached-operator.v0.0.2 cannot be fetched: ",
			"requires a signature by key cosign.pub, but the image has none", "[not-fetched]", "no upgrades left")
	}
	checkContains(t, s.run(3, "propose", "--strict"), "operators held back at their versions: memcached-operator-system/memcached-operator")

	s.cache = t.TempDir()
	put(t, s.dir, "cosign.pub", string(trusttest.NewKey(t).Public))
	gitIn(t, s.dir, "commit", "-qam", "key")
	s.run(2, "resolve", "--upgrade")
	checkContains(t, s.run(0, "propose"), "is held back at 0.0.1: ", "[broken-catalog]", "no upgrades left")
}

// TestTrustOffline reads signatures from the store and from the vendored layout, and checks the
// error if both lack them.
func TestTrustOffline(t *testing.T) {
	s := newSignedWorkspace(t)
	checkContains(t, s.run(2, "resolve", "--offline"), s.images[0], "--offline allows no download")
	s.sign(s.images...)
	s.run(0, "resolve")
	s.run(0, "render")
	s.server.Requests()
	s.run(0, "verify", "--offline")
	s.run(0, "resolve", "--offline")
	s.run(0, "vendor", "--offline")
	if n := s.server.Requests(); len(n) > 0 {
		t.Errorf("request to the registry: %s", n)
	}

	s.cache = t.TempDir()
	s.run(0, "vendor", "--check", "--offline")
	s.run(0, "verify", "--offline")
	lock := read(t, s.dir, "quayside.lock")
	remove(t, s.dir, "quayside.lock", "rendered")
	s.run(0, "resolve", "--offline")
	s.run(0, "render", "--offline")
	if read(t, s.dir, "quayside.lock") != lock {
		t.Error("the lock differs")
	}
	if n := s.server.Requests(); len(n) > 0 {
		t.Errorf("request to the registry: %s", n)
	}

	// A layout without signatures, and an empty store.
	s.cache = t.TempDir()
	index := filepath.Join(s.dir, "quayside.vendor", "index.json")
	data, err := os.ReadFile(index)
	check(t, err)
	check(t, os.WriteFile(index, []byte(strings.ReplaceAll(strings.ReplaceAll(string(data), ".sig", ".gone"), "/signed/", "/lost/")), 0o644))
	checkContains(t, s.run(2, "render", "--offline"), s.images[1], "none is in the cache or the vendored layout, and --offline allows no download: run once with access to the registry, or run 'quayside vendor'")
}
