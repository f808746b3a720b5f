package gitrepo_test

import (
	"testing"

	"github.com/quayside/quayside/internal/gitrepo"
)

func TestWithoutSecrets(t *testing.T) {
	for remote, want := range map[string]string{
		"":                                       "",
		"../origin.git":                          "",
		"/srv/origin.git":                        "",
		`C:\repos\origin`:                        "",
		"file:///srv/origin.git":                 "",
		"https://git.example.com/a/b.git":        "https://git.example.com/a/b.git",
		"https://user:secret@git.example.com/a":  "https://git.example.com/a",
		"https://token@git.example.com/a?key=s#": "https://git.example.com/a",
		"ssh://git:secret@git.example.com:22/a":  "ssh://git@git.example.com:22/a",
		"git@git.example.com:a/b.git":            "git@git.example.com:a/b.git",
		"https://user:sec ret@%zz/a":             "",
	} {
		if got := gitrepo.WithoutSecrets(remote); got != want {
			t.Errorf("%s: %q, want %q", remote, got, want)
		}
	}
}

func TestHeadBranch(t *testing.T) {
	dir := newRepository(t)
	git(t, dir, "checkout", "-q", "-b", "env/stage")
	linked := t.TempDir() + "/linked"
	git(t, dir, "worktree", "add", "-q", "-b", "other", linked)
	git(t, dir, "remote", "add", "origin", "https://token@git.example.com/fleet")
	for at, want := range map[string]string{dir: "env/stage", linked: "other"} {
		if got := open(t, at).HeadBranch(); got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
		if got := open(t, at).Origin(); got != "https://git.example.com/fleet" {
			t.Errorf("%s: origin %q", at, got)
		}
	}
	git(t, dir, "checkout", "-q", "--detach")
	if got := open(t, dir).HeadBranch(); got != "" {
		t.Errorf("of a commit: %q", got)
	}
}
