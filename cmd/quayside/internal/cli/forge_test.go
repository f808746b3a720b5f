package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/clitest"
	"github.com/quayside/quayside/internal/testing/forgetest"
)

// inJob runs quayside as a CI job of a forge does, with the token in GIT_TOKEN. It fails the test if the output
// contains the token.
func inJob(t *testing.T, s *forgetest.Server, dir string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cache := t.TempDir()
	env := []string{"XDG_CACHE_HOME=" + cache, "HOME=" + cache, "GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_TOKEN=" + forgetest.Token}
	for key, value := range s.Env() {
		env = append(env, key+"="+value)
	}
	args = append([]string{"-C", dir}, args...)
	code := cli.Main(cli.Parts, args, nil, &stdout, &stderr, env)
	if err := clitest.Conforms(cli.Parts, args, stdout.Bytes()); err != nil {
		t.Errorf("quayside %q: %v", args, err)
	}
	if strings.Contains(stdout.String()+stderr.String(), forgetest.Token) {
		t.Errorf("quayside %q shows the token", args)
	}
	return outcome{code, stdout.String(), stderr.String()}
}

// forgeServer returns the script command 'forge KIND', which starts a forge with seven pull
// requests, and sets the variables of its jobs.
func forgeServer(t *testing.T) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		s := forgetest.New(t, args[0])
		s.Have(make([]forgetest.Pull, 7), nil)
		for key, value := range s.Env() {
			ts.Setenv(key, value)
		}
		ts.Setenv("GIT_TOKEN", forgetest.Token)
	}
}

// forgeKinds returns the kinds of forges. With -short it returns only one: package forge has tests of
// every kind.
func forgeKinds() []string {
	if testing.Short() {
		return []string{"github"}
	}
	return []string{"github", "gitlab", "gitea"}
}

// TestPullRequests checks that the first run opens a pull request for each operator, and the next
// run changes none. Only one kind of forge is tested with all environments.
func TestPullRequests(t *testing.T) {
	for _, kind := range forgeKinds() {
		t.Run(kind, func(t *testing.T) {
			s := forgetest.New(t, kind)
			bare, work := newFleet(t)
			gitIn(t, work, "remote", "add", "origin", bare)
			args, want := []string{"propose", "--offline", "--branch", "upgrade", "--push", "origin", "--pull-request"}, 2
			if kind == "github" {
				args, want = append(args, "--all"), 4
			} else {
				work = filepath.Join(work, slices.Sorted(maps.Keys(environments()))[0])
			}
			for _, outcome := range []string{"opened", "unchanged"} {
				got := inJob(t, s, work, args...)
				if got.code != 0 || strings.Count(got.stderr, ": "+outcome+"\n") != want {
					t.Fatalf("exit code %d, want %d pull requests to be %s:\n%s", got.code, want, outcome, got.stderr)
				}
			}
			pulls := s.Pulls()
			if len(pulls) != want {
				t.Fatalf("got %d pull requests, want %d", len(pulls), want)
			}
			for _, p := range pulls {
				commit := gitIn(t, bare, "log", "-1", "--format=%s", p.Head)
				if p.Base != "main" || p.Title == "" || strings.TrimSpace(commit) != p.Title || !strings.HasPrefix(p.Body, "<!-- quayside:diff -->\n") {
					t.Errorf("pull request %+v for the commit %q", p, commit)
				}
			}
			if kind != "github" {
				return
			}
			args = slices.DeleteFunc(args, func(arg string) bool { return arg == "--all" })
			got := inJob(t, s, filepath.Join(work, "envs/dev"), append(args, "--into", "release", "-o", "json")...)
			var out struct {
				Split struct {
					PullRequests []struct {
						PullRequest struct {
							Number  int
							Outcome string
						}
					}
				}
			}
			if err := json.Unmarshal([]byte(got.stdout), &out); err != nil {
				t.Fatal(err)
			}
			var numbers []int
			for _, p := range out.Split.PullRequests {
				if numbers = append(numbers, p.PullRequest.Number); p.PullRequest.Outcome != "opened" {
					t.Errorf("into another branch it is %s", p.PullRequest.Outcome)
				}
			}
			if d := cmp.Diff([]int{5, 6}, numbers); d != "" {
				t.Errorf("numbers (-want +got):\n%s", d)
			}
		})
	}
}

