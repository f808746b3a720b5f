package cli_test

import (
	"cmp"
	"maps"
	"os/exec"
	"strings"

	"github.com/quayside/quayside/lockfile"
)

// lockHistory reads locks in the commits of a repository, and caches their bundles by commit.
type lockHistory struct {
	dir string
	had map[string]map[lockfile.Digest]bool // by commit and workspace
}

// failer is the part of testing.TB that rapid.T has, too.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func (h *lockHistory) git(t failer, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = h.dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %q: %v", args, err)
	}
	return string(out)
}

// at returns the lock of a workspace in a commit. If there is none, it returns an empty lock.
func (h *lockHistory) at(t failer, commit, dir string) *lockfile.File {
	t.Helper()
	name := dir + "/quayside.lock"
	if h.git(t, "ls-tree", commit, name) == "" {
		return lockfile.New(nil)
	}
	lock, err := lockfile.Parse(name, []byte(h.git(t, "show", commit+":"+name)))
	if err != nil {
		return cmp.Or(lock, lockfile.New(nil)) // an edited one, which verify has reported
	}
	return lock
}

// along returns the digests of all bundles in the locks that a workspace had along the first parents of a commit.
func (h *lockHistory) along(t failer, commit, dir string) map[lockfile.Digest]bool {
	t.Helper()
	out := map[lockfile.Digest]bool{}
	for commit := range strings.FieldsSeq(h.git(t, "rev-list", "--first-parent", commit, "--", dir+"/quayside.lock")) {
		key := commit + " " + dir
		if h.had[key] == nil {
			if h.had == nil {
				h.had = map[string]map[lockfile.Digest]bool{}
			}
			h.had[key] = map[lockfile.Digest]bool{}
			for _, pin := range h.at(t, commit, dir).Pins {
				h.had[key][pin.BundleDigest()] = true
			}
		}
		maps.Copy(out, h.had[key])
	}
	return out
}
