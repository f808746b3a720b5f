package gitrepo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCloneBranch clones a repository by URL and opens one by path. The clone must have the history, and done must
// remove it.
func TestCloneBranch(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := newRepository(t)
	r := open(t, dir)
	head, err := r.Head()
	if err != nil {
		t.Fatal(err)
	}
	clone, done, err := r.OpenOrClone(t.Context(), "file://"+dir, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := clone.Head()
	if err != nil || got.Hash() != head.Hash() || clone.Root() == dir {
		t.Fatalf("the clone in %s is at %v: %v", clone.Root(), got, err)
	}
	for _, err := range []error{done(), done()} {
		if err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(clone.Root()); !os.IsNotExist(err) {
		t.Errorf("the clone is left: %v", err)
	}
	if same, done, err := r.OpenOrClone(t.Context(), dir, ""); err != nil || same.Root() != dir || done() != nil {
		t.Errorf("by path: %v, %v", same, err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("done removes a repository that is no clone: %v", err)
	}
	if _, _, err := r.CloneBranch(t.Context(), "file://"+dir, "none", ""); err == nil || !strings.Contains(err.Error(), "cloning file://") {
		t.Errorf("a branch that does not exist: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "quayside-clone-*")); len(left) > 0 {
		t.Errorf("left: %s", left)
	}
}

// TestChanges lists the commits that changed a file, except commits in the history of another commit.
func TestChanges(t *testing.T) {
	dir := newRepository(t)
	var hashes []string
	for _, text := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-q", "-m", text)
		git(t, dir, "commit", "-q", "--allow-empty", "-m", "nothing")
		hashes = append([]string{strings.TrimSpace(git(t, dir, "rev-parse", "HEAD~1"))}, hashes...)
	}
	r := open(t, dir)
	head, err := r.Head()
	if err != nil {
		t.Fatal(err)
	}
	all, err := head.Changes(t.Context(), nil, "file")
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	for i, rev := range all {
		if rev.Hash() != hashes[i] {
			t.Errorf("commit %d is %s, want %s", i, rev.Hash(), hashes[i])
		}
	}
	if some, err := head.Changes(t.Context(), all[1], "file"); err != nil || len(some) != 1 || some[0].Hash() != hashes[0] {
		t.Errorf("since the second: %v, %v", some, err)
	}
	if none, err := head.Changes(t.Context(), nil, "other"); err != nil || len(none) != 0 {
		t.Errorf("of no file: %v, %v", none, err)
	}
}
