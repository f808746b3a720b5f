package gitrepo_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/gitrepo"
)

// TestForeign has Git read, commit to and push the repositories that go-git
// cannot read, of those kinds that the installed Git knows.
func TestForeign(t *testing.T) {
	for name, value := range map[string]string{"GIT_DEFAULT_HASH": "sha256", "GIT_DEFAULT_REF_FORMAT": "reftable"} {
		t.Run(value, func(t *testing.T) {
			t.Setenv(name, value)
			config, err := os.ReadFile(filepath.Join(start(t), ".git", "config"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(config), value) {
				t.Skipf("the installed Git makes no repository with %s", value)
			}
			for name, test := range map[string]func(*testing.T){
				"open": TestOpen, "read": TestRead, "merge base": TestMergeBase, "default branch": TestDefaultBranch, "missing": TestMissing,
				"branch": TestBranch, "branches": TestBranches, "checked out": TestHeadBranch, "joins": TestJoins, "push": TestPushByGit, "token": TestTokenByGit, "lfs": TestPushLFS,
			} {
				t.Run(name, test)
			}
			if value == "sha256" {
				t.Run("branch refused", TestBranchRefused)
			}
		})
	}
}

// TestForeignFaults holds what is said where Git cannot help either.
func TestForeignFaults(t *testing.T) {
	dir := start(t)
	git(t, dir, "config", "core.repositoryFormatVersion", "1")
	git(t, dir, "config", "extensions.fromTheFuture", "true")
	if _, err := gitrepo.Open(dir); err == nil || !strings.Contains(err.Error(), "fromthefuture") {
		t.Errorf("unknown to Git: %v", err)
	}
	t.Setenv("PATH", "")
	if _, err := gitrepo.Open(dir); err == nil || !strings.Contains(err.Error(), "extension: fromthefuture: without git, which is not installed, only SHA-1") {
		t.Errorf("without Git: %v", err)
	}
}

// TestMissing reads what a broken clone lacks, and then what it has.
func TestMissing(t *testing.T) {
	dir := start(t)
	hash := git(t, dir, "rev-parse", "HEAD:a/b/two.yaml")
	tree := git(t, dir, "rev-parse", "HEAD:a/b")
	for _, lost := range []string{hash, tree} {
		if err := os.Remove(filepath.Join(dir, ".git", "objects", lost[:2], lost[2:])); err != nil {
			t.Fatal(err)
		}
		v := revision(t, open(t, dir), "HEAD")
		if _, err := v.Read("a/b/two.yaml"); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "the repository lacks an object of it") {
			t.Errorf("%s: %v", lost, err)
		}
		if got, err := v.Read("a/one.yaml"); err != nil || string(got) != "1" {
			t.Errorf("beside %s: %q, %v", lost, got, err)
		}
	}
	v := revision(t, open(t, dir), "HEAD")
	for _, dir := range []string{".", "a/b"} {
		if _, err := v.List(dir); err == nil || !strings.Contains(err.Error(), "HEAD:a/b: the repository lacks an object of it") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestDefaultBranch(t *testing.T) {
	dir := start(t)
	git(t, dir, "branch", "-m", "trunk")
	r := open(t, dir)
	if got, err := r.DefaultBranch(); err == nil {
		t.Errorf("got %s", got)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"master", []string{"branch", "master"}},
		{"main", []string{"branch", "main"}},
		{"origin/master", []string{"update-ref", "refs/remotes/origin/master", "HEAD"}},
		{"origin/master", []string{"symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/gone"}},
		{"origin/main", []string{"update-ref", "refs/remotes/origin/main", "HEAD"}},
		{"origin/gone", []string{"update-ref", "refs/remotes/origin/gone", "HEAD"}},
	} {
		git(t, dir, c.args...)
		if got, err := open(t, dir).DefaultBranch(); got != c.want || err != nil {
			t.Errorf("after %q: %q, %v, want %s", c.args, got, err, c.want)
		}
	}
}

// TestPushLFS has what lies outside of Git sent before the branch is, once, by
// the hook where there is one.
func TestPushLFS(t *testing.T) {
	dir, remote, bin := start(t), t.TempDir(), t.TempDir()
	git(t, remote, "init", "-q", "--bare")
	git(t, dir, "remote", "add", "origin", remote)
	write(t, bin, "git-lfs", "#!/bin/sh\necho \"$@\" >>\"$LFS_LOG\"\ntest ! -e \"$LFS_LOG.closed\" || { echo no space >&2; exit 1; }\n")
	if err := os.Chmod(filepath.Join(bin, "git-lfs"), 0o755); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(bin, "log")
	t.Setenv("LFS_LOG", log)
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	push := func(what, branch, want, fault string) {
		t.Helper()
		git(t, dir, "branch", branch)
		moved, err := open(t, dir).Push(t.Context(), "origin", branch, "", false)
		if moved != (fault == "") || fault == "" && err != nil || fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
			t.Errorf("%s: %v, %v, want %q", what, moved, err, fault)
		}
		got, _ := os.ReadFile(log)
		if string(got) != want {
			t.Errorf("%s: LFS was run %q, want %q", what, got, want)
		}
		_ = os.Remove(log)
		if exec.Command("git", "-C", remote, "rev-parse", "--verify", "-q", branch).Run() == nil != moved {
			t.Errorf("%s: moved is %v", what, moved)
		}
	}
	push("no filter", "one", "", "")
	git(t, dir, "config", "filter.lfs.clean", "cat")
	push("no file for it", "two", "", "")
	write(t, dir, "a/.gitattributes", "*.bin filter=lfs -text\n")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "attributes")
	push("a file for it", "three", "push -- origin refs/heads/three\n", "")
	write(t, bin, "log.closed", "")
	push("refused", "four", "push -- origin refs/heads/four\n", "no space")
	hook(t, dir, "pre-push", "exit 0")
	push("a hook", "five", "", "")
}
