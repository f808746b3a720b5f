package gitrepo_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/gitrepo"
)

// TestForeign pins the error for repositories that go-git cannot open.
func TestForeign(t *testing.T) {
	dir := newRepository(t)
	git(t, dir, "config", "core.repositoryFormatVersion", "1")
	git(t, dir, "config", "extensions.objectFormat", "sha256")
	if _, err := gitrepo.Open(dir); err == nil || !strings.Contains(err.Error(), "extension: objectformat: only repositories with SHA-1") {
		t.Errorf("got %v", err)
	}
}

// TestSharedClone reads a clone that shares the objects of another repository, and opens one without commits.
func TestSharedClone(t *testing.T) {
	dir := newRepository(t)
	shared := filepath.Join(t.TempDir(), "shared")
	git(t, dir, "clone", "-q", "--shared", ".", shared)
	r := open(t, shared)
	head, err := r.Head()
	if err != nil || !r.HasCommits() {
		t.Fatal(err)
	}
	if got, err := head.Read("a/one.yaml"); err != nil || string(got) != "1" {
		t.Errorf("read %q, %v", got, err)
	}
	git(t, shared, "checkout", "-q", "--orphan", "new")
	if open(t, shared).HasCommits() {
		t.Error("an orphan branch has a commit")
	}
}

// TestOpenFiles reads many loose objects without garbage collection, which would close leaked files.
func TestOpenFiles(t *testing.T) {
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("the system does not list open files")
		}
		return len(list)
	}
	dir := newRepository(t)
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(dir, "a", strconv.Itoa(i)), []byte(strings.Repeat("x", i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "files")
	v := revision(t, open(t, dir), "HEAD")
	entries, err := v.List(".")
	if err != nil {
		t.Fatal(err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := count()
	for _, e := range entries {
		if _, err := v.ReadEntry(e); err != nil {
			t.Fatal(err)
		}
	}
	if after := count(); after > before+10 {
		t.Errorf("%d files are open after %d reads, before %d", after, len(entries), before)
	}
}

// TestWithoutGit uses a repository on a machine without the git program.
func TestWithoutGit(t *testing.T) {
	dir := newRepository(t)
	git(t, dir, "remote", "add", "origin", "../x.git")
	t.Setenv("PATH", "")
	r := open(t, dir)
	head := revision(t, r, "HEAD")
	if got, err := head.Read("a/one.yaml"); err != nil || string(got) != "1" {
		t.Errorf("read %q, %v", got, err)
	}
	_, branchErr := r.Branch(t.Context(), "topic", head, commitOf("2"))
	_, pushErr := r.Push(t.Context(), "origin", "main", "", "")
	_, authorErr := r.Author(t.Context(), os.Getenv)
	_, _, uncleanErr := r.DirtyFiles(t.Context(), []string{"a"})
	for _, err := range []error{branchErr, pushErr, authorErr, uncleanErr} {
		if err == nil || !strings.HasSuffix(err.Error(), "git is not installed: needed to compare the work tree, commit and push") {
			t.Errorf("got %v", err)
		}
	}
}

// TestBareInClone checks that Git does not run in a bare repository among the files of a clone. The settings of
// the bare repository would run a program.
func TestBareInClone(t *testing.T) {
	dir := newRepository(t)
	bare, ran := filepath.Join(dir, "a", "bare"), filepath.Join(dir, "ran")
	git(t, dir, "clone", "-q", "--bare", ".", bare)
	git(t, bare, "config", "core.fsmonitor", "touch "+ran+" #")
	git(t, bare, "config", "core.bare", "false")
	git(t, bare, "config", "core.worktree", dir)
	r := open(t, bare)
	if _, _, err := r.DirtyFiles(t.Context(), []string{"."}); err == nil || !strings.Contains(err.Error(), "a bare repository has no work tree") {
		t.Errorf("got %v", err)
	}
	if _, err := r.Branch(t.Context(), "topic", revision(t, r, "main"), commitOf("2")); err == nil {
		t.Error("a branch was created")
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the repository was run")
	}
}

// TestMissing reads missing and existing objects of a broken clone.
func TestMissing(t *testing.T) {
	dir := newRepository(t)
	hash := git(t, dir, "rev-parse", "HEAD:a/b/two.yaml")
	tree := git(t, dir, "rev-parse", "HEAD:a/b")
	for _, lost := range []string{hash, tree} {
		if err := os.Remove(filepath.Join(dir, ".git", "objects", lost[:2], lost[2:])); err != nil {
			t.Fatal(err)
		}
		v := revision(t, open(t, dir), "HEAD")
		if _, err := v.Read("a/b/two.yaml"); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "a Git object is missing") {
			t.Errorf("%s: %v", lost, err)
		}
		if got, err := v.Read("a/one.yaml"); err != nil || string(got) != "1" {
			t.Errorf("with %s missing: %q, %v", lost, got, err)
		}
	}
	v := revision(t, open(t, dir), "HEAD")
	for _, dir := range []string{".", "a/b"} {
		if _, err := v.List(dir); err == nil || !strings.Contains(err.Error(), "HEAD:a/b: a Git object is missing") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestDefaultBranch(t *testing.T) {
	dir := newRepository(t)
	git(t, dir, "branch", "-m", "trunk")
	r := open(t, dir)
	if got, err := r.DefaultBranch(); err == nil {
		t.Errorf("got %s", got.Name())
	}
	for _, c := range []struct {
		want string // empty: an error
		args []string
	}{
		{"master", []string{"branch", "master"}},
		{"main", []string{"branch", "main"}},
		{"main", []string{"update-ref", "refs/remotes/other/main", "HEAD"}},
		{"", []string{"remote", "add", "origin", "https://git.example.com/fleet"}},
		{"", []string{"update-ref", "refs/remotes/origin/main", "HEAD"}}, // pushed by anybody
		{"", []string{"update-ref", "refs/remotes/origin/HEAD", "HEAD"}}, // a branch called HEAD
		{"", []string{"symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk"}},
		{"origin/trunk", []string{"update-ref", "refs/remotes/origin/trunk", "HEAD"}},
		{"", []string{"symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/main"}},
	} {
		git(t, dir, c.args...)
		name := ""
		if got, err := open(t, dir).DefaultBranch(); err == nil {
			name = got.Name()
		}
		if name != c.want {
			t.Errorf("after %q: %q, want %q", c.args, name, c.want)
		}
	}
}
