package gitrepo_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quayside/quayside/internal/gitrepo"
)

// installHook installs a hook in a repository.
func installHook(t *testing.T, dir, name, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the scripts are for a shell")
	}
	write(t, dir, ".git/hooks/"+name, "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(filepath.Join(dir, ".git", "hooks", name), 0o755); err != nil {
		t.Fatal(err)
	}
}

// repositoryState returns everything that a commit on a branch must not change.
func repositoryState(t *testing.T, dir string) string {
	t.Helper()
	out := git(t, dir, "status", "--porcelain", "--branch") + git(t, dir, "worktree", "list")
	for _, name := range []string{"HEAD", "index"} {
		data, err := os.ReadFile(filepath.Join(dir, ".git", name))
		if err != nil {
			t.Fatal(err)
		}
		out += gitrepo.HashOf(data)
	}
	return out
}

// TestCommit checks that the user's filters, hooks, signatures and settings apply to a commit. The temporary
// work tree must be removed, and Git's variables in the environment must have no effect.
func TestCommit(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(t *testing.T, dir string)
		show []string
		want string
		err  string
	}{
		"filter": {
			func(t *testing.T, dir string) {
				git(t, dir, "config", "filter.loud.clean", "tr a-z A-Z")
				write(t, dir, "a/.gitattributes", "*.yaml filter=loud\n")
				git(t, dir, "add", "-A")
				git(t, dir, "commit", "-q", "-m", "attributes")
			},
			[]string{"show", "topic:a/one.yaml"},
			"NEW", "",
		},
		"hook that changes": {
			func(t *testing.T, dir string) {
				installHook(t, dir, "commit-msg", `echo "Reviewed: $(cat a/one.yaml) $(git diff --cached --name-only | wc -l)" >>"$1"`)
			},
			[]string{"log", "-1", "--format=%s %b", "topic"},
			"change Reviewed: new 3", "",
		},
		"hook that refuses": {
			func(t *testing.T, dir string) { installHook(t, dir, "pre-commit", "echo not today >&2; exit 1") },
			[]string{"branch", "--list", "topic"},
			"", "not today",
		},
		"hooks elsewhere": {
			func(t *testing.T, dir string) {
				installHook(t, dir, "pre-commit", "echo from elsewhere >&2; exit 1")
				git(t, dir, "config", "core.hooksPath", filepath.Join(dir, ".git", "hooks"))
			},
			[]string{"branch", "--list", "topic"},
			"", "from elsewhere",
		},
		"signature": {
			func(t *testing.T, dir string) {
				write(t, dir, ".git/sign", "#!/bin/sh\ncat >/dev/null\necho >&2; echo '[GNUPG:] SIG_CREATED ' >&2\necho '-----BEGIN PGP SIGNATURE-----'\necho\ndate +%N\necho '-----END PGP SIGNATURE-----'\n")
				if err := os.Chmod(filepath.Join(dir, ".git", "sign"), 0o755); err != nil {
					t.Fatal(err)
				}
				git(t, dir, "config", "gpg.program", filepath.Join(dir, ".git", "sign"))
				git(t, dir, "config", "commit.gpgSign", "true")
			},
			[]string{"log", "-1", "--format=%s %an %ae %at", "topic"},
			"change A a@example.com 1", "",
		},
		"included configuration": {
			func(t *testing.T, dir string) {
				write(t, dir, ".git/more", "[user]\n\tname = More\n")
				git(t, dir, "config", "include.path", "more")
			},
			[]string{"log", "-1", "--format=%an", "topic"},
			"A", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newRepository(t)
			write(t, dir, "a/run.yaml", "1")
			if err := os.Chmod(filepath.Join(dir, "a", "run.yaml"), 0o755); err != nil {
				t.Fatal(err)
			}
			git(t, dir, "add", "-A")
			git(t, dir, "commit", "-q", "-m", "more")
			c.set(t, dir)
			before := repositoryState(t, dir)
			t.Setenv("TMPDIR", t.TempDir())
			change := commitOf("new")
			change.Changes = append(change.Changes, gitrepo.FileEdit{Path: "a/b/two.yaml", Removed: true}, gitrepo.FileEdit{Path: "a/run.yaml", Data: []byte("2")})

			r := open(t, dir)
			at := t.TempDir()
			for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"} {
				t.Setenv(name, filepath.Join(at, name))
			}
			v, err := r.Branch(t.Context(), "topic", revision(t, r, "HEAD"), change)
			again, againErr := r.Branch(t.Context(), "topic", revision(t, r, "HEAD"), change)
			for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"} {
				os.Unsetenv(name)
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if c.err == "" {
				if again != v || againErr != nil {
					t.Errorf("a second call gives %v, %v, want %s", again, againErr, v)
				}
				if got := git(t, dir, "ls-tree", "-r", "--format=%(objectmode) %(path)", "topic", "a/run.yaml", "a/b"); got != "100755 a/run.yaml" {
					t.Errorf("the tree is %q", got)
				}
			}
			if got := git(t, dir, c.show...); got != c.want {
				t.Errorf("git %q: %q, want %q", c.show, got, c.want)
			}
			if after := repositoryState(t, dir); after != before {
				t.Errorf("the repository was\n%s\nis\n%s", before, after)
			}
			for _, where := range []string{at, os.TempDir()} {
				if left, _ := os.ReadDir(where); len(left) != 0 {
					t.Errorf("leftover files: %v", left)
				}
			}
			checkRepository(t, dir)
		})
	}
}

