package gitrepo_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quayside/quayside/internal/gitrepo"
)

// TestMain is also the child of the tests below: it moves a branch as often as
// it is told, or until it is killed.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"HOME": "/nonexistent", "XDG_CONFIG_HOME": "", "GIT_CONFIG_NOSYSTEM": "1"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	dir := os.Getenv("GITREPO_CHILD")
	if dir == "" {
		os.Exit(m.Run())
	}
	times, _ := strconv.Atoi(os.Getenv("GITREPO_TIMES"))
	for i := 0; times == 0 || i < times; i++ {
		r, err := gitrepo.Open(dir)
		if err == nil {
			var head *gitrepo.Revision
			if head, err = r.Revision("HEAD"); err == nil {
				_, err = r.Branch(context.Background(), "topic", head, commitOf(fmt.Sprint(os.Getpid(), i), true))
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func child(t *testing.T, dir string, times int) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "GITREPO_CHILD="+dir, fmt.Sprint("GITREPO_TIMES=", times))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd
}

// commitOf is a change of one file.
func commitOf(content string, force bool) gitrepo.Commit {
	return gitrepo.Commit{
		Message: "change\n", Author: gitrepo.Author{Name: "A", Email: "a@example.com"}, When: time.Unix(1, 0), Force: force,
		Changes: []gitrepo.Change{{Path: "a/one.yaml", Data: []byte(content)}},
	}
}

// healthy has Git look at all of a repository, and tidy it up.
func healthy(t *testing.T, dir string) {
	t.Helper()
	if out := git(t, dir, "fsck", "--strict", "--no-dangling"); out != "" {
		t.Errorf("fsck: %s", out)
	}
	git(t, dir, "gc", "--quiet", "--prune=now")
	if left, _ := filepath.Glob(filepath.Join(dir, ".git", "*", "tmp_*")); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// TestInterrupted breaks off after any step: the branch is the old one or the
// new one, and Git and the next run can go on. Who is killed with the lock in
// hand leaves that, as Git does, and the next run says so.
func TestInterrupted(t *testing.T) {
	said := false // it takes a second
	for n, of := 0, 1; n <= of; n++ {
		for _, packed := range []bool{false, true} {
			dir := start(t)
			r := open(t, dir)
			before := git(t, dir, "rev-parse", "HEAD")
			after, err := r.Branch(t.Context(), "new", revision(t, r, "HEAD"), commitOf("new", false))
			if err != nil {
				t.Fatal(err)
			}
			git(t, dir, "branch", "topic", before)
			if packed {
				git(t, dir, "pack-refs", "--all")
			}
			if of, err = gitrepo.Interrupt(r, "topic", after, n); err != nil {
				t.Fatal(err)
			}
			want := before
			if n == of {
				want = after.Hash()
			}
			if got := git(t, dir, "rev-parse", "topic"); got != want {
				t.Errorf("after step %d: the branch is %s, want %s", n, got, want)
			}
			lock := filepath.Join(dir, ".git", "refs", "heads", "topic.lock")
			if _, err := os.Stat(lock); err == nil {
				if !said {
					if _, err := r.Branch(t.Context(), "topic", revision(t, r, "HEAD"), commitOf("3", true)); err == nil || !strings.Contains(err.Error(), lock+" is there") {
						t.Errorf("after step %d: %v", n, err)
					}
				}
				said = true
				if err := os.Remove(lock); err != nil {
					t.Fatal(err)
				}
			}
			healthy(t, dir)
			r = open(t, dir) // Git has packed what it read
			if _, err := r.Branch(t.Context(), "topic", revision(t, r, "HEAD"), commitOf("3", true)); err != nil {
				t.Errorf("after step %d: %v", n, err)
			}
		}
	}
}

// TestKilled kills a process that moves a branch again and again.
func TestKilled(t *testing.T) {
	dir := start(t)
	git(t, dir, "branch", "topic")
	for i := range 25 {
		cmd := child(t, dir, 0)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(20+7*i%30) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if got := git(t, dir, "cat-file", "-t", "topic"); got != "commit" {
			t.Fatalf("round %d: the branch is a %s", i, got)
		}
		if err := os.Remove(filepath.Join(dir, ".git", "refs", "heads", "topic.lock")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	healthy(t, dir)
}

// TestTwoAtOnce moves one branch from two processes, while Git packs.
func TestTwoAtOnce(t *testing.T) {
	dir := start(t)
	const times = 20
	a, b := child(t, dir, times), child(t, dir, times)
	for _, cmd := range []*exec.Cmd{a, b} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		_ = exec.Command("git", "-C", dir, "pack-refs", "--all").Run() // may find the branch locked
	}
	if err := errors.Join(a.Wait(), b.Wait()); err != nil {
		t.Error(err)
	}
	if got := len(strings.Split(git(t, dir, "reflog", "topic"), "\n")); got != 2*times {
		t.Errorf("the log has %d entries, want %d", got, 2*times)
	}
	healthy(t, dir)
}

// TestBranchRefused holds the names that a branch cannot have.
func TestBranchRefused(t *testing.T) {
	dir := start(t)
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
		"HEAD": "a name of Git's own", "refs/heads/x": "a name of Git's own", "-x": "invalid", "x.lock": "invalid", "": "invalid",
		"main": "checked out in " + dir, "side": "checked out in " + linked, "bisected": "checked out in " + bisected, "rebased": "checked out in " + rebased,
		"there": `branch "there/`, "there/packed/x": `branch "there/packed" is there`, "there/loose/x/y": `branch "there/loose" is there`,
		"alias": "stands for refs/heads/there/loose",
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

// TestBranchLog compares the log, modes and what is left with what Git writes.
func TestBranchLog(t *testing.T) {
	for _, c := range []struct {
		config []string
		logged bool
	}{{[]string{"core.bare", "false"}, true}, {[]string{"core.logAllRefUpdates", "false"}, false}, {[]string{"core.logAllRefUpdates", "always"}, true}} {
		dir := start(t)
		git(t, dir, append([]string{"config"}, c.config...)...)
		for _, file := range []string{"refs/heads/topic/empty", "logs/refs/heads/topic/empty"} {
			if err := os.MkdirAll(filepath.Join(dir, ".git", file), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		r := open(t, dir)
		for _, content := range []string{"1", "2", "2"} {
			v, err := r.Branch(t.Context(), "topic", revision(t, r, "HEAD"), commitOf(content, true))
			if err != nil {
				t.Fatal(err)
			}
			if got := git(t, dir, "rev-parse", "topic"); got != v.Hash() {
				t.Errorf("the branch is %s, want %s", got, v.Hash())
			}
		}
		log := git(t, dir, "reflog", "--format=%gs %gn", "topic")
		if want := strings.TrimSuffix(strings.Repeat("quayside: change A\n", 2), "\n"); c.logged && log != want || !c.logged && log != "" {
			t.Errorf("%q: the log is %q", c.config, log)
		}
		git(t, dir, "branch", "other")
		mine, err := os.Stat(filepath.Join(dir, ".git", "refs", "heads", "topic"))
		if err != nil {
			t.Fatal(err)
		}
		if theirs, err := os.Stat(filepath.Join(dir, ".git", "refs", "heads", "other")); err != nil || mine.Mode() != theirs.Mode() {
			t.Errorf("the mode is %v, want that of %v, %v", mine.Mode(), theirs, err)
		}
		healthy(t, dir)
	}
}

// TestSameBranch makes the same commit twice: nothing moves, without force and
// in a repository whose branch an older process left empty.
func TestSameBranch(t *testing.T) {
	dir := start(t)
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
	if err != nil || again.Hash() != first.Hash() {
		t.Errorf("got %v, %v, want %s", again, err, first.Hash())
	}
	if after, err := os.Stat(ref); err != nil || !os.SameFile(before, after) {
		t.Errorf("the branch was written again: %v", err)
	}
	if _, err := r.Branch(t.Context(), "topic", revision(t, r, "HEAD"), commitOf("2", false)); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("another commit: %v", err)
	}
	if err := os.Truncate(ref, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Branch(t.Context(), "topic", revision(t, r, "HEAD"), commitOf("1", false)); err != nil {
		t.Errorf("an empty branch: %v", err)
	}
	healthy(t, dir)
}
