//go:build linux

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/gittest"
)

// lockAsOther locks the work tree of a repository as another command would.
func lockAsOther(t *testing.T, file string) (release func()) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o666)
	check(t, err)
	_, err = f.WriteAt([]byte("quayside upgrade (process 1 on elsewhere)\n"), 0)
	check(t, err)
	release, err = store.LockFile(f, 0)
	check(t, err)
	return release
}

// TestOneWriter runs commands while another command writes. Commands that write must wait, and then
// fail with the name of the other command. Commands that only read succeed.
func TestOneWriter(t *testing.T) {
	t.Parallel()
	_, dir := newAttackedRepo(t, ociCatalog)
	cache := t.TempDir()
	mustRunIn(t, dir, cache, "resolve")
	mustRunIn(t, dir, cache, "render")
	state := filepath.Join(dir, "../../.git/quayside-writer")
	release := lockAsOther(t, state)
	for _, command := range []string{"verify", "render --check", "render --stdout", "resolve --check", "why vault", "add vault -n other --to subscriptions --check"} {
		if got := quaysideIn(t, dir, cache, strings.Fields(command)...); got.code > 1 {
			t.Errorf("%s: exit code %d: %s", command, got.code, got.stderr)
		}
	}
	before := snapshot(t, filepath.Dir(dir))
	var all sync.WaitGroup
	for _, command := range []string{"render", "resolve", "upgrade --yes", "remove vault/vault", "add vault -n other --to subscriptions", "promote", "vendor"} {
		all.Go(func() {
			got := quaysideIn(t, dir, cache, strings.Fields(command)...)
			if command == "promote" && got.code == 2 {
				return // no other environment
			}
			if got.code != 2 || !strings.Contains(got.stderr, "quayside upgrade (process 1 on elsewhere): try again after it has ended") {
				t.Errorf("%s: exit code %d: %s", command, got.code, got.stderr)
			}
		})
	}
	all.Wait()
	if snapshot(t, filepath.Dir(dir)) != before {
		t.Error("files were written while another command had the lock")
	}
	time.AfterFunc(time.Second, release)
	mustRunIn(t, dir, cache, "remove", "vault/vault")
	if text := read(t, dir, "../../.git/quayside-writer"); !strings.HasPrefix(text, "quayside remove (process ") {
		t.Errorf("the holder is %q", text)
	}
}

// TestWriterPlaces checks that a linked work tree has its own lock, that the lock of a directory
// without a repository is in the store, and that a read-only checkout is usable.
func TestWriterPlaces(t *testing.T) {
	t.Parallel()
	top, dir := newAttackedRepo(t, ociCatalog)
	repo := filepath.Join(top, "repo")
	gittest.Run(t, repo, "add", "-A")
	gittest.Run(t, repo, "commit", "-qm", "all")
	linked := filepath.Join(top, "linked")
	gittest.Run(t, repo, "worktree", "add", "-q", linked)
	defer lockAsOther(t, filepath.Join(repo, ".git/quayside-writer"))()
	mustRun(t, filepath.Join(linked, "envs/dev"), "resolve")
	if _, err := os.Stat(filepath.Join(repo, ".git/worktrees/linked/quayside-writer")); err != nil {
		t.Error(err)
	}
	if out, err := exec.Command("git", "-C", linked, "status", "--porcelain").CombinedOutput(); err != nil || strings.Contains(string(out), "quayside-writer") {
		t.Errorf("%s%v", out, err)
	}
	_ = dir
	plain, cache := quickstart(t), t.TempDir()
	mustRunIn(t, plain, cache, "resolve")
	locks, err := filepath.Glob(filepath.Join(cache, "quayside/locks/*"))
	check(t, err)
	if len(locks) != 1 {
		t.Fatalf("locks in the store: %v", locks)
	}
	defer lockAsOther(t, locks[0])()
	if got := quaysideIn(t, plain, cache, "render"); got.code != 2 || !strings.Contains(got.stderr, "process 1 on elsewhere") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
}
