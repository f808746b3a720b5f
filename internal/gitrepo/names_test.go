package gitrepo_test

import (
	"strings"
	"testing"
)

// TestAmbiguous checks that ambiguous names are rejected, and that their full names are accepted.
func TestAmbiguous(t *testing.T) {
	dir := newRepository(t)
	old := git(t, dir, "rev-parse", "HEAD")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "next")
	head := git(t, dir, "rev-parse", "HEAD")
	git(t, dir, "-c", "user.name=T", "-c", "user.email=t@example.com", "tag", "-a", "-m", "annotated", "v1", old)
	for ref, at := range map[string]string{
		"refs/remotes/origin/main": old, "refs/tags/origin/main": head, "refs/heads/" + old[:7]: head, "refs/heads/" + old: head,
		"refs/tags/HEAD": old, "refs/heads/topic": old, "refs/tags/topic": old, "refs/heads/heads/main": old,
		"refs/remotes/fork/HEAD": old, "refs/heads/fork": head, "refs/heads/refs/tags/v1": head,
	} {
		git(t, dir, "update-ref", ref, at)
	}
	r := open(t, dir)
	for name, want := range map[string]string{
		"origin/main": "refs/tags/origin/main, refs/remotes/origin/main", "topic~1": "refs/tags/topic, refs/heads/topic", old[:7]: old + ", refs/heads/" + old[:7],
		"HEAD": "HEAD, refs/tags/HEAD", "heads/main": "refs/heads/main, refs/heads/heads/main", "fork": "refs/heads/fork, refs/remotes/fork/HEAD",
	} {
		_, err := r.Revision(name)
		if err == nil || !strings.Contains(err.Error(), "is ambiguous: "+want+"\n  hint: write the full name") {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	for name, want := range map[string]string{
		"refs/remotes/origin/main": old, "refs/tags/origin/main": head, "refs/heads/topic": old, "refs/tags/v1": old, old: old, head: head,
		"main": head, "main~1": old, "main^": old, "v1": old, old[:8]: old, strings.ToUpper(head[:12]): head, "@": head, "@~1": old,
	} {
		if v, err := r.Revision(name); err != nil || v.Hash() != want || v.Name() != name {
			t.Errorf("%s: %v, %v, want %s", name, v, err, want)
		}
	}
	if v, err := r.Head(); err != nil || v.Hash() != head {
		t.Errorf("head: %v, %v, want %s", v, err, head)
	}
	git(t, dir, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	if v, err := r.DefaultBranch(); err != nil || v.Hash() != old {
		t.Errorf("default branch: %v, %v, want %s", v, err, old)
	}
	missing := strings.Repeat("1", 40)
	git(t, dir, "update-ref", "refs/tags/"+missing, head)
	for _, name := range []string{missing, "main@{1}", "refs/heads/none", "../HEAD", "~1", "index", "config"} {
		if v, err := r.Revision(name); err == nil {
			t.Errorf("%s is %s", name, v.Hash())
		}
	}
}