// TestDeclinedPullRequests checks that a pull request that a person closed is opened again only if a person
// names its operator, and that other pull requests are not affected.
func TestDeclinedPullRequests(t *testing.T) {
	for _, kind := range forgeKinds() {
		s := forgetest.New(t, kind)
		bare, work := newFleet(t)
		gitIn(t, work, "remote", "add", "origin", bare)
		dir := filepath.Join(work, slices.Sorted(maps.Keys(environments()))[0])
		run := func(code int, args ...string) outcome {
			t.Helper()
			got := inJob(t, s, dir, append([]string{"propose", "--offline", "--push", "origin", "--pull-request"}, args...)...)
			if got.code != code {
				t.Fatalf("%s: %q: exit code %d, want %d:\n%s", kind, args, got.code, code, got.stderr)
			}
			return got
		}
		run(0)
		first := s.Pulls()[0]
		operator := strings.Join(strings.Split(first.Head, "/")[2:], "/")
		s.Change(1, func(p *forgetest.Pull) { p.Closed, p.Gone = true, true })
		gitIn(t, bare, "branch", "-D", first.Head)
		gitIn(t, work, "branch", "-D", first.Head)
		for range 2 {
			got := run(0)
			if n := len(s.Pulls()); n != 2 || !strings.Contains(got.stderr, ": pull request 1 was closed without merging: reopen it, or name the operator to propose it again [declined]") {
				t.Fatalf("%s: there are %d pull requests:\n%s", kind, n, got.stderr)
			}
			if heads := gitIn(t, bare, "branch", "--format=%(refname:short)"); strings.Contains(heads, first.Head) {
				t.Errorf("%s: the branch is pushed again:\n%s", kind, heads)
			}
		}
		if got := run(0, "--check"); !strings.Contains(got.stdout, "keep\t"+first.Head+"\tpull request 1 was closed without merging: reopen it, or name the operator to propose it again [declined]\n") {
			t.Errorf("%s: the table is\n%s", kind, got.stdout)
		}
		if got := run(0, "-o", "json"); !strings.Contains(got.stdout, `"code": "declined"`) {
			t.Errorf("%s: the output is\n%s", kind, got.stdout)
		}
		run(0, operator)
		if pulls := s.Pulls(); len(pulls) != 3 || pulls[2].Head != first.Head || pulls[2].Title != first.Title {
			t.Fatalf("%s: named, there are %+v", kind, pulls)
		}
		if got := run(0); strings.Contains(got.stderr, "declined") || len(s.Pulls()) != 3 {
			t.Errorf("%s: after it was named:\n%s", kind, got.stderr)
		}

		// With --one-branch, the proposal has other changes and another branch, so it does not count as declined.
		run(0, "--one-branch")
		s.Change(4, func(p *forgetest.Pull) { p.Closed = true })
		if got := run(0, "--one-branch", "-o", "json"); len(s.Pulls()) != 4 || !strings.Contains(got.stdout, `"action": "keep"`) || !strings.Contains(got.stdout, `"code": "declined"`) {
			t.Errorf("%s: one branch:\n%s", kind, got.stdout)
		}

		// A branch that the run itself deletes is not declined.
		mustRun(t, dir, "resolve", "--upgrade", "--render", "--offline")
		commitAll(t, work, "by hand")
		if got := run(0); strings.Count(got.stderr, "deleted branch ") != 2 || !strings.Contains(s.Pulls()[2].Body, "<!-- quayside:withdrawn ") {
			t.Errorf("%s: obsolete: %s\n%s", kind, s.Pulls()[2].Body, got.stderr)
		}
	}
}

// TestDeclinedPromotion checks that a promotion is not proposed again after a person closed its pull request,
// until a person names its operators.
func TestDeclinedPromotion(t *testing.T) {
	s := forgetest.New(t, "github")
	bare, work := newFleet(t)
	gitIn(t, work, "remote", "add", "origin", bare)
	dirs := slices.Sorted(maps.Keys(environments()))
	put(t, filepath.Join(work, dirs[1]), "quayside.yaml", strings.Replace(read(t, filepath.Join(work, dirs[1]), "quayside.yaml"), "\nspec:", "\nspec:\n  follows: dev", 1))
	mustRun(t, filepath.Join(work, dirs[0]), "resolve", "--upgrade", "--render", "--offline")
	commitAll(t, work, "upgrade")
	run := func(args ...string) outcome {
		t.Helper()
		got := inJob(t, s, work, slices.Concat([]string{"propose", "--promote"}, args, []string{"--offline", "--push", "origin", "--pull-request"})...)
		if got.code != 0 {
			t.Fatalf("%q: exit code %d:\n%s", args, got.code, got.stderr)
		}
		return got
	}
	run()
	if n := len(s.Pulls()); n != 1 {
		t.Fatalf("there are %d pull requests", n)
	}
	s.Change(1, func(p *forgetest.Pull) { p.Closed = true })
	got := run("-o", "json")
	for _, want := range []string{`"promoted": 0`, `"reason": "declined"`, `"branch": "` + s.Pulls()[0].Head + `"`} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%s is not in\n%s", want, got.stdout)
		}
	}
	if n := len(s.Pulls()); n != 1 {
		t.Errorf("there are %d pull requests", n)
	}
	run("./"+dirs[0], "./"+dirs[1], "memcached-operator-system/memcached-operator", "--branch", "again")
	if n := len(s.Pulls()); n != 2 {
		t.Errorf("named, there are %d pull requests", n)
	}
}

