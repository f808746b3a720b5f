package gitrepo_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/quayside/quayside/internal/gitrepo"
)

// git runs the git program in dir.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("git %q: %v\n%s%s", args, err, &out, &log)
	}
	return strings.TrimSpace(out.String())
}

func newRepository(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	write(t, dir, "a/one.yaml", "1")
	write(t, dir, "a/b/two.yaml", "2")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "start")
	return dir
}

func write(t *testing.T, dir, name, data string) {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) *gitrepo.Repo {
	t.Helper()
	r, err := gitrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func revision(t *testing.T, r *gitrepo.Repo, name string) *gitrepo.Revision {
	t.Helper()
	v, err := r.Revision(name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestOpen(t *testing.T) {
	dir := newRepository(t)
	linked, bare := filepath.Join(t.TempDir(), "linked"), filepath.Join(dir, "bare.git")
	git(t, dir, "worktree", "add", "-q", linked, "-b", "side")
	git(t, dir, "clone", "-q", "--bare", ".", bare)
	for _, c := range []struct{ at, root, path string }{
		{dir, dir, "."}, {filepath.Join(dir, "a", "b"), dir, "a/b"}, {linked, linked, "."}, {filepath.Join(linked, "a"), linked, "a"}, {bare, "", "."},
	} {
		r := open(t, c.at)
		if want, _ := filepath.EvalSymlinks(c.root); r.Root() != want && c.root+r.Root() != "" {
			t.Errorf("%s: root %q, want %q", c.at, r.Root(), want)
		}
		if got, err := r.Path(c.at); err != nil || got != c.path {
			t.Errorf("%s: path %q, %v, want %q", c.at, got, err, c.path)
		}
		if got := revision(t, r, "main").Hash(); got != git(t, dir, "rev-parse", "main") {
			t.Errorf("%s: main is %s", c.at, got)
		}
	}
	// Irrelevant extensions do not prevent opening the repository.
	git(t, dir, "config", "core.repositoryFormatVersion", "1")
	for _, name := range []string{"worktreeConfig", "preciousObjects", "partialClone"} {
		git(t, dir, "config", "extensions."+name, "true")
		for _, at := range []string{dir, linked} {
			if got := revision(t, open(t, at), "main").Hash(); got != git(t, at, "rev-parse", "main") {
				t.Errorf("%s, %s: main is %s", name, at, got)
			}
		}
	}
	if _, err := gitrepo.Open(t.TempDir()); !errors.Is(err, gitrepo.ErrNone) {
		t.Errorf("no repository: %v", err)
	}
}

func TestRead(t *testing.T) {
	dir := newRepository(t)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "a", "link.yaml")); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "link")
	v := revision(t, open(t, dir), "HEAD")
	var got []string
	for _, under := range []string{".", "a/b", "nowhere", "a/one.yaml"} {
		entries, err := v.List(under)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			data, err := v.ReadEntry(e)
			if err != nil || e.Hash != git(t, dir, "hash-object", e.Path) || string(data) != git(t, dir, "show", "HEAD:"+e.Path) {
				t.Errorf("%s: %q, %v", e.Path, data, err)
			}
			if size, err := v.Size(e); err != nil || size != int64(len(data)) {
				t.Errorf("%s: %d bytes, %v", e.Path, size, err)
			}
			got = append(got, under+" "+e.Path)
		}
	}
	if want := ". a/b/two.yaml|. a/one.yaml|a/b a/b/two.yaml"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", strings.Join(got, "|"), want)
	}
	if _, err := v.Read("a/none.yaml"); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "HEAD:a/none.yaml: ") {
		t.Errorf("missing: %v", err)
	}
	if _, err := v.Read("a/link.yaml"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link: %v", err)
	}
	for name, want := range map[string]string{"a/link.yaml": "/etc/passwd", "a/one.yaml": "", "a": "", "a/none": "", "a/link.yaml/x": ""} {
		if target, is := v.Link(name); target != want || is != (want != "") {
			t.Errorf("%s leads to %q, %v", name, target, is)
		}
	}
	for under, names := range map[string][]string{".": {"a/one.yaml", "a/b/two.yaml"}, "a": {"one.yaml", "b/two.yaml"}} {
		fsys := v.FS(under)
		if err := fstest.TestFS(fsys, names...); err != nil {
			t.Errorf("%s: %v", under, err)
		}
		link := strings.TrimPrefix("a/link.yaml", under+"/")
		if _, err := fs.ReadFile(fsys, link); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a link: %v", err)
		}
	}
	for _, name := range []string{"", "-x", "nowhere", "HEAD~99", "main^{tree}", "HEAD:a", "@{u}", "\x00"} {
		if _, err := open(t, dir).Revision(name); err == nil {
			t.Errorf("revision %q was found", name)
		}
	}
}

