package cli_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/testing/ocitest"
)

// TestMirrorCarriesSignatures copies signed images to each kind of registry, directly and through a
// layout. The copies must be usable without the original registry, even if signatures are required.
func TestMirrorCarriesSignatures(t *testing.T) {
	for name, target := range map[string]func(testing.TB) *ocitest.Server{
		"a registry that lists referrers": ocitest.NewReferring,
		"one that does not":               ocitest.New,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSignedWorkspace(t)
			s.sign(s.images...) // the image of two pins gets two signatures
			s.run(0, "resolve")
			// The registry of the operators' images is blocked, because these images do not exist.
			put(t, s.dir, "mirrors.conf", "[[registry]]\nlocation = \"registry.example.com\"\nblocked = true\n")
			plain := read(t, s.dir, "quayside.yaml")
			put(t, s.dir, "quayside.yaml", plain+"  mirrors: [mirrors.conf]\n")
			layout := filepath.Join(t.TempDir(), "stick")
			near, far := target(t), target(t)
			slices.Sort(s.images)
			s.images = slices.Compact(s.images)
			mirror := func(state string, args ...string) {
				t.Helper()
				got := quaysideIn(t, s.dir, s.cache, append([]string{"mirror", "-o", "json"}, args...)...)
				if n := strings.Count(got.stdout, `"state": "`+state+`"`); got.code != 2 || n != len(s.images) {
					t.Errorf("%q: exit code %d, %d images %s, want %d\n%s", args, got.code, n, state, len(s.images), got.stderr)
				}
				if one, two := strings.Count(got.stdout, `"signatures": 1`), strings.Count(got.stdout, `"signatures": 2`); one != len(s.images)-1 || two != 1 {
					t.Errorf("%q: %d images have a signature, %d two, of %d:\n%s", args, one, two, len(s.images), got.stdout)
				}
			}
			mirror("copied", "oci:"+layout)
			mirror("present", "oci:"+layout)
			mirror("copied", near.Host+"/copy", "--mirror-set", filepath.Join(s.dir, "mirrors.yaml"))

			s.server.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusForbidden) })
			s.server.Requests()
			s.cache = t.TempDir()
			mirror("copied", "--from", layout, far.Host+"/copy")
			mirror("present", "--from", layout, far.Host+"/copy")
			mirror("copied", "--from", layout, "oci:"+layout+"-2")
			if asked := s.server.Requests(); len(asked) > 0 {
				t.Errorf("requests with --from a layout: %q", asked)
			}

			put(t, s.dir, "quayside.yaml", plain+"  mirrors: [mirrors.yaml]\n")
			lock := read(t, s.dir, "quayside.lock")
			sets := read(t, s.dir, "mirrors.yaml")
			for _, server := range []*ocitest.Server{near, far} {
				put(t, s.dir, "mirrors.yaml", strings.ReplaceAll(sets, near.Host, server.Host))
				s.cache = t.TempDir()
				remove(t, s.dir, "quayside.lock")
				s.run(0, "resolve")
				s.run(0, "render")
				if read(t, s.dir, "quayside.lock") != lock {
					t.Error("the lock differs")
				}
			}
		})
	}
}
