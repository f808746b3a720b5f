package forge_test

import (
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/forge"
	"github.com/quayside/quayside/internal/testing/forgetest"
)

// forEachKind runs a test against a server of each kind. The client gets the server's address from the
// variables of a CI job.
func forEachKind(t *testing.T, test func(t *testing.T, s *forgetest.Server, c *forge.Client)) {
	for _, kind := range forge.Kinds() {
		t.Run(kind, func(t *testing.T) {
			s := forgetest.New(t, kind)
			at, err := forge.Locate("", "../origin.git", getenv(s.Env()))
			if err != nil {
				t.Fatal(err)
			}
			if want := (forge.Address{Kind: kind, API: s.API(), Project: forgetest.Project}); at != want {
				t.Fatalf("the repository of the job is %v, want %v", at, want)
			}
			c, err := forge.New(at, forgetest.Token)
			if err != nil {
				t.Fatal(err)
			}
			test(t, s, c)
		})
	}
}

func getenv(env map[string]string) func(string) string {
	return func(key string) string { return env[key] }
}

// TestPropose opens a pull request, proposes it again without a change, and updates it. Other authors also
// have pull requests.
func TestPropose(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *forgetest.Server, c *forge.Client) {
		others := []forgetest.Pull{
			{From: forgetest.Project, Head: "upgrade/a", Base: "release", Title: "into another branch"},
			{From: "mallory/fleet", Head: "upgrade/a", Base: "main", Title: "from a fork"},
			{From: "", Head: "upgrade/a", Base: "main", Title: "from a fork that is gone"},
			{From: forgetest.Project, Head: "upgrade/a", Base: "main", Title: "closed", Closed: true},
			{From: forgetest.Project, Head: "upgrade/ab", Base: "main", Title: "another branch"},
		}
		s.Have(others, nil)
		want := s.Pulls()
		p := forge.Pull{Head: "upgrade/a", Title: "Update a", Body: "one\ntwo\n"}
		for _, step := range []struct {
			title, base string
			outcome     forge.Outcome
			writes      int
		}{
			{"Update a", "", forge.Opened, 1},
			{"Update a", "main", forge.Unchanged, 0},
			{"Update a and b", "", forge.Updated, 1},
			{"Update a and b", "", forge.Unchanged, 0},
		} {
			p.Title, p.Base = step.title, step.base
			got, err := c.Propose(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if got.Number != 6 || got.Outcome != step.outcome || !strings.HasSuffix(got.URL, "/6") {
				t.Errorf("got %+v, want %s of number 6", got, step.outcome)
			}
			if w := s.Writes(); len(w) != step.writes {
				t.Errorf("%s: %d writes, want %d: %q", step.outcome, len(w), step.writes, w)
			}
		}
		want = append(want, forgetest.Pull{Number: 6, From: forgetest.Project, Head: "upgrade/a", Base: "main", Title: "Update a and b", Body: "one\ntwo\n"})
		if d := cmp.Diff(want, s.Pulls()); d != "" {
			t.Errorf("pull requests (-want +got):\n%s", d)
		}
	})
}

// TestDeclined checks that Declined finds pull requests that were closed without merging. It must compare
// the branches and the proposal, search further pages, and find a pull request whose branch was deleted.
func TestDeclined(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *forgetest.Server, c *forge.Client) {
		p := forge.Pull{Head: "upgrade/a", Title: "Update a", Body: "text\n", Proposal: "sha256:1"}
		propose := func(want int64) {
			t.Helper()
			got, err := c.Propose(t.Context(), p)
			if err != nil || got.Number != want {
				t.Fatalf("got %+v, %v, want number %d", got, err, want)
			}
		}
		declined := func(step string, p forge.Pull, want int64) {
			t.Helper()
			if got, err := c.Declined(t.Context(), p); err != nil || got != want {
				t.Errorf("%s: got %d, %v, want %d", step, got, err, want)
			}
		}
		declined("none", p, 0)
		propose(1)
		declined("open", p, 0)
		s.Change(1, func(p *forgetest.Pull) { p.Closed, p.Gone = true, true })
		for range 5 { // on the third page of those that are closed
			s.Have([]forgetest.Pull{{From: "mallory/fleet", Head: "upgrade/a", Base: "main", Title: "from a fork", Body: s.Pulls()[0].Body, Closed: true}}, nil)
		}
		declined("closed", p, 1)
		other := p
		other.Proposal = "sha256:12"
		declined("another proposal", other, 0)
		other = p
		other.Base = "release"
		declined("into another branch", other, 0)
		other = p
		other.Head = "upgrade/b"
		declined("another branch", other, 0)

		propose(7)
		declined("open again", p, 0)
		s.Change(7, func(p *forgetest.Pull) { p.Closed, p.Merged = true, true })
		s.Change(1, func(p *forgetest.Pull) { p.Merged = true })
		declined("merged", p, 0)

		// The program deletes the branch: this does not count as a decision of a person.
		propose(8)
		s.Writes()
		for _, writes := range []int{1, 0} {
			if err := c.Withdraw(t.Context(), p); err != nil || len(s.Writes()) != writes {
				t.Errorf("withdrawn: %v, want %d writes", err, writes)
			}
		}
		s.Change(8, func(p *forgetest.Pull) { p.Closed = true })
		declined("withdrawn", p, 0)
		if got := s.Pulls()[7]; got.Title != p.Title || !strings.HasPrefix(got.Body, "text\n") {
			t.Errorf("withdrawn: %+v", got)
		}
	})
}