// TestMergeBase compares MergeBase with Git on random histories.
func TestMergeBase(t *testing.T) {
	dir := newRepository(t)
	rng := rand.New(rand.NewPCG(1, 2))
	tree := git(t, dir, "rev-parse", "HEAD^{tree}")
	all := []string{git(t, dir, "rev-parse", "HEAD")}
	for i := range 40 {
		args := []string{"commit-tree", tree, "-m", fmt.Sprint(i)}
		for range 1 + rng.IntN(2) {
			if p := all[max(0, len(all)-1-rng.IntN(6))]; !strings.Contains(strings.Join(args, " "), p) {
				args = append(args, "-p", p)
			}
		}
		all = append(all, git(t, dir, args...))
	}
	r := open(t, dir)
	for range 60 {
		a, b := all[rng.IntN(len(all))], all[rng.IntN(len(all))]
		got, err := r.MergeBase(revision(t, r, a), revision(t, r, b))
		if err != nil {
			t.Fatal(err)
		}
		if want := git(t, dir, "merge-base", "--all", a, b); !strings.Contains(want, got.Hash()) {
			t.Errorf("%s and %s: got %s, want one of %s", a, b, got.Hash(), want)
		}
	}
	git(t, dir, "checkout", "-q", "--orphan", "alone")
	git(t, dir, "commit", "-q", "-m", "alone")
	if _, err := r.MergeBase(revision(t, r, "main"), revision(t, r, "alone")); !errors.Is(err, gitrepo.ErrNoBase) {
		t.Errorf("no common ancestor: %v", err)
	}
}

// TestBranch checks a new branch with the git program.
func TestBranch(t *testing.T) {
	dir := newRepository(t)
	r := open(t, dir)
	before := git(t, dir, "status", "--porcelain", "--branch")
	_, err := r.Branch(t.Context(), "topic/x", revision(t, r, "HEAD"), gitrepo.Commit{
		Message: "change\n", Author: gitrepo.Author{Name: "A", Email: "a@example.com"}, When: time.Unix(1, 0),
		Changes: []gitrepo.FileEdit{{Path: "a/one.yaml", Data: []byte("11")}, {Path: "a/b/two.yaml", Removed: true}, {Path: "a.yaml", Data: []byte("3")}, {Path: "c/d/e", Data: []byte("4")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	git(t, dir, "fsck", "--strict")
	if got := git(t, dir, "ls-tree", "-r", "--name-only", "topic/x"); got != "a.yaml\na/one.yaml\nc/d/e" {
		t.Errorf("files: %q", got)
	}
	if got := git(t, dir, "show", "topic/x:a/one.yaml"); got != "11" {
		t.Errorf("content: %q", got)
	}
	if after := git(t, dir, "status", "--porcelain", "--branch"); after != before {
		t.Errorf("the work tree was %q, is %q", before, after)
	}
	for _, path := range []string{"../x", "/x", "", "."} {
		if _, err := r.Branch(t.Context(), "y", revision(t, r, "HEAD"), gitrepo.Commit{Changes: []gitrepo.FileEdit{{Path: path}}}); err == nil {
			t.Errorf("path %q was accepted", path)
		}
	}
}

func TestBranches(t *testing.T) {
	dir := newRepository(t)
	for _, ref := range []string{"refs/heads/up/b/x", "refs/heads/up/a", "refs/heads/upper/c", "refs/heads/up-d", "refs/tags/up/e", "refs/remotes/origin/up/f", "refs/remotes/origin/up/a", "refs/remotes/up/g"} {
		git(t, dir, "update-ref", ref, "HEAD")
	}
	git(t, dir, "pack-refs", "--all")
	git(t, dir, "update-ref", "refs/heads/up/loose", "HEAD")
	for below, want := range map[string][2]map[string]int{
		"up":   {{"up/a": 1, "up/b/x": 1, "up/loose": 1}, {"up/a": 2, "up/b/x": 1, "up/f": 1, "up/loose": 1}},
		"up/a": {{"up/a": 1}, {"up/a": 2}},
	} {
		for i, tracking := range []bool{false, true} {
			got, err := open(t, dir).Branches(below, tracking)
			if err != nil {
				t.Fatal(err)
			}
			tips := map[string]int{}
			for name, of := range got {
				tips[name] = len(of)
			}
			if !maps.Equal(tips, want[i]) {
				t.Errorf("%s: got %v, want %v", below, tips, want[i])
			}
		}
	}
}