// TestProposeSettings checks that spec.propose configures new pull requests, and that the automatic
// merge depends on the worst finding.
func TestProposeSettings(t *testing.T) {
	for _, c := range []struct {
		automerge string
		auto      bool
	}{{`{maxSeverity: "off"}`, false}, {"{maxSeverity: critical}", true}, {"{maxSeverity: critical, after: 1d}", false}} {
		s := forgetest.New(t, "github")
		bare, work := newFleet(t)
		gitIn(t, work, "remote", "add", "origin", bare)
		dir := filepath.Join(work, slices.Sorted(maps.Keys(environments()))[0])
		file := filepath.Join(dir, "quayside.yaml")
		data, err := os.ReadFile(file)
		check(t, err)
		settings := "\nspec:\n  propose: {labels: [operators], reviewers: [alice, team/sre], automerge: " + c.automerge + "}"
		check(t, os.WriteFile(file, []byte(strings.Replace(string(data), "\nspec:", settings, 1)), 0o666))
		commitAll(t, work, "settings")
		got := inJob(t, s, dir, "propose", "--offline", "--push", "origin", "--pull-request")
		if got.code != 0 || strings.Contains(got.stderr, "merged automatically") != c.auto {
			t.Fatalf("%s: exit code %d:\n%s", c.automerge, got.code, got.stderr)
		}
		pulls := s.Pulls()
		if len(pulls) != 2 {
			t.Fatalf("%s: got %d pull requests", c.automerge, len(pulls))
		}
		for _, p := range pulls {
			if !slices.Equal(p.Labels, []string{"operators"}) || !slices.Equal(p.Reviewers, []string{"alice", "sre"}) {
				t.Errorf("%s: labels %q, reviewers %q", c.automerge, p.Labels, p.Reviewers)
			}
			if want := gitIn(t, bare, "rev-parse", p.Head); c.auto && p.Auto != strings.TrimSpace(want) || !c.auto && p.Auto != "" {
				t.Errorf("%s: the automatic merge is %q, and the commit %s", c.automerge, p.Auto, want)
			}
		}
	}
}

// TestProposeWindows checks that the automatic merge is on only while the windows permit the merge, and that
// the pull request otherwise names the start of the next window.
func TestProposeWindows(t *testing.T) {
	s := forgetest.New(t, "github")
	bare, work := newFleet(t)
	gitIn(t, work, "remote", "add", "origin", bare)
	dir := filepath.Join(work, slices.Sorted(maps.Keys(environments()))[0])
	file := filepath.Join(dir, "quayside.yaml")
	data, err := os.ReadFile(file)
	check(t, err)
	settings := "\nspec:\n  windows: [{kind: allow, schedule: \"0 22 * * *\", duration: 1h}]\n  propose: {automerge: {maxSeverity: critical}}"
	check(t, os.WriteFile(file, []byte(strings.Replace(string(data), "\nspec:", settings, 1)), 0o666))
	commitAll(t, work, "settings")
	for _, step := range []struct {
		now  string
		open bool
	}{{"2026-12-01T21:59:59Z", false}, {"2026-12-01T22:00:00Z", true}, {"2026-12-01T23:00:00Z", false}, {"2026-12-02T22:59:00Z", true}} {
		got := inJob(t, s, dir, "propose", "--offline", "--push", "origin", "--pull-request", "--now", step.now)
		if got.code != 0 || strings.Contains(got.stderr, "merged automatically when") != step.open {
			t.Fatalf("%s: exit code %d:\n%s", step.now, got.code, got.stderr)
		}
		for _, p := range s.Pulls() {
			if (p.Auto != "") != step.open || strings.Contains(p.Body, "may be merged from 2026-12-0") == step.open {
				t.Errorf("%s: the automatic merge is %q, and the text\n%s", step.now, p.Auto, p.Body)
			}
		}
	}
}

