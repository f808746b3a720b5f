package cli_test

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/internal/testing/trusttest"
)

// newPushedWorkspace returns a resolved and rendered copy of the quickstart, whose catalog and
// bundles are in a registry, in repositories below /shop.
func newPushedWorkspace(t *testing.T, server *ocitest.Server, cache string) string {
	t.Helper()
	dir, repo := quickstart(t), server.Host+"/shop/"
	mustRun(t, dir, "push", "catalog-src", repo+"catalog:v1", "--bundle-repository", repo+"{package}")
	put(t, dir, "quayside.yaml", strings.ReplaceAll(read(t, dir, "quayside.yaml"), "oci:catalog", "image:"+repo+"catalog:v1"))
	remove(t, dir, "quayside.lock", "rendered", "catalog", "catalog-src")
	for _, command := range []string{"resolve", "render"} {
		if got := quaysideIn(t, dir, cache, command); got.code != 0 {
			t.Fatal(got.stderr)
		}
	}
	return dir
}

// TestMirrorKeepsNames reads everything from the mirror of a registry that does not exist. The lock
// and the tree must have the name of the registry. Signatures are required for that name, and are
// found in the mirror.
func TestMirrorKeepsNames(t *testing.T) {
	server := ocitest.New(t)
	dir, cache, key := quickstart(t), t.TempDir(), trusttest.NewKey(t)
	repo := server.Host + "/mirror/"
	out := mustRun(t, dir, "push", "catalog-src", repo+"catalog:v1").stdout
	_, digest, _ := strings.Cut(strings.TrimSpace(out), "@")
	put(t, dir, "mirrors.yaml", fmt.Sprintf(`apiVersion: config.openshift.io/v1
kind: ImageTagMirrorSet
metadata: {name: a}
spec: {imageTagMirrors: [{source: quay.invalid/org, mirrors: [%[1]s/mirror]}]}
---
apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata: {name: a}
spec: {imageDigestMirrors: [{source: quay.invalid/org, mirrors: [%[1]s/mirror]}]}
`, server.Host))
	put(t, dir, "cosign.pub", string(key.Public))
	put(t, dir, "quayside.yaml", strings.ReplaceAll(read(t, dir, "quayside.yaml"), "oci:catalog", "image:quay.invalid/org/catalog:v1")+
		"  mirrors: [mirrors.yaml]\n  trust: [{match: \"quay.invalid/*\", keys: [cosign.pub]}]\n")
	remove(t, dir, "quayside.lock", "rendered", "catalog", "catalog-src")
	if got := quaysideIn(t, dir, cache, "resolve"); got.code != 2 || !strings.Contains(got.stderr, "quay.invalid/org/catalog@"+digest) {
		t.Errorf("without a signature: exit code %d\n%s", got.code, got.stderr)
	}
	trusttest.PushSimple(t, repo+"catalog", digest, key.Simple(t, digest))
	for _, command := range []string{"resolve", "render", "verify"} {
		if got := quaysideIn(t, dir, cache, command); got.code != 0 {
			t.Fatalf("%s: %s", command, got.stderr)
		}
	}
	lock := read(t, dir, "quayside.lock")
	checkContains(t, lock, "source: image:quay.invalid/org/catalog:v1, ", "identity: key sha256:")
	if strings.Contains(lock, server.Host) {
		t.Error("the lock names the mirror")
	}
	for name, text := range readTree(t, dir, "rendered") {
		if strings.Contains(text, server.Host) {
			t.Errorf("%s names the mirror", name)
		}
	}
}

