package cli_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/clitest"
	"github.com/quayside/quayside/internal/testing/ocitest"
)

// TestMirrorLoop follows docs/registries.md with the images of real operators (with -whole, also the
// latest version of each package): it mirrors them, lists the written mirror set in spec.mirrors, and
// mirrors again. The second time nothing is copied, and the images are the same with and without
// spec.mirrors.
func TestMirrorLoop(t *testing.T) {
	bundles := filepath.Join(t.TempDir(), "bundles")
	check(t, os.CopyFS(bundles, os.DirFS(filepath.Join(clitest.Corpus(t), "bundles"))))
	if *wholeCorpus {
		clitest.Unpack(t, filepath.Join(clitest.Corpus(t), "latest.tar.zst"), bundles)
		check(t, os.RemoveAll(filepath.Join(bundles, "eventing-kogito"))) // its dependencies are not YAML
	}
	dir, cache := filepath.Join(t.TempDir(), "workspace"), t.TempDir()
	type view struct {
		Images []struct{ Image, From, To, State, Error string }
	}
	run := func(args ...string) (v view) {
		t.Helper()
		got := quaysideIn(t, dir, cache, append(args, "-o", "json")...)
		check(t, json.Unmarshal([]byte(got.stdout), &v))
		if len(v.Images) == 0 {
			t.Fatalf("quayside %q lists no images:\n%s", args, got.stderr)
		}
		return v
	}
	resolve := func() {
		t.Helper()
		subscribeTo(t, dir, bundles)
		if got := quaysideIn(t, dir, cache, "resolve", "--keep-going"); !strings.Contains(got.stderr, "wrote quayside.lock") {
			t.Fatal(got.stderr)
		}
	}
	for range 20 { // without operators that have the same objects as another one
		resolve()
		got := quaysideIn(t, dir, cache, "images")
		both := regexp.MustCompile(`error: (\S+)/\S+ and \S+ both (?:provide|contain) `).FindStringSubmatch(got.stderr)
		if both == nil {
			break
		}
		t.Logf("without %s: %s", both[1], got.stderr)
		check(t, os.RemoveAll(filepath.Join(bundles, both[1])))
		check(t, os.RemoveAll(dir))
	}
	server, manifest := serveEveryImage(t)
	hosts := map[string]bool{}
	for _, i := range run("images").Images {
		if host, _, ok := strings.Cut(i.Image, "/"); ok && strings.Contains(host, ".") {
			hosts[regexp.QuoteMeta(host)] = true
		}
	}
	replaceAll(t, bundles, `@sha256:[0-9a-f]{64}`, fmt.Sprintf("@sha256:%x", sha256.Sum256(manifest)))
	replaceAll(t, bundles, `\b(`+strings.Join(slices.Sorted(maps.Keys(hosts)), "|")+`)/`, server.Host+"/origin/$1/")
	remove(t, dir, "quayside.lock")
	resolve()
	plain, original := read(t, dir, "quayside.yaml"), run("images")
	states := func(v view) map[string]int {
		out := map[string]int{}
		for _, i := range v.Images {
			if out[i.State]++; i.State == "failed" && strings.Contains(i.From, "/origin/") && !strings.Contains(i.Error, "reference") {
				t.Errorf("%s: %s", i.From, i.Error)
			}
		}
		return out
	}
	first := states(run("mirror", server.Host+"/copy", "--mirror-set", filepath.Join(dir, "mirrors.yaml")))
	sets := read(t, dir, "mirrors.yaml")
	put(t, dir, "quayside.yaml", plain+"  mirrors: [mirrors.yaml]\n")
	if d := cmp.Diff(original, run("images")); d != "" {
		t.Errorf("images with spec.mirrors differ (-without +with):\n%s", d)
	}
	if got := quaysideIn(t, dir, cache, "render"); !strings.Contains(got.stderr, "wrote") && !*wholeCorpus { // some operators need more than the settings provide
		t.Error(got.stderr)
	}
	put(t, dir, "quayside.yaml", plain) // the tree has names of the mirror
	if d := cmp.Diff(original, run("images")); d != "" {
		t.Errorf("images of an old tree differ (-want +got):\n%s", d)
	}
	put(t, dir, "quayside.yaml", plain+"  mirrors: [mirrors.yaml]\n")
	second := states(run("mirror", server.Host+"/copy", "--mirror-set", filepath.Join(dir, "mirrors.yaml")))
	t.Logf("%d images; first: %v, second: %v", len(original.Images), first, second)
	if first["copied"] == 0 || second["copied"] > 0 || second["present"] != first["copied"]+first["present"] {
		t.Errorf("first: %v, second: %v", first, second)
	}
	if read(t, dir, "mirrors.yaml") != sets {
		t.Error("the second mirror set differs")
	}
}

// replaceAll replaces a pattern in all files of a directory.
func replaceAll(t *testing.T, dir, pattern, text string) {
	t.Helper()
	find := regexp.MustCompile(pattern)
	check(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil || !find.Match(data) {
			return err
		}
		return os.WriteFile(name, find.ReplaceAll(data, []byte(text)), 0o600)
	}))
}

// serveEveryImage returns a registry that serves the same image for every name below origin/. It
// also returns the manifest of this image.
func serveEveryImage(t *testing.T) (*ocitest.Server, []byte) {
	t.Helper()
	config := []byte(`{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}`)
	manifest := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%x","size":%d},"layers":[]}`, sha256.Sum256(config), len(config))
	server := ocitest.New(t)
	server.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !strings.HasPrefix(r.URL.Path, "/v2/origin/") {
			next.ServeHTTP(w, r)
			return
		}
		body := manifest
		switch last := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]; {
		case strings.Contains(r.URL.Path, "/blobs/"):
			body = config
		case strings.HasPrefix(last, "sha256-"), strings.Contains(r.URL.Path, "/referrers/"): // signatures
			w.WriteHeader(http.StatusNotFound)
			return
		default:
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		}
		w.Header().Set("Docker-Content-Digest", fmt.Sprintf("sha256:%x", sha256.Sum256(body)))
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if r.Method != http.MethodHead {
			_, _ = w.Write(body)
		}
	})
	return server, manifest
}