// TestDecorations checks that Propose sets labels, reviewers and the draft only when it opens the pull request.
func TestDecorations(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *forgetest.Server, c *forge.Client) {
		p := forge.Pull{Head: "a", Base: "main", Title: "t", Labels: []string{"operators", "nightly"}, Reviewers: []string{"alice", "team/sre"}, Draft: true}
		want := forgetest.Pull{Number: 1, From: forgetest.Project, Head: "a", Base: "main", Title: "t", Labels: p.Labels, Reviewers: []string{"alice", "sre"}, Draft: true}
		if prefix := map[string]string{"gitea": "WIP: ", "gitlab": "Draft: "}[path.Base(t.Name())]; prefix != "" {
			want.Title, want.Draft = prefix+"t", false
		}
		if path.Base(t.Name()) == "gitlab" {
			p.Reviewers, want.Reviewers = []string{"alice"}, []string{"5"}
		}
		for _, outcome := range []forge.Outcome{forge.Opened, forge.Unchanged, forge.Updated} {
			if outcome == forge.Updated {
				p.Title, want.Title = "t2", want.Title+"2"
			}
			got, err := c.Propose(t.Context(), p)
			if err != nil || got.Outcome != outcome {
				t.Fatalf("got %+v, %v, want %s", got, err, outcome)
			}
			if d := cmp.Diff([]forgetest.Pull{want}, s.Pulls()); d != "" {
				t.Errorf("%s (-want +got):\n%s", outcome, d)
			}
		}
	})
}

// TestRefusedDecorations checks that Propose opens a pull request although the forge refuses its reviewers.
func TestRefusedDecorations(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *forgetest.Server, c *forge.Client) {
		s.Refuse(func(method, path string) int {
			if strings.HasSuffix(path, "/requested_reviewers") || strings.HasSuffix(path, "users") {
				return http.StatusUnprocessableEntity
			}
			return 0
		})
		got, err := c.Propose(t.Context(), forge.Pull{Head: "a", Base: "main", Title: "t", Reviewers: []string{"nobody"}})
		if err != nil || got.Outcome != forge.Opened || got.NotSet == "" {
			t.Errorf("got %+v, %v, want an open pull request and the reason", got, err)
		}
	})
}

// TestAutomerge checks that the automatic merge is enabled only when the proposal is old enough, and that
// CancelAutomerge disables it before another commit.
func TestAutomerge(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *forgetest.Server, c *forge.Client) {
		day := 24 * time.Hour
		start := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
		for _, step := range []struct {
			after   time.Duration
			title   string
			allowed bool
			commit  string
			outcome forge.Outcome
			auto    string
		}{
			{0, "v2", true, "aa", forge.Opened, ""},
			{3*day - time.Hour, "v2", true, "aa", forge.Unchanged, ""},
			{3 * day, "v2", false, "aa", forge.Unchanged, ""},
			{3 * day, "v2", true, "aa", forge.Unchanged, "aa"},
			{4 * day, "v2", true, "aa", forge.Unchanged, "aa"},
			{5 * day, "v3", true, "bb", forge.Updated, ""},
			{7 * day, "v3", true, "cc", forge.Unchanged, ""},
			{8 * day, "v3", true, "cc", forge.Unchanged, "cc"},
		} {
			p := forge.Pull{Head: "a", Base: "main", Title: step.title, Body: "text\n", Automerge: &forge.Automerge{Allowed: step.allowed, After: 3 * day, Now: start.Add(step.after), Commit: step.commit}}
			if all := s.Pulls(); len(all) > 0 && all[0].Auto != step.commit {
				if err := c.CancelAutomerge(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			s.Pipeline = step.commit
			got, err := c.Propose(t.Context(), p)
			if err != nil || got.Outcome != step.outcome || got.Automerge != (step.auto != "") || got.Refusal != "" {
				t.Fatalf("%+v: got %+v, %v", step, got, err)
			}
			if all := s.Pulls(); all[0].Auto != step.auto || !strings.HasPrefix(all[0].Body, "text\n") {
				t.Fatalf("%+v: the pull request is %+v", step, all[0])
			}
		}
		if path.Base(t.Name()) != "gitlab" {
			return
		}
		s.Pipeline = ""
		got, err := c.Propose(t.Context(), forge.Pull{Head: "b", Base: "main", Title: "t", Automerge: &forge.Automerge{Allowed: true, Now: start, Commit: "aa"}})
		if err != nil || got.Automerge || !strings.Contains(got.Refusal, "no pipeline of its commit") {
			t.Errorf("without a pipeline: %+v, %v", got, err)
		}
	})
}

