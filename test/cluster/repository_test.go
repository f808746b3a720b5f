package cluster_test

import (
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is a Git repository. If the repository is bare, it is served over HTTP.
type repository struct{ dir, url string }

// inWorkspace creates a repository with the workspace's directory as its work tree.
func inWorkspace(t *testing.T, q quayside) repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := repository{dir: filepath.Join(q.dir, ".git")}
	r.git(t, "", "init", "--quiet", "--initial-branch=main", q.dir)
	return r
}

// newRepository serves an empty repository until the test ends.
func newRepository(t *testing.T) repository {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	root := t.TempDir()
	r := repository{dir: filepath.Join(root, "fleet.git")}
	r.git(t, "", "init", "--quiet", "--bare", "--initial-branch=main", r.dir)
	r.git(t, "", "-C", r.dir, "config", "http.receivepack", "true")
	server := httptest.NewServer(&cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"},
	})
	t.Cleanup(server.Close)
	r.url = server.URL + "/fleet.git"
	return r
}

// commit commits the workspace in dir to main and returns the hash.
func (r repository) commit(t *testing.T, dir, message string) string {
	t.Helper()
	r.git(t, dir, "add", "--all")
	r.git(t, dir, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--allow-empty", "-m", message)
	return r.git(t, dir, "rev-parse", "HEAD")
}

// revert reverts the last commit and returns the hash.
func (r repository) revert(t *testing.T, dir string) string {
	t.Helper()
	r.git(t, dir, "-c", "user.name=test", "-c", "user.email=test@example.com", "revert", "--no-edit", "HEAD")
	return r.git(t, dir, "rev-parse", "HEAD")
}

// git runs git on the bare repository with dir as its work tree.
func (r repository) git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	if dir != "" {
		cmd.Env = append(cmd.Env, "GIT_DIR="+r.dir, "GIT_WORK_TREE="+dir)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
