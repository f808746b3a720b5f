// Package forge_test runs quayside with a real forge on this machine: Gitea, with its API and Git
// over HTTP.
package forge_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quayside/quayside/test/cluster/binaries"
	"github.com/quayside/quayside/test/cluster/harness"
	"github.com/quayside/quayside/test/cluster/process"
)

// TestForge proposes an upgrade twice, and comments on it. There must be one pull request and one comment. Both
// must be updated in place.
func TestForge(t *testing.T) {
	f := start(t)
	owner := f.user(t, "fleet-owner", "all")
	bot := f.user(t, "quayside-bot", "write:repository,write:issue,read:user")
	mallory := f.user(t, "mallory", "write:repository,write:issue")
	f.must(t, owner, http.MethodPost, "user/repos", map[string]any{"name": "fleet", "default_branch": "main"}, nil)
	f.must(t, owner, http.MethodPut, "repos/fleet-owner/fleet/collaborators/quayside-bot", map[string]any{"permission": "write"}, nil)

	w := clone(t, f, "fleet-owner/fleet")
	w.secrets = []string{owner, bot, mallory}
	if err := os.CopyFS(w.dir, os.DirFS(filepath.Join(repository(t), "examples", "quickstart"))); err != nil {
		t.Fatal(err)
	}
	w.commit(t, "begin")
	w.git(t, "push", "-q", strings.Replace(w.remote, "://", "://fleet-owner:"+owner+"@", 1), "main")

	const head = "upgrade/memcached-operator-system/memcached-operator"
	propose := func() (number int64, outcome, commit string) {
		t.Helper()
		out := w.must(t, bot, "propose", "--offline", "--branch", "upgrade", "--push", "origin", "--pull-request", "--forge", "gitea", "-o", "json")
		var got struct {
			Split struct {
				PullRequests []struct {
					Branch, Commit string
					PullRequest    struct {
						Number       int64
						URL, Outcome string
					}
				}
			}
		}
		decode(t, out, &got)
		if len(got.Split.PullRequests) != 1 || got.Split.PullRequests[0].Branch != head {
			t.Fatalf("proposed: %s", out)
		}
		p := got.Split.PullRequests[0]
		if want := fmt.Sprintf("%s/fleet-owner/fleet/pulls/%d", f.url, p.PullRequest.Number); p.PullRequest.URL != want {
			t.Errorf("the pull request is at %q, want %q", p.PullRequest.URL, want)
		}
		return p.PullRequest.Number, p.PullRequest.Outcome, p.Commit
	}
	check := func(want string) pull {
		t.Helper()
		number, outcome, commit := propose()
		if number != 1 || outcome != want {
			t.Fatalf("pull request %d is %s, want 1 to be %s", number, outcome, want)
		}
		var all []pull
		f.must(t, owner, http.MethodGet, "repos/fleet-owner/fleet/pulls?state=all", nil, &all)
		if len(all) != 1 {
			t.Fatalf("got %d pull requests", len(all))
		}
		p := all[0]
		if p.Head.Ref != head || p.Head.SHA != commit || p.Base.Ref != "main" || p.User.Login != "quayside-bot" {
			t.Errorf("the pull request is %+v, want %s at %s", p, head, commit)
		}
		if want := "Update memcached-operator-system/memcached-operator from 0.0.1 to 0.0.2"; p.Title != want || !strings.Contains(p.Body, "memcached-operator") {
			t.Errorf("the title is %q, want %q; the body is %q", p.Title, want, p.Body)
		}
		return p
	}

	first := check("opened")
	if second := check("unchanged"); second != first {
		t.Errorf("after a second run: %+v, before: %+v", second, first)
	}
	f.must(t, owner, http.MethodPatch, "repos/fleet-owner/fleet/pulls/1", map[string]any{"title": "Something else"}, nil)
	check("updated")
	w.write(t, "README.md", "more\n")
	w.commit(t, "go on")
	w.git(t, "push", "-q", strings.Replace(w.remote, "://", "://fleet-owner:"+owner+"@", 1), "main")
	if moved := check("unchanged"); moved.Head.SHA == first.Head.SHA {
		t.Error("the branch is not based on the new main branch")
	}

	// After a pull request was closed, propose opens a new one only if the command names the operator.
	declined := func() {
		t.Helper()
		out := w.must(t, bot, "propose", "--offline", "--branch", "upgrade", "--push", "origin", "--pull-request", "--forge", "gitea", "-o", "json")
		if !strings.Contains(out, `"pullRequests": []`) || !strings.Contains(out, `"code": "declined"`) {
			t.Fatalf("proposed: %s", out)
		}
	}
	f.must(t, owner, http.MethodPatch, "repos/fleet-owner/fleet/pulls/1", map[string]any{"state": "closed"}, nil)
	declined()
	f.must(t, owner, http.MethodDelete, "repos/fleet-owner/fleet/branches/"+strings.ReplaceAll(head, "/", "%2F"), nil, nil)
	w.git(t, "branch", "-q", "-D", head)
	declined()
	var open []pull
	w.must(t, bot, "propose", "memcached-operator-system/memcached-operator", "--offline", "--branch", "upgrade", "--push", "origin", "--pull-request", "--forge", "gitea")
	if f.must(t, owner, http.MethodGet, "repos/fleet-owner/fleet/pulls?state=open", nil, &open); len(open) != 1 || open[0].Number != 2 {
		t.Fatalf("named, these are open: %+v", open)
	}
	f.must(t, owner, http.MethodPatch, "repos/fleet-owner/fleet/pulls/2", map[string]any{"state": "closed"}, nil)
	f.must(t, owner, http.MethodPatch, "repos/fleet-owner/fleet/pulls/1", map[string]any{"state": "open"}, nil)

	// Another user has already written a comment with the marker of quayside's comment.
	f.must(t, mallory, http.MethodPost, "repos/fleet-owner/fleet/issues/1/comments", map[string]any{"body": "<!-- quayside:diff -->\nnothing to see here"}, nil)
	w.git(t, "checkout", "-q", head)
	comment := func(want string, exit int) string {
		t.Helper()
		_, talk, code := w.run(t, bot, "diff", "--offline", "--base", "main", "--exit-zero", "--comment", "1", "--forge", "gitea")
		if code != exit || !strings.Contains(talk, "comment on pull request 1: "+want+"\n") {
			t.Fatalf("exit code %d, want %d and the comment %s: %s", code, exit, want, talk)
		}
		var all []struct {
			Body string
			User struct{ Login string }
		}
		f.must(t, owner, http.MethodGet, "repos/fleet-owner/fleet/issues/1/comments", nil, &all)
		if len(all) != 2 || all[0].User.Login != "mallory" || !strings.HasSuffix(all[0].Body, "nothing to see here") || all[1].User.Login != "quayside-bot" {
			t.Fatalf("the comments are %+v", all)
		}
		return all[1].Body
	}
	before := comment("opened", 0)
	if !strings.HasPrefix(before, "<!-- quayside:diff -->\n### quayside:") || !strings.Contains(before, "0.0.2") {
		t.Errorf("the comment is %q", before)
	}
	comment("unchanged", 0)
	w.must(t, "", "remove", "vault/vault", "--offline", "--render")
	w.commit(t, "remove vault")
	// The policy of the example denies the upgrade, but the comment is written nevertheless.
	if after := comment("updated", 4); after == before {
		t.Error("the comment does not have the current changes of the branch")
	}

	// An insufficient token causes an error message, but the exit code is that of the policy.
	for token, say := range map[string]string{"0123456789abcdef0123456789abcdef01234567": "401", f.token(t, "quayside-bot", "read:repository,read:issue"): "GIT_TOKEN lacks permission"} {
		w.secrets = append(w.secrets, token)
		w.write(t, "README.md", say)
		_, talk, code := w.run(t, token, "diff", "--offline", "HEAD~1", "--exit-zero", "--comment", "1", "--forge", "gitea")
		if code != 4 || !strings.Contains(talk, say) {
			t.Errorf("exit code %d, want 4 and %q: %s", code, say, talk)
		}
	}
}