// TestConcurrentPropose simulates two concurrent runs. The second run must find the pull request of the first.
func TestConcurrentPropose(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *forgetest.Server, c *forge.Client) {
		s.Race(forgetest.Pull{From: forgetest.Project, Head: "a", Base: "main", Title: "other"})
		got, err := c.Propose(t.Context(), forge.Pull{Head: "a", Base: "main", Title: "mine"})
		if err != nil || got.Outcome != forge.Updated || got.Number != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
		if all := s.Pulls(); len(all) != 1 || all[0].Title != "mine" {
			t.Errorf("there are %+v", all)
		}
	})
}

// TestComment checks that Comment updates its own comment among those of other authors, even on the third
// page. Each workspace has its own comment.
func TestComment(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *forgetest.Server, c *forge.Client) {
		const marker = "<!-- quayside:diff -->"
		s.Have([]forgetest.Pull{{From: forgetest.Project, Head: "a", Base: "main", Title: "t"}, {From: forgetest.Project, Head: "b", Base: "main", Title: "t"}}, []forgetest.Comment{
			{On: 1, Body: "I like " + marker},
			{On: 1, Body: marker + " and more\nof mine"},
			{On: 2, Body: marker + "\nof another pull request"},
			{On: 1, Body: "well\n" + marker},
			{On: 1, Body: marker + "\nfaked", By: "mallory"},
			{On: 1, Body: ""},
		})
		want := s.Comments()
		for _, step := range []struct {
			marker, text string
			create       bool
			outcome      forge.Outcome
			writes       int
		}{
			{marker, "nothing\n", false, "", 0},
			{marker, "one\n", true, forge.Opened, 1},
			{marker, "one\n", true, forge.Unchanged, 0},
			{marker, "two\n", false, forge.Updated, 1},
			{"<!-- quayside:diff envs/dev -->", "dev\n", true, forge.Opened, 1},
			{"<!-- quayside:diff envs/dev -->", "dev\n", true, forge.Unchanged, 0},
		} {
			got, err := c.Comment(t.Context(), 1, step.marker, step.text, step.create)
			if err != nil {
				t.Fatal(err)
			}
			if got.Outcome != step.outcome {
				t.Errorf("%s: %+v, want %q", step.text, got, step.outcome)
			}
			if w := s.Writes(); len(w) != step.writes {
				t.Errorf("%s: %d writes, want %d: %q", step.text, len(w), step.writes, w)
			}
		}
		want = append(want, forgetest.Comment{ID: 7, On: 1, Body: marker + "\ntwo\n"}, forgetest.Comment{ID: 8, On: 1, Body: "<!-- quayside:diff envs/dev -->\ndev\n"})
		if d := cmp.Diff(want, s.Comments()); d != "" {
			t.Errorf("comments (-want +got):\n%s", d)
		}
		if _, err := c.Comment(t.Context(), 9, marker, "x", true); err == nil {
			t.Error("a pull request that is missing got a comment")
		}
	})
}