// TestDiffComments checks that each workspace with differences has its own comment.
func TestDiffComments(t *testing.T) {
	s := forgetest.New(t, "github")
	s.Have([]forgetest.Pull{{From: forgetest.Project, Head: "x", Base: "main", Title: "x"}}, nil)
	_, work := newFleet(t)
	gitIn(t, work, "remote", "add", "origin", "/nowhere")
	gitIn(t, work, "checkout", "-q", "-b", "x")
	run := func(code int, says ...string) {
		t.Helper()
		got := inJob(t, s, work, "diff", "--all", "--offline", "--base", "main", "--comment", "1")
		if got.code != code {
			t.Fatalf("exit code %d, want %d: %s", got.code, code, got.stderr)
		}
		for _, say := range says {
			if !strings.Contains(got.stderr, say) {
				t.Errorf("%q is not in %s", say, got.stderr)
			}
		}
	}
	run(0)
	if all := s.Comments(); len(all) != 0 {
		t.Errorf("unexpected comments without differences: %+v", all)
	}
	dir := ""
	for name := range environments() {
		dir = name
		mustRun(t, filepath.Join(work, dir), "remove", "vault/vault", "--render", "--offline")
		break
	}
	run(4, "comment on pull request 1: opened")
	run(4, "comment on pull request 1: unchanged")
	all := s.Comments()
	if len(all) != 1 || !strings.HasPrefix(all[0].Body, "<!-- quayside:diff "+dir+" -->\n## `"+dir+"`\n") {
		t.Fatalf("the comments are %+v", all)
	}
	gitIn(t, work, "checkout", "-q", ".")
	run(0, "comment on pull request 1: updated")
	if all := s.Comments(); len(all) != 1 || !strings.Contains(all[0].Body, "no differences") {
		t.Errorf("comments after the differences were removed: %+v", all)
	}

	// The exit code of the policy takes precedence over the error of the forge.
	mustRun(t, filepath.Join(work, dir), "remove", "vault/vault", "--render", "--offline")
	s.Refuse(func(string, string) int { return 403 })
	run(4, "GIT_TOKEN lacks permission", "refused by the policy")
}

// TestTreeRequests proposes a tree in another repository. There is one pull request, which each run updates.
// After a person closed it, quayside opens another one only for a different tree.
func TestTreeRequests(t *testing.T) {
	for _, kind := range forgeKinds() {
		s := forgetest.New(t, kind)
		bare, work := newFleet(t)
		dir := sendTree(t, bare, work)
		run := func(args ...string) outcome {
			t.Helper()
			got := inJob(t, s, dir, append([]string{"propose", "--offline", "--tree", "--pull-request"}, args...)...)
			if got.code != 0 {
				t.Fatalf("%s: %q: exit code %d:\n%s", kind, args, got.code, got.stderr)
			}
			return got
		}
		run()
		run()
		if pulls := s.Pulls(); len(pulls) != 1 || !strings.HasPrefix(pulls[0].Head, "render/") || !strings.Contains(pulls[0].Body, "etcd") || !slices.Equal(pulls[0].Labels, []string{"trees"}) {
			t.Fatalf("%s: the pull requests are %+v", kind, pulls)
		}
		s.Change(1, func(p *forgetest.Pull) { p.Closed = true })
		if got := run(); !strings.Contains(got.stdout, "keep\t") || !strings.Contains(got.stdout, "pull request 1 was closed without merging: reopen it") || len(s.Pulls()) != 1 {
			t.Errorf("%s: after a person closed it:\n%s", kind, got.stdout)
		}
		mustRun(t, dir, "resolve", "--upgrade", "--offline")
		commitAll(t, work, "upgrade")
		if got := run("-o", "json"); len(s.Pulls()) != 2 || !strings.Contains(got.stdout, `"action": "update"`) {
			t.Errorf("%s: another tree:\n%s", kind, got.stdout)
		}
	}
}

// sendTree changes a fleet so that the tree of its first environment goes to another repository, and
// returns the directory of that environment.
func sendTree(t *testing.T, bare, work string) string {
	t.Helper()
	target := filepath.Join(t.TempDir(), "deploy.git")
	gitIn(t, work, "clone", "-q", "--bare", bare, target)
	dir := filepath.Join(work, slices.Sorted(maps.Keys(environments()))[0])
	put(t, dir, "quayside.yaml", strings.Replace(read(t, dir, "quayside.yaml"), "spec:\n", fmt.Sprintf("spec:\n  output: {repository: %q, path: trees/one}\n  propose: {labels: [trees]}\n", "file://"+target), 1))
	check(t, os.RemoveAll(filepath.Join(dir, "rendered")))
	commitAll(t, work, "the tree goes to another repository")
	return dir
}
