package gitrepo_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/gitrepo"
)

// TestMerges checks Merges during and after every kind of merge of two branches.
func TestMerges(t *testing.T) {
	dir := newRepository(t)
	git(t, dir, "branch", "topic")
	change := func(text string) {
		write(t, dir, "a/one.yaml", text)
		git(t, dir, "commit", "-q", "-a", "-m", text)
	}
	change("main")
	git(t, dir, "checkout", "-q", "topic")
	change("topic")
	change("topic again")
	git(t, dir, "checkout", "-q", "main")
	hash := func(name string) string { return git(t, dir, "rev-parse", name) }
	fork, main, topic, topic1 := hash("main~1"), hash("main"), hash("topic"), hash("topic~1")
	names := map[string]string{"": "", fork: "fork", main: "main", topic: "topic", topic1: "topic~1"}
	stops := func(args ...string) {
		t.Helper()
		full := append([]string{"-C", dir, "-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "core.editor=true"}, args...)
		_ = exec.Command("git", full...).Run() // with a conflict
	}
	joins := func(at, what string, want ...string) {
		t.Helper()
		got, err := open(t, at).Merges()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var text []string
		for _, j := range got {
			text = append(text, joinText(j, names))
		}
		if strings.Join(text, "; ") != strings.Join(want, "; ") {
			t.Errorf("%s: %q, want %q", what, text, want)
		}
	}
	joins(dir, "nothing", "HEAD=main")
	stops("merge", "topic")
	joins(dir, "merge", "open fork HEAD=main MERGE_HEAD=topic")
	git(t, dir, "commit", "-q", "-a", "-m", "merged")
	names[hash("HEAD")] = "merged"
	joins(dir, "merged", "fork HEAD^1=main HEAD^2=topic", "HEAD=merged")
	git(t, dir, "reset", "-q", "--hard", main)
	stops("merge", "--squash", "topic")
	joins(dir, "squash", "open fork HEAD=main "+topic[:12]+"=topic")
	git(t, dir, "reset", "-q", "--hard")
	stops("cherry-pick", "topic")
	joins(dir, "cherry-pick", "open topic~1 HEAD=main CHERRY_PICK_HEAD=topic")
	git(t, dir, "cherry-pick", "--abort")
	stops("revert", "topic")
	joins(dir, "revert", "open topic HEAD=main REVERT_HEAD^=topic~1")
	git(t, dir, "revert", "--abort")

	linked := filepath.Join(t.TempDir(), "linked")
	git(t, dir, "worktree", "add", "-q", linked, "topic")
	joins(linked, "linked", "HEAD=topic")
	at := dir
	dir = linked
	for _, backend := range []string{"--merge", "--apply"} {
		stops("rebase", backend, "main")
		joins(linked, "rebase "+backend, "open fork HEAD=main REBASE_HEAD=topic~1")
		git(t, linked, "rebase", "--abort")
	}
	stops("rebase", "main")
	for range 2 {
		git(t, linked, "checkout", "--theirs", ".")
		git(t, linked, "add", "-A")
		stops("rebase", "--continue")
	}
	names[hash("HEAD")] = "rebased"
	joins(linked, "rebased", "fork ORIG_HEAD=topic main=main", "HEAD=rebased")
	joins(at, "beside", "HEAD=main")
	empty := t.TempDir()
	git(t, empty, "init", "-q")
	if got, err := open(t, empty).Merges(); got != nil || err != nil {
		t.Errorf("no commit: %v, %v", got, err)
	}
}

// joinText describes a Merge as text: "open base HEAD=main MERGE_HEAD=topic".
func joinText(j gitrepo.Merge, names map[string]string) string {
	var out []string
	if j.Open {
		out = append(out, "open")
	}
	if j.Base != nil {
		out = append(out, names[j.Base.Hash()])
	}
	for _, s := range j.Sides {
		out = append(out, s.Name()+"="+names[s.Hash()])
	}
	return strings.Join(out, " ")
}