// TestCommentOfAJob comments with a token that cannot look up its user. Comment must not edit comments by
// others.
func TestCommentOfAJob(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *forgetest.Server, c *forge.Client) {
		const marker = "<!-- quayside:diff -->"
		s.Job = true
		s.Have([]forgetest.Pull{{From: forgetest.Project, Head: "a", Base: "main", Title: "t"}}, []forgetest.Comment{
			{On: 1, Body: marker + "\nfaked", By: "mallory", Foreign: true},
		})
		want := s.Comments()
		for _, step := range []struct {
			text    string
			outcome forge.Outcome
		}{{"one\n", forge.Opened}, {"two\n", forge.Updated}} {
			got, err := c.Comment(t.Context(), 1, marker, step.text, true)
			if err != nil || got.Outcome != step.outcome {
				t.Errorf("got %+v, %v, want %s", got, err, step.outcome)
			}
		}
		want = append(want, forgetest.Comment{ID: 2, On: 1, Body: marker + "\ntwo\n"})
		if d := cmp.Diff(want, s.Comments()); d != "" {
			t.Errorf("comments (-want +got):\n%s", d)
		}
	})
}

// TestRefusals checks that errors contain the cause, but not the token, although the server's response contains it.
func TestRefusals(t *testing.T) {
	forEachKind(t, func(t *testing.T, s *forgetest.Server, c *forge.Client) {
		at, err := forge.Locate("", "x", getenv(s.Env()))
		if err != nil {
			t.Fatal(err)
		}
		other, err := forge.New(at, "another-secret")
		if err != nil {
			t.Fatal(err)
		}
		_, err = other.Propose(t.Context(), forge.Pull{Head: "a", Title: "t"})
		checkRefusal(t, err, "another-secret", "401", "GIT_TOKEN is not accepted", "bad credentials Bearer ***")
		for code, say := range map[int]string{
			403: "GIT_TOKEN lacks permission", 404: "not found, or GIT_TOKEN lacks access",
			301: "the repository or the server was renamed", 500: "500", 422: "refused", 429: "429",
		} {
			s.Refuse(func(method, _ string) int {
				if method == http.MethodPost {
					return code
				}
				return 0
			})
			_, err := c.Propose(t.Context(), forge.Pull{Head: "a", Title: "t"})
			checkRefusal(t, err, forgetest.Token, say, "proposing a in acme/fleet")
		}
		if all := s.Pulls(); len(all) != 0 {
			t.Errorf("there are %+v", all)
		}
	})
}

func checkRefusal(t *testing.T, err error, token string, says ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if strings.Contains(err.Error(), token) {
		t.Errorf("the token is in %q", err)
	}
	for _, say := range says {
		if !strings.Contains(err.Error(), say) {
			t.Errorf("%q does not contain %q", err, say)
		}
	}
}

// TestHostileServer checks that no response can exceed the limits or redirect the token to another host.
func TestHostileServer(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("request to another host, with %q", r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	for name, answer := range map[string]http.HandlerFunc{
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		"not JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>\x1b[2J")) },
		"unexpected JSON": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"default_branch": 7}`))
		},
		"no branch": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) },
		"endless": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", `<`+elsewhere.URL+`>; rel="next"`)
			_, _ = w.Write([]byte(`[{"number": 1, "head": {"ref": "x"}, "base": {}}]`))
		},
		"too long": func(w http.ResponseWriter, _ *http.Request) {
			for range 40 {
				_, _ = w.Write([]byte(strings.Repeat(" ", 1<<20)))
			}
		},
		"words": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(`{"message": "\u001b[2J` + strings.Repeat("x", 10_000) + `", "errors": [{"a": [1, null]}]}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(answer)
			t.Cleanup(s.Close)
			c, err := forge.New(forge.Address{Kind: "github", API: s.URL, Project: "a/b"}, forgetest.Token)
			if err != nil {
				t.Fatal(err)
			}
			base := ""
			if name == "endless" {
				base = "main"
			}
			_, err = c.Propose(t.Context(), forge.Pull{Head: "a", Base: base, Title: "t"})
			if err == nil {
				t.Fatal("no error")
			}
			if strings.ContainsAny(err.Error(), "\x1b\n") || len(err.Error()) > 700 || strings.Contains(err.Error(), forgetest.Token) {
				t.Errorf("the error is %q", err)
			}
		})
	}
}