// TestSecretsStayInside uses a registry that echoes credentials and then rejects them. No output or
// file may contain the credentials.
func TestSecretsStayInside(t *testing.T) {
	const secret = "hunter2-s3cret"
	login := base64.StdEncoding.EncodeToString([]byte("me:" + secret))
	server := ocitest.New(t)
	dir := newPushedWorkspace(t, server, t.TempDir())
	lock := read(t, dir, "quayside.lock")
	var refuse atomic.Bool
	var seen atomic.Int64
	server.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		sent := r.Header.Get("Authorization")
		if sent == "Basic "+login {
			seen.Add(1)
		}
		if refuse.Load() && r.URL.Path != "/v2/" || sent != "Basic "+login {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"errors":[{"code":"DENIED","message":"you sent %s"}]}`, sent)
			return
		}
		next.ServeHTTP(w, r)
	})
	cache := t.TempDir()
	put(t, cache, ".docker/config.json", fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, server.Host, login))
	var said strings.Builder
	run := func(code int, args ...string) {
		t.Helper()
		got := quaysideIn(t, dir, cache, args...)
		if got.code != code {
			t.Fatalf("%q: exit code %d, want %d\n%s", args, got.code, code, got.stderr)
		}
		said.WriteString(got.stdout + got.stderr)
	}
	remove(t, dir, "quayside.lock", "rendered")
	run(0, "resolve", "-o", "json")
	run(0, "render")
	run(0, "vendor", "-o", "json")
	if read(t, dir, "quayside.lock") != lock {
		t.Error("the lock differs from the one without a login")
	}
	for _, root := range []string{dir, filepath.Join(cache, "quayside")} {
		check(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				checkNoLeak(t, name, read(t, "", name), secret, login)
			}
			return err
		}))
	}

	refuse.Store(true)
	remove(t, dir, "quayside.vendor")
	check(t, os.RemoveAll(filepath.Join(cache, "quayside")))
	run(2, "resolve", "--upgrade")
	run(2, "images", "--inspect")
	if seen.Load() == 0 {
		t.Fatal("no login was sent: the test proves nothing")
	}
	checkContains(t, said.String(), "invalid credentials of ")
	checkNoLeak(t, "what was said", said.String(), secret, login)
}

func checkNoLeak(t *testing.T, where, text string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		if strings.Contains(text, s) {
			t.Errorf("%s holds the login:\n%.2000s", where, text)
		}
	}
}

// TestPullTwoProcesses resolves and renders the same images in several processes that share an
// empty store.
func TestPullTwoProcesses(t *testing.T) {
	server := ocitest.New(t)
	dir := newPushedWorkspace(t, server, t.TempDir())
	lock, tree := read(t, dir, "quayside.lock"), readTree(t, dir, "rendered")
	cache := t.TempDir()
	spaces := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	for _, command := range []string{"resolve", "render"} {
		var running []*exec.Cmd
		for _, space := range spaces {
			if command == "resolve" {
				check(t, os.CopyFS(space, os.DirFS(dir)))
				remove(t, space, "quayside.lock", "rendered")
			}
			running = append(running, startProgram(t, space, cache, command))
		}
		for i, cmd := range running {
			if err := cmd.Wait(); err != nil {
				t.Errorf("%s of process %d: %v", command, i, err)
			}
		}
	}
	for i, space := range spaces {
		if got := read(t, space, "quayside.lock"); got != lock {
			t.Errorf("process %d: the lock differs", i)
		}
		if d := cmp.Diff(tree, readTree(t, space, "rendered")); d != "" {
			t.Errorf("process %d: tree (-alone +together):\n%s", i, d)
		}
	}
	if left, err := os.ReadDir(filepath.Join(cache, "quayside/tmp")); err != nil || len(left) > 0 {
		t.Errorf("leftover temporary files: %v, %v", left, err)
	}
}

// TestPullDamagedStore flips a bit in every file of the store. The results must be the same, and
// the damaged files that are read must be repaired.
func TestPullDamagedStore(t *testing.T) {
	server := ocitest.New(t)
	cache := t.TempDir()
	dir := newPushedWorkspace(t, server, cache)
	lock, tree := read(t, dir, "quayside.lock"), readTree(t, dir, "rendered")
	damaged := 0
	check(t, filepath.WalkDir(filepath.Join(cache, "quayside"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil || len(data) == 0 {
			return err
		}
		damaged++
		data[len(data)/2] ^= 4
		check(t, os.Chmod(name, 0o600))
		return os.WriteFile(name, data, 0o600)
	}))
	if damaged < 5 {
		t.Fatalf("only %d files in the store", damaged)
	}
	answers := func(args ...string) {
		t.Helper()
		remove(t, dir, "quayside.lock", "rendered")
		for _, command := range []string{"resolve", "render"} {
			if got := quaysideIn(t, dir, cache, append([]string{command}, args...)...); got.code != 0 {
				t.Fatalf("%s: exit code %d\n%s", command, got.code, got.stderr)
			}
		}
		if d := cmp.Diff(lock, read(t, dir, "quayside.lock")); d != "" {
			t.Errorf("%q: lock (-before +after):\n%s", args, d)
		}
		if d := cmp.Diff(tree, readTree(t, dir, "rendered")); d != "" {
			t.Errorf("%q: tree (-before +after):\n%s", args, d)
		}
	}
	answers()
	server.Requests()
	answers("--offline")
	if n := server.Requests(); len(n) > 0 {
		t.Errorf("request to the registry: %s", n)
	}
}
