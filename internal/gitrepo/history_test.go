package gitrepo_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/gitrepo"
)

// TestChangedLines reads the history of a file along the first parents.
func TestChangedLines(t *testing.T) {
	dir := newRepository(t)
	commit := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "lock"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "add", "lock")
		git(t, dir, "commit", "-q", "-m", "change")
	}
	commit("a: 1\n")
	git(t, dir, "checkout", "-q", "-b", "side")
	commit("a: 2\n")
	commit("a: 3\n")
	git(t, dir, "checkout", "-q", "-")
	git(t, dir, "merge", "-q", "--no-ff", "-m", "merge", "side")
	r := open(t, dir)
	head, err := r.Head()
	if err != nil {
		t.Fatal(err)
	}
	out, err := head.ChangedLines(t.Context(), "lock")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "+a") || strings.HasPrefix(line, "-a") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if d := cmp.Diff([]string{"-a: 1", "+a: 3", "+a: 1"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestChangedLinesOfRenamed reads the history of a file under its earlier names, also while the last rename is
// not yet committed.
func TestChangedLinesOfRenamed(t *testing.T) {
	dir := newRepository(t)
	rename := func(from, to string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o700); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "mv", from, to)
	}
	write(t, dir, "lock", "a: 0\nb: 1\nc: 1\n")
	git(t, dir, "add", "lock")
	git(t, dir, "commit", "-q", "-m", "add")
	rename("lock", "dev/lock")
	write(t, dir, "dev/lock", "a: 1\nb: 1\nc: 1\n")
	git(t, dir, "commit", "-q", "-a", "-m", "rename")
	write(t, dir, "dev/lock", "a: 2\nb: 1\nc: 1\n")
	git(t, dir, "commit", "-q", "-a", "-m", "change")
	rename("dev/lock", "envs/dev/lock")
	r := open(t, dir)
	head, err := r.Head()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dev/lock", "envs/dev/lock"} {
		if out, err := head.ChangedLines(t.Context(), name); err != nil || !strings.Contains(string(out), "-a: 1\n+a: 2\n") || !strings.Contains(string(out), "+a: 0\n") {
			t.Errorf("%s: got %q, %v", name, out, err)
		}
	}
	if out, err := head.ChangedLines(t.Context(), "other/lock"); err != nil || len(out) > 0 {
		t.Errorf("got %q, %v", out, err)
	}
}

// TestIgnored lists ignored files that are not tracked.
func TestIgnored(t *testing.T) {
	dir := newRepository(t)
	for name, text := range map[string]string{".gitignore": "*.lock\n", "a.lock": "", "b.lock": "", "c": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "add", "-f", "a.lock")
	got, err := open(t, dir).Ignored(t.Context(), []string{"a.lock", "b.lock", "c"})
	if err != nil || !slices.Equal(got, []string{"b.lock"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := open(t, dir).Ignored(t.Context(), []string{"c"}); err != nil || len(got) > 0 {
		t.Errorf("without ignored files: got %q, %v", got, err)
	}
}

// TestRemotes checks the names of tracked branches, and that a clone that tracks no branch has no names.
func TestRemotes(t *testing.T) {
	dir := newRepository(t)
	git(t, dir, "remote", "add", "origin", "https://token@git.example.com/fleet")
	got, err := open(t, dir).Remotes()
	if d := cmp.Diff(&gitrepo.Remotes{URLs: []string{"https://git.example.com/fleet"}}, got); d != "" || err != nil {
		t.Errorf("(-want +got) %v\n%s", err, d)
	}
	git(t, dir, "update-ref", "refs/remotes/origin/stable/1", "HEAD")
	git(t, dir, "tag", "v1")
	got, err = open(t, dir).Remotes()
	if d := cmp.Diff(map[string]bool{"stable/1": true, "v1": true}, got.Names); d != "" || err != nil {
		t.Errorf("(-want +got) %v\n%s", err, d)
	}
}