// TestLocate locates repositories by their remote, the flag for the kind, and the variables of a CI job.
func TestLocate(t *testing.T) {
	actions := map[string]string{"GITHUB_SERVER_URL": "https://github.com", "GITHUB_API_URL": "https://api.github.com", "GITHUB_REPOSITORY": "acme/fleet"}
	enterprise := map[string]string{"GITHUB_SERVER_URL": "https://ghe.example.com", "GITHUB_API_URL": "https://ghe.example.com/api/v3", "GITHUB_REPOSITORY": "acme/fleet"}
	forgejo := map[string]string{"GITHUB_SERVER_URL": "https://git.example.com/code", "GITHUB_API_URL": "https://git.example.com/code/api/v1/", "GITHUB_REPOSITORY": "acme/fleet"}
	lab := map[string]string{"CI_SERVER_URL": "https://lab.example.com/gitlab", "CI_API_V4_URL": "https://lab.example.com/gitlab/api/v4", "CI_PROJECT_PATH": "group/sub/fleet"}
	for _, c := range []struct {
		name, kind, remote string
		env                map[string]string
		want               string // kind, API, project; or the error
	}{
		{"github.com", "", "https://github.com/acme/fleet.git", nil, "github https://api.github.com acme/fleet"},
		{"over ssh", "", "git@github.com:acme/fleet.git", nil, "github https://api.github.com acme/fleet"},
		{"by ssh URL", "", "ssh://git@gitlab.com:22/group/sub/fleet.git", nil, "gitlab https://gitlab.com/api/v4 group/sub/fleet"},
		{"codeberg", "", "https://user:pass@codeberg.org/acme/fleet", nil, "gitea https://codeberg.org/api/v1 acme/fleet"},
		{"by flag", "gitea", "https://git.example.com:3000/acme/fleet.git", nil, "gitea https://git.example.com:3000/api/v1 acme/fleet"},
		{"an enterprise's", "github", "https://ghe.example.com/acme/fleet.git", nil, "github https://ghe.example.com/api/v3 acme/fleet"},
		{"the job's", "", "https://ghe.example.com/acme/other.git", enterprise, "github https://ghe.example.com/api/v3 acme/other"},
		{"the job's, below a path", "", "https://git.example.com/code/acme/other", forgejo, "gitea https://git.example.com/code/api/v1 acme/other"},
		{"the job's, in groups", "", "https://gitlab-ci-token:x@lab.example.com/gitlab/group/sub/fleet.git", lab, "gitlab https://lab.example.com/gitlab/api/v4 group/sub/fleet"},
		{"remote differs from the job", "", "https://gitlab.com/a/b", actions, "gitlab https://gitlab.com/api/v4 a/b"},
		{"a path in a job", "", "/srv/fleet.git", actions, "github https://api.github.com acme/fleet"},
		{"flag differs from the job", "gitea", "https://github.com/a/b", actions, "gitea https://github.com/api/v1 a/b"},
		{"a path", "", "../fleet.git", nil, "../fleet.git is not a server address: --pull-request needs a GitHub, GitLab or Gitea remote"},
		{"unknown", "", "https://git.example.com/acme/fleet", actions, "unknown forge at git.example.com: set --forge to gitea, github, gitlab"},
		{"a host alone", "", "https://user:pass@github.com/", nil, "https://***@github.com/ contains no repository"},
		{"Windows", "", `C:\fleet`, nil, `C:\fleet is not a server address: --pull-request needs a GitHub, GitLab or Gitea remote`},
		{"climbing", "", "https://github.com/../../acme/fleet", nil, "github https://api.github.com acme/fleet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, err := forge.Locate(c.kind, c.remote, getenv(c.env))
			got := at.Kind + " " + at.API + " " + at.Project
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestNew checks that a token is never sent unencrypted.
func TestNew(t *testing.T) {
	for _, c := range []struct{ kind, api, token, want string }{
		{"github", "https://api.github.com", "t", ""},
		{"gitea", "http://127.0.0.1:3000/api/v1", "t", ""},
		{"gitea", "http://git.example.com/api/v1", "t", "http://git.example.com/api/v1: GIT_TOKEN is only sent over https"},
		{"gitea", "https://u:p@git.example.com/api/v1", "t", "https://***@git.example.com/api/v1: no credentials allowed in the URL: set GIT_TOKEN"},
		{"github", "https://api.github.com", "", "api.github.com requires a token: set GIT_TOKEN"},
		{"github", "https://api.github.com", "t\n", "GIT_TOKEN contains invalid characters, such as a line break"},
		{"github", "file:///etc", "t", `"file:///etc" is not the URL of an API`},
		{"bitbucket", "https://x", "t", `unknown forge "bitbucket": must be one of gitea, github, gitlab`},
	} {
		_, err := forge.New(forge.Address{Kind: c.kind, API: c.api, Project: "a/b"}, c.token)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.kind, c.api, got, c.want)
		}
	}
}
