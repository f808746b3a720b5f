package gitrepo_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quayside/quayside/internal/gitrepo"
)

// TestMain isolates the tests from the settings of the user and the system.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"HOME": "/nonexistent", "XDG_CONFIG_HOME": "", "GIT_CONFIG_NOSYSTEM": "1"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// commitOf returns a commit that changes one file.
func commitOf(content string) gitrepo.Commit {
	return gitrepo.Commit{
		Message: "change\n", Author: gitrepo.Author{Name: "A", Email: "a@example.com"}, When: time.Unix(1, 0),
		Changes: []gitrepo.FileEdit{{Path: "a/one.yaml", Data: []byte(content)}},
	}
}

// checkRepository checks and repacks a repository with the git program.
func checkRepository(t *testing.T, dir string) {
	t.Helper()
	if out := git(t, dir, "fsck", "--strict", "--no-dangling"); out != "" {
		t.Errorf("fsck: %s", out)
	}
	git(t, dir, "gc", "--quiet", "--prune=now")
	if left, _ := filepath.Glob(filepath.Join(dir, ".git", "*", "tmp_*")); left != nil {
		t.Errorf("leftover files: %q", left)
	}
}

// TestBranchRefused pins the errors for invalid branch names.
func TestBranchRefused(t *testing.T) {
	dir := newRepository(t)
	linked, bisected, rebased := filepath.Join(t.TempDir(), "linked"), filepath.Join(t.TempDir(), "bisected"), filepath.Join(t.TempDir(), "rebased")
	git(t, dir, "worktree", "add", "-q", linked, "-b", "side")
	git(t, dir, "worktree", "add", "-q", bisected, "-b", "bisected")
	git(t, bisected, "commit", "-q", "--allow-empty", "-m", "1")
	git(t, bisected, "commit", "-q", "--allow-empty", "-m", "2")
	git(t, bisected, "bisect", "start", "HEAD", "HEAD~2")
	git(t, dir, "worktree", "add", "-q", rebased, "-b", "rebased")
	write(t, rebased, "a/one.yaml", "theirs")
	git(t, rebased, "commit", "-q", "-a", "-m", "theirs")
	write(t, dir, "a/one.yaml", "ours")
	git(t, dir, "commit", "-q", "-a", "-m", "ours")
	if exec.Command("git", "-C", rebased, "-c", "user.name=T", "-c", "user.email=t@example.com", "rebase", "main").Run() == nil {
		t.Fatal("no conflict to stop at")
	}
	git(t, dir, "branch", "there/packed")
	git(t, dir, "pack-refs", "--all")
	git(t, dir, "branch", "there/loose")
	git(t, dir, "symbolic-ref", "refs/heads/alias", "refs/heads/there/loose")
	head, _ := os.ReadFile(filepath.Join(dir, ".git", "HEAD"))
	for name, want := range map[string]string{
		"HEAD": "reserved by Git", "refs/heads/x": "reserved by Git", "-x": "invalid", "x.lock": "invalid", "": "invalid",
		"main": dir, "side": linked, "bisected": bisected, "rebased": rebased,
		"there": "refs/heads/there/", "there/packed/x": "'refs/heads/there/packed' exists", "there/loose/x/y": "'refs/heads/there/loose' exists",
		"alias": "the name is an alias of refs/heads/there/loose",
	} {
		for _, at := range []string{dir, linked} {
			r := open(t, at)
			before := git(t, dir, "for-each-ref")
			_, err := r.Branch(t.Context(), name, revision(t, r, "HEAD"), commitOf("x"))
			if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("branch %q: ", name)) || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", name, err, want)
			}
			if after := git(t, dir, "for-each-ref"); after != before {
				t.Errorf("%q: the branches were\n%s\nare\n%s", name, before, after)
			}
		}
	}
	if now, _ := os.ReadFile(filepath.Join(dir, ".git", "HEAD")); string(now) != string(head) {
		t.Errorf("HEAD is %q, was %q", now, head)
	}
}