// TestPullRequestEnds merges one pull request automatically, and closes another pull request whose upgrade a
// person has made by hand. Both branches are deleted.
func TestPullRequestEnds(t *testing.T) {
	f := start(t)
	owner := f.user(t, "fleet-owner", "all")
	bot := f.user(t, "quayside-bot", "write:repository,write:issue,read:user")
	for name, settings := range map[string]string{"automatic": "automerge: {maxSeverity: critical}", "manual": "draft: true"} {
		f.must(t, owner, http.MethodPost, "user/repos", map[string]any{"name": name, "default_branch": "main"}, nil)
		f.must(t, owner, http.MethodPut, "repos/fleet-owner/"+name+"/collaborators/quayside-bot", map[string]any{"permission": "write"}, nil)
		f.must(t, owner, http.MethodPost, "repos/fleet-owner/"+name+"/labels", map[string]any{"name": "operators", "color": "#00aabb"}, nil)
		w := clone(t, f, "fleet-owner/"+name)
		w.secrets = []string{owner, bot}
		if err := os.CopyFS(w.dir, os.DirFS(filepath.Join(repository(t), "examples", "quickstart"))); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(w.dir, "quayside.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		w.write(t, "quayside.yaml", strings.Replace(string(data), "\nspec:", "\nspec:\n  propose: {labels: [operators], reviewers: [fleet-owner], "+settings+"}", 1))
		w.commit(t, "begin")
		main := strings.Replace(w.remote, "://", "://fleet-owner:"+owner+"@", 1)
		w.git(t, "push", "-q", main, "main")
		propose := func() string {
			t.Helper()
			_, talk, code := w.run(t, bot, "propose", "--offline", "--push", "origin", "--pull-request", "--forge", "gitea")
			if code != 0 {
				t.Fatalf("%s: exit code %d: %s", name, code, talk)
			}
			return talk
		}
		var p struct {
			Title, State string
			Merged       bool
			Labels       []struct{ Name string }
			Reviewers    []struct{ Login string } `json:"requested_reviewers"`
		}
		get := func() { f.must(t, owner, http.MethodGet, "repos/fleet-owner/"+name+"/pulls/1", nil, &p) }
		talk := propose()
		for range 100 { // Gitea checks for conflicts in the background
			if get(); name == "manual" || p.Merged {
				break
			}
			time.Sleep(100 * time.Millisecond)
			talk = propose()
		}
		if len(p.Labels) != 1 || len(p.Reviewers) != 1 || p.Merged != (name == "automatic") || strings.HasPrefix(p.Title, "WIP: ") != (name == "manual") {
			t.Fatalf("%s: the pull request is %+v: %s", name, p, talk)
		}
		if name == "manual" {
			w.must(t, "", "resolve", "--upgrade", "--render", "--offline")
			w.commit(t, "by hand")
			w.git(t, "push", "-q", main, "main")
		} else {
			w.git(t, "pull", "-q", main, "main")
		}
		const head = "upgrade/memcached-operator-system/memcached-operator"
		limit := time.Now().Add(20 * time.Second) // Gitea closes it in the background
		if talk := propose(); !strings.Contains(talk, "deleted branch "+head) {
			t.Errorf("%s: the branch is not deleted: %s", name, talk)
		}
		for get(); p.State == "open" && time.Now().Before(limit); get() {
			time.Sleep(100 * time.Millisecond)
		}
		if p.State != "closed" {
			t.Errorf("%s: the pull request is %s", name, p.State)
		}
	}
}

// pull is a pull request as returned by the server.
type pull struct {
	Number      int64
	Title, Body string
	Updated     string `json:"updated_at"`
	User        struct{ Login string }
	Head        struct{ Ref, SHA string }
	Base        struct{ Ref string }
}

// server is a running forge.
type server struct {
	url, program, dir string
}

// start runs Gitea with its own database until the test ends.
func start(t *testing.T) server {
	t.Helper()
	bin := harness.Require(t, "gitea")
	free, err := harness.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	f := server{url: fmt.Sprintf("http://127.0.0.1:%d", free[0]), program: filepath.Join(bin, "gitea"), dir: t.TempDir()}
	conf := filepath.Join(f.dir, "custom", "conf")
	if err := os.MkdirAll(conf, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(conf, "app.ini"), fmt.Appendf(nil, settings, f.url, free[0], filepath.Join(bin, "static"), rand.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	f.admin(t, "migrate")
	p, err := process.Start(process.Spec{Name: "gitea", Args: []string{f.program, "--work-path", f.dir, "web"}, Env: f.env()}, f.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.Tail(30))
		}
		if err := p.Stop(20 * time.Second); err != nil {
			t.Error(err)
		}
	})
	for range 300 {
		if err := p.Ended(); err != nil {
			t.Fatal(err)
		}
		if got, err := http.Get(f.url + "/api/v1/version"); err == nil {
			got.Body.Close()
			return f
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("no response from gitea:\n%s", p.Tail(30))
	return f
}

const settings = `RUN_MODE = prod
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
ROOT_URL = %s/
HTTP_PORT = %d
STATIC_ROOT_PATH = %s
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
[security]
INSTALL_LOCK = true
SECRET_KEY = %s
PASSWORD_HASH_ALGO = pbkdf2$1$8
[log]
LEVEL = Warn
[actions]
ENABLED = false
[indexer]
ISSUE_INDEXER_TYPE = db
[queue]
TYPE = channel
`

// env isolates the server from the user's Git configuration.
func (f server) env() []string { return []string{"HOME=" + f.dir, "GIT_CONFIG_NOSYSTEM=1"} }

// admin runs a command of Gitea and returns its last line of output.
func (f server) admin(t *testing.T, args ...string) string {
	t.Helper()
	var out, talk bytes.Buffer
	cmd := exec.CommandContext(t.Context(), f.program, append([]string{"--work-path", f.dir}, args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(cmd.Environ(), f.env()...), &out, &talk
	if err := cmd.Run(); err != nil {
		t.Fatalf("gitea %q: %v\n%s%s", args, err, out.String(), talk.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[len(lines)-1]
}

// user creates a user and returns a token for it.
func (f server) user(t *testing.T, name, scopes string) string {
	t.Helper()
	f.admin(t, "admin", "user", "create", "--username", name, "--random-password", "--must-change-password=false", "--email", name+"@example.com")
	return f.token(t, name, scopes)
}

func (f server) token(t *testing.T, name, scopes string) string {
	t.Helper()
	token := f.admin(t, "admin", "user", "generate-access-token", "--raw", "--username", name, "--token-name", rand.Text(), "--scopes", scopes)
	if len(token) != 40 {
		t.Fatalf("the token has %d characters", len(token))
	}
	return token
}

// must sends a request to the API with a token.
func (f server) must(t *testing.T, token, method, path string, body, out any) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, f.url+"/api/v1/"+path, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "token "+token)
	req.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode > 299 {
		t.Fatalf("%s %s: %s %v\n%s", method, path, got.Status, err, text)
	}
	if out != nil {
		decode(t, string(text), out)
	}
}

func decode(t *testing.T, text string, out any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), out); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// work is a repository with the program under test.
type work struct {
	dir, remote, program string
	secrets              []string // must not appear in output
}

func repository(t *testing.T) string {
	t.Helper()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "..", "..")
}

// clone returns an empty repository with a remote, and builds the program.
func clone(t *testing.T, f server, project string) *work {
	t.Helper()
	w := &work{dir: t.TempDir(), remote: f.url + "/" + project + ".git", program: filepath.Join(t.TempDir(), "quayside")}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", w.program, "./cmd/quayside")
	cmd.Dir = repository(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building quayside: %v\n%s", err, out)
	}
	w.git(t, "init", "-q", "-b", "main")
	w.git(t, "remote", "add", "origin", w.remote)
	return w
}

func (w *work) env() []string {
	return []string{
		"HOME=" + filepath.Dir(w.program), "XDG_CACHE_HOME=" + filepath.Dir(w.program), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=bot", "GIT_AUTHOR_EMAIL=bot@example.com", "GIT_COMMITTER_NAME=bot", "GIT_COMMITTER_EMAIL=bot@example.com",
	}
}

func (w *work) git(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Env = w.dir, append(cmd.Environ(), w.env()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
}

func (w *work) commit(t *testing.T, message string) {
	t.Helper()
	w.git(t, "add", "-A")
	w.git(t, "commit", "-q", "-m", message)
}

func (w *work) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs quayside with a token, and fails the test if a secret appears in its output or files.
func (w *work) run(t *testing.T, token string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, talk bytes.Buffer
	cmd := exec.CommandContext(t.Context(), w.program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, &out, &talk
	cmd.Env = append(cmd.Environ(), append(w.env(), "GIT_TOKEN="+token)...)
	_ = cmd.Run() // the exit code is checked instead
	kept, err := os.ReadFile(filepath.Join(w.dir, ".git", "config"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{out.String(), talk.String(), string(kept)} {
		if slices.ContainsFunc(w.secrets, func(secret string) bool { return strings.Contains(text, secret) }) {
			t.Errorf("the output of quayside %q contains a token", args)
		}
	}
	return out.String(), talk.String(), cmd.ProcessState.ExitCode()
}

func (w *work) must(t *testing.T, token string, args ...string) string {
	t.Helper()
	out, talk, code := w.run(t, token, args...)
	if code != 0 {
		t.Fatalf("quayside %q: exit code %d\n%s%s", args, code, out, talk)
	}
	return out
}