// TestCommitStaysInside checks that a commit does not write through symbolic links.
func TestCommitStaysInside(t *testing.T) {
	for _, hooks := range []bool{false, true} {
		commitStaysInside(t, hooks)
	}
}

func commitStaysInside(t *testing.T, hooks bool) {
	t.Helper()
	dir, outside := newRepository(t), t.TempDir()
	if hooks {
		installHook(t, dir, "pre-commit", "exit 0")
	}
	for name, target := range map[string]string{"out": outside, "file.yaml": filepath.Join(outside, "victim")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "links")
	r := open(t, dir)
	if _, err := r.Branch(t.Context(), "dir", revision(t, r, "HEAD"), gitrepo.Commit{Message: "x", Author: gitrepo.Author{Name: "A", Email: "a"}, When: time.Unix(1, 0), Changes: []gitrepo.FileEdit{{Path: "out/x"}}}); err == nil || !strings.Contains(err.Error(), "out is a symbolic link") {
		t.Errorf("a directory that is a link: %v", err)
	}
	if _, err := r.Branch(t.Context(), "file", revision(t, r, "HEAD"), gitrepo.Commit{Message: "x", Author: gitrepo.Author{Name: "A", Email: "a"}, When: time.Unix(1, 0), Changes: []gitrepo.FileEdit{{Path: "file.yaml", Data: []byte("1")}}}); err != nil {
		t.Error(err)
	}
	if got := git(t, dir, "ls-tree", "--format=%(objectmode)", "file", "file.yaml"); got != "100644" {
		t.Errorf("the file's mode is %s", got)
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("written outside: %v", left)
	}
}

// TestPush checks that Push runs the hook, reports whether the remote changed, and fails if the remote
// branch is not at the expected commit.
func TestPush(t *testing.T) {
	dir, remote := newRepository(t), t.TempDir()
	git(t, remote, "init", "-q", "--bare")
	git(t, dir, "remote", "add", "origin", remote)
	installHook(t, dir, "pre-push", `echo "$1" >>.git/pushed; test ! -e .git/closed || { echo closed today >&2; exit 1; }`)
	r := open(t, dir)
	push := func(to, old string, want bool, fault string) {
		t.Helper()
		moved, err := r.Push(t.Context(), to, "topic/a", "", old)
		if moved != want || fault == "" && err != nil || fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
			t.Errorf("got %v, %v, want %v, %q", moved, err, want, fault)
		}
	}
	branch := func(content string) string {
		t.Helper()
		hash, err := r.Branch(t.Context(), "topic/a", revision(t, r, "HEAD"), commitOf(content))
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	listed := func() map[string]string {
		t.Helper()
		out := map[string]string{}
		tips, err := open(t, dir).RemoteBranches(t.Context(), remote, "topic", "")
		if err != nil {
			t.Fatal(err)
		}
		for name, tip := range tips {
			out[name] = tip.Hash()
		}
		return out
	}
	if got := listed(); len(got) != 0 {
		t.Errorf("branches of an empty remote: %v", got)
	}
	one := branch("1")
	push("origin", "", true, "")
	push("origin", one, false, "")
	push(remote, one, false, "")
	two := branch("2")
	push("origin", "", false, "the remote branch was changed during this run")
	push("origin", one, true, "")
	if got := listed(); got["topic/a"] != two || len(got) != 1 {
		t.Errorf("the remote has %v, want %s", got, two)
	}
	branch("3")
	write(t, dir, ".git/closed", "")
	push("origin", two, false, "closed today")
	if data, err := os.ReadFile(filepath.Join(dir, ".git", "pushed")); err != nil || strings.Count(string(data), "origin\n") < 3 {
		t.Errorf("the hook ran for %q, %v", data, err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.Remove(filepath.Join(dir, ".git/closed")))
	person := t.TempDir()
	git(t, person, "clone", "-q", "-b", "topic/a", remote, ".")
	git(t, person, "commit", "-q", "--allow-empty", "-m", "mine")
	git(t, person, "push", "-q", "origin", "topic/a", "topic/a:other")
	if err := r.DeleteRemoteBranch(t.Context(), "origin", "topic/a", "", two); err == nil {
		t.Error("the commit of a person was deleted")
	}
	mine := listed()["topic/a"] // fetched, without a reference
	if mine != git(t, person, "rev-parse", "HEAD") {
		t.Errorf("the remote has %s", mine)
	}
	check(r.DeleteRemoteBranch(t.Context(), "origin", "topic/a", "", mine))
	if got := listed(); len(got) != 0 {
		t.Errorf("remaining branches: %v", got)
	}
}

// TestToken checks that Git sends the token to the host of the URL, but not to a host that this host redirects
// to.
func TestToken(t *testing.T) {
	dir := newRepository(t)
	installHook(t, dir, "pre-push", "exit 0")
	asking := func(sent *string) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if user, password, ok := req.BasicAuth(); ok {
				*sent = user + ":" + password
			}
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}))
	}
	var got, elsewhere string
	server, other := asking(&got), asking(&elsewhere)
	defer server.Close()
	defer other.Close()
	leading := httptest.NewServer(http.RedirectHandler(other.URL+"/x/info/refs?service=git-receive-pack", http.StatusFound))
	defer leading.Close()
	r := open(t, dir)
	for _, url := range []string{server.URL, leading.URL} {
		if _, err := r.Push(t.Context(), url+"/x", "main", "TOKEN", ""); err == nil || strings.Contains(err.Error(), "TOKEN") {
			t.Errorf("got %v", err)
		}
	}
	if got != "x-access-token:TOKEN" || elsewhere != "" {
		t.Errorf("sent %q, elsewhere %q", got, elsewhere)
	}
}