// TestSameBranch creates the same commit twice. The second call must not write the branch again.
func TestSameBranch(t *testing.T) {
	dir := newRepository(t)
	r := open(t, dir)
	first, err := r.Branch(t.Context(), "topic", revision(t, r, "HEAD"), commitOf("1"))
	if err != nil {
		t.Fatal(err)
	}
	ref := filepath.Join(dir, ".git", "refs", "heads", "topic")
	before, err := os.Stat(ref)
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.Branch(t.Context(), "topic", revision(t, r, "HEAD"), commitOf("1"))
	if err != nil || again != first {
		t.Errorf("got %v, %v, want %s", again, err, first)
	}
	if after, err := os.Stat(ref); err != nil || !os.SameFile(before, after) {
		t.Errorf("the branch was written again: %v", err)
	}
	checkRepository(t, dir)
}

// TestIsGenerated checks that IsGenerated distinguishes branches that Branch created from branches with other commits.
func TestIsGenerated(t *testing.T) {
	dir := newRepository(t)
	r := open(t, dir)
	head := revision(t, r, "HEAD")
	t.Setenv("GIT_COMMITTER_DATE", head.Time().Add(time.Hour).Format(time.RFC3339)) // of a person
	for name, change := range map[string]func(work string){
		"generated":      func(string) {},
		"behind":         func(string) { git(t, dir, "commit", "-q", "--allow-empty", "-m", "main") },
		"rewritten":      func(string) { git(t, dir, "commit", "-q", "--amend", "--allow-empty", "-m", "main") },
		"added":          func(work string) { git(t, work, "commit", "-q", "--allow-empty", "-m", "mine") },
		"amended":        func(work string) { git(t, work, "commit", "-q", "--amend", "--allow-empty", "-m", "mine") },
		"merged from it": func(work string) { git(t, dir, "merge", "-q", "--no-edit", "--no-ff", "topic") },
		"merged into it": func(work string) {
			git(t, dir, "commit", "-q", "--allow-empty", "-m", "main")
			git(t, work, "merge", "-q", "--no-edit", "main")
		},
		"rebased": func(work string) {
			git(t, dir, "commit", "-q", "--allow-empty", "-m", "main")
			git(t, work, "rebase", "-q", "main")
		},
		"of another root": func(work string) {
			git(t, work, "checkout", "-q", "--orphan", "x")
			git(t, work, "commit", "-q", "-m", "mine")
			git(t, work, "branch", "-f", "topic", "x")
		},
	} {
		git(t, dir, "reset", "-q", "--hard", head.Hash())
		c := commitOf("1")
		c.When = head.Time()
		if _, err := r.Branch(t.Context(), "topic", revision(t, r, "HEAD"), c); err != nil {
			t.Fatal(err)
		}
		work := filepath.Join(t.TempDir(), "work")
		git(t, dir, "worktree", "add", "-q", work, "topic")
		change(work)
		want := slices.Contains([]string{"generated", "behind", "merged from it", "rewritten"}, name)
		if got := r.IsGenerated(revision(t, r, "topic"), revision(t, r, "main")); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		git(t, dir, "worktree", "remove", "--force", work)
		git(t, dir, "branch", "-q", "-D", "topic")
	}
}

// TestBranchRemovesLeftTrees checks that Branch removes only the registered work trees of killed runs. It
// must also remove those whose files no longer exist.
func TestBranchRemovesLeftTrees(t *testing.T) {
	dir, tmp := newRepository(t), t.TempDir()
	ended := exec.Command("git", "version")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	add := func(name string) string {
		work := filepath.Join(tmp, name, "work")
		if err := os.MkdirAll(filepath.Dir(work), 0o700); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "worktree", "add", "-q", "--detach", work)
		return work
	}
	killed, gone := add(fmt.Sprintf("quayside-work-%d-1", ended.Process.Pid)), add(fmt.Sprintf("quayside-work-%d-2", ended.Process.Pid))
	running, other := add(fmt.Sprintf("quayside-work-%d-3", os.Getpid())), add("quayside-work")
	if err := os.RemoveAll(filepath.Dir(gone)); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	if _, err := r.Branch(t.Context(), "topic", revision(t, r, "HEAD"), commitOf("1")); err != nil {
		t.Fatal(err)
	}
	list := git(t, dir, "worktree", "list")
	for _, c := range []struct {
		path string
		left bool
	}{{killed, false}, {gone, false}, {running, true}, {other, true}} {
		if strings.Contains(list, c.path) != c.left {
			t.Errorf("%s is in the list: %t\n%s", c.path, !c.left, list)
		}
	}
	if _, err := os.Stat(filepath.Dir(killed)); err == nil {
		t.Errorf("%s still exists", filepath.Dir(killed))
	}
}
