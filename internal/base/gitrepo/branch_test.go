package gitrepo_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quayside/quayside/internal/base/gitrepo"
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
func commitOf(content string, force bool) gitrepo.Commit {
	return gitrepo.Commit{
		Message: "change\n", Author: gitrepo.Author{Name: "A", Email: "a@example.com"}, When: time.Unix(1, 0), Force: force,
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
		t.Errorf("left behind: %q", left)
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
			_, err := r.Branch(t.Context(), name, revision(t, r, "HEAD"), commitOf("x", true))
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

// TestSameBranch creates the same commit twice: the branch does not change, even without force.
func TestSameBranch(t *testing.T) {
	dir := newRepository(t)
	r := open(t, dir)
	first, err := r.Branch(t.Context(), "topic", revision(t, r, "HEAD"), commitOf("1", false))
	if err != nil {
		t.Fatal(err)
	}
	ref := filepath.Join(dir, ".git", "refs", "heads", "topic")
	before, err := os.Stat(ref)
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.Branch(t.Context(), "topic", revision(t, r, "HEAD"), commitOf("1", false))
	if err != nil || again != first {
		t.Errorf("got %v, %v, want %s", again, err, first)
	}
	if after, err := os.Stat(ref); err != nil || !os.SameFile(before, after) {
		t.Errorf("the branch was written again: %v", err)
	}
	if _, err := r.Branch(t.Context(), "topic", revision(t, r, "HEAD"), commitOf("2", false)); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("another commit: %v", err)
	}
	checkRepository(t, dir)
}
