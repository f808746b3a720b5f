// Package forgetest provides a forge for tests: the part of the APIs of GitHub, GitLab and Gitea that package forge
// uses. It keeps pull requests and comments in memory. Its responses follow the API documentation. The tests in
// test/cluster/forge use a real Gitea instead.
//
// Start from [New].
package forgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Token is the only token that the server accepts.
const Token = "secret-of-the-tests"

// Project is the repository of the server.
const Project = "acme/fleet"

// Pull is a pull request. From is the repository of its source branch: Project, or a fork.
type Pull struct {
	Number                        int
	From, Head, Base, Title, Body string
	Closed, Merged                bool
	Gone                          bool // whether its branch was deleted
	Labels, Reviewers             []string
	Draft                         bool
	Auto                          string // hash of the commit that is merged automatically; empty: none
}

// Comment is a comment on the pull request with number On. By is the author; "" is the owner of the
// token. If Foreign is set, the token may not change the comment.
type Comment struct {
	ID, On  int
	Body    string
	By      string
	Foreign bool
}

// Server is a forge with one repository. Its default branch is main.
type Server struct {
	URL string // address of the server, without a trailing slash

	// PageSize is the number of list entries per page.
	PageSize int

	// Job is true if the token belongs to a CI job. Such a token must not look up its user.
	Job bool

	// Pipeline is the commit of the latest successful pipeline on GitLab. Without one, the server
	// refuses the automatic merge.
	Pipeline string

	mu         sync.Mutex
	kind       string
	pulls      []Pull
	comments   []Comment
	requests   []string
	failure    func(method, path string) int
	concurrent *Pull // pull request to open just before the next one
}

// New starts a server and stops it at the end of the test. kind is "github", "gitlab" or "gitea".
func New(t testing.TB, kind string) *Server {
	s := &Server{kind: kind, PageSize: 2}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// API returns the address of the server's API.
func (s *Server) API() string {
	return s.URL + map[string]string{"github": "/api/v3", "gitea": "/api/v1", "gitlab": "/api/v4"}[s.kind]
}

// Env returns the environment variables of a CI job on this server.
func (s *Server) Env() map[string]string {
	if s.kind == "gitlab" {
		return map[string]string{"CI_SERVER_URL": s.URL, "CI_API_V4_URL": s.API(), "CI_PROJECT_PATH": Project}
	}
	return map[string]string{"GITHUB_SERVER_URL": s.URL, "GITHUB_API_URL": s.API(), "GITHUB_REPOSITORY": Project}
}

// Pulls returns the pull requests, in the order of their creation.
func (s *Server) Pulls() []Pull {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Pull{}, s.pulls...)
}

// Comments returns the comments, in the order of their creation.
func (s *Server) Comments() []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Comment{}, s.comments...)
}

// Have adds existing pull requests and comments.
func (s *Server) Have(pulls []Pull, comments []Comment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range pulls {
		p.Number = len(s.pulls) + 1
		s.pulls = append(s.pulls, p)
	}
	for _, c := range comments {
		c.ID = len(s.comments) + 1
		s.comments = append(s.comments, c)
	}
}

// Change changes a pull request as a person would.
func (s *Server) Change(number int, change func(*Pull)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.pulls[number-1])
}

// Refuse makes the server call code for each request: 0 means success, any other status code is the answer.
func (s *Server) Refuse(code func(method, path string) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = code
}

// Race makes another client open pull request p, just before the server opens the next pull request.
func (s *Server) Race(p Pull) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.concurrent = &p
}

// Writes returns the requests other than GET since the last call of Writes, each as method and path.
func (s *Server) Writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, line := range s.requests {
		if !strings.HasPrefix(line, http.MethodGet) {
			out = append(out, line)
		}
	}
	s.requests = nil
	return out
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	escaped := r.URL.EscapedPath()
	s.requests = append(s.requests, r.Method+" "+escaped)
	rest, ok := strings.CutPrefix(escaped, strings.TrimPrefix(s.API(), s.URL)+"/")
	if r.Header.Get("Authorization") != "Bearer "+Token {
		// Like a careless server, it repeats the credentials of the request.
		writeError(w, http.StatusUnauthorized, "bad credentials "+r.Header.Get("Authorization"))
		return
	}
	if s.failure != nil {
		if code := s.failure(r.Method, rest); code != 0 {
			w.Header().Set("Location", "https://elsewhere.example.com/")
			writeError(w, code, "refused")
			return
		}
	}
	if rest == "users" && s.kind == "gitlab" {
		name := r.URL.Query().Get("username")
		writeJSON(w, []any{map[string]any{"id": len(name), "username": name}})
		return
	}
	if !ok && r.URL.Path != "/api/graphql" {
		writeError(w, http.StatusNotFound, "no such API")
		return
	}
	top, pulls, edit := "repos/"+Project, "pulls", http.MethodPatch
	if s.kind == "gitlab" {
		top, pulls, edit = "projects/"+strings.ReplaceAll(Project, "/", "%2F"), "merge_requests", http.MethodPut
	}
	if r.Method == http.MethodPost && r.URL.Path == "/api/graphql" && s.kind == "github" {
		s.graphql(w, r)
		return
	}
	if rest == "user" {
		if s.Job {
			writeError(w, http.StatusForbidden, "Resource not accessible by integration")
			return
		}
		writeJSON(w, s.person(""))
		return
	}
	rest, ok = strings.CutPrefix(rest, top)
	parts := strings.Split(strings.TrimPrefix(rest, "/"), "/")
	switch {
	case !ok:
		writeError(w, http.StatusNotFound, "no such repository")
	case rest == "":
		writeJSON(w, map[string]any{"default_branch": "main", "allow_merge_commit": false, "allow_squash_merge": true, "default_merge_style": "squash"})
	case len(parts) == 1 && parts[0] == pulls && r.Method == http.MethodGet:
		s.listPulls(w, r)
	case len(parts) == 1 && parts[0] == pulls && r.Method == http.MethodPost:
		s.open(w, r)
	case len(parts) == 2 && parts[0] == pulls && r.Method == edit:
		s.editPull(w, r, parts[1])
	case len(parts) >= 2 && parts[0] == pulls && parts[1] != "" && s.servePull(w, r, parts[1], strings.Join(parts[2:], "/")):
	case len(parts) == 3 && parts[0] == "issues" && parts[2] == "labels" && r.Method == http.MethodPost && s.kind != "gitlab":
		s.change(w, parts[1], func(p *Pull) { p.Labels = texts(parseBody(r)["labels"]) })
	default:
		s.serveComments(w, r, parts, edit)
	}
}

// serveComments answers requests for the comments of a pull request.
func (s *Server) serveComments(w http.ResponseWriter, r *http.Request, parts []string, edit string) {
	list := len(parts) == 3 && parts[0] == "issues" && parts[2] == "comments"
	one := len(parts) == 3 && parts[0] == "issues" && parts[1] == "comments"
	if s.kind == "gitlab" {
		list = len(parts) == 3 && parts[0] == "merge_requests" && parts[2] == "notes"
		one = len(parts) == 4 && parts[0] == "merge_requests" && parts[2] == "notes"
	}
	switch {
	case one && r.Method == edit:
		s.editComment(w, r, parts[len(parts)-1])
	case list && r.Method == http.MethodGet:
		var all []any
		for _, c := range s.comments {
			if strconv.Itoa(c.On) == parts[1] {
				all = append(all, s.comment(c))
			}
		}
		s.page(w, r, all)
	case list && r.Method == http.MethodPost:
		on, err := strconv.Atoi(parts[1])
		if err != nil || on < 1 || on > len(s.pulls) {
			writeError(w, http.StatusNotFound, "no such pull request")
			return
		}
		c := Comment{ID: len(s.comments) + 1, On: on, Body: text(parseBody(r)["body"])}
		s.comments = append(s.comments, c)
		w.WriteHeader(http.StatusCreated)
		writeJSON(w, s.comment(c))
	default:
		writeError(w, http.StatusNotFound, "no such thing")
	}
}

func (s *Server) listPulls(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	var all []any
	for _, p := range s.pulls {
		owner, _, _ := strings.Cut(p.From, "/")
		state := "open"
		switch {
		case p.Merged && s.kind == "gitlab":
			state = "merged"
		case p.Closed || p.Merged:
			state = "closed"
		case s.kind == "gitlab":
			state = "opened"
		}
		fits := q.Get("state") == state
		switch s.kind {
		case "gitlab":
			fits = fits && p.Head == q.Get("source_branch") && p.Base == q.Get("target_branch")
		case "github":
			fits = fits && owner+":"+p.Head == q.Get("head") && p.Base == q.Get("base")
		}
		if fits {
			all = append(all, s.pull(p))
		}
	}
	s.page(w, r, all)
}

// page writes one page of a list. The link to the next page points to another host: clients must not follow it.
func (s *Server) page(w http.ResponseWriter, r *http.Request, all []any) {
	n, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil {
		n = 1
	}
	from := min((n-1)*s.PageSize, len(all))
	to := min(from+s.PageSize, len(all))
	if to < len(all) {
		w.Header().Set("Link", `<https://elsewhere.example.com/?page=99>; rel="next", <https://elsewhere.example.com/?page=99>; rel="last"`)
	}
	writeJSON(w, append([]any{}, all[from:to]...))
}

func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	sent := parseBody(r)
	p := Pull{Number: len(s.pulls) + 1, From: Project, Title: text(sent["title"])}
	p.Head, p.Base, p.Body = text(sent["head"]), text(sent["base"]), text(sent["body"])
	p.Draft = sent["draft"] == true
	taken := http.StatusUnprocessableEntity
	if s.kind != "github" {
		taken = http.StatusConflict
	}
	if s.kind == "gitlab" {
		p.Head, p.Base, p.Body = text(sent["source_branch"]), text(sent["target_branch"]), text(sent["description"])
	}
	if s.concurrent != nil {
		other := *s.concurrent
		other.Number, s.concurrent = p.Number, nil
		s.pulls = append(s.pulls, other)
		p.Number++
	}
	for _, have := range s.pulls {
		if !have.Closed && have.From == p.From && have.Head == p.Head && have.Base == p.Base {
			writeError(w, taken, "a pull request already exists")
			return
		}
	}
	if p.Head == "" || p.Base == "" || p.Title == "" {
		writeError(w, http.StatusUnprocessableEntity, "what is missing?")
		return
	}
	s.pulls = append(s.pulls, p)
	w.WriteHeader(http.StatusCreated)
	writeJSON(w, s.pull(p))
}

func (s *Server) editPull(w http.ResponseWriter, r *http.Request, number string) {
	for i := range s.pulls {
		p := &s.pulls[i]
		if strconv.Itoa(p.Number) != number {
			continue
		}
		sent := parseBody(r)
		if sent["title"] != nil {
			p.Title, p.Body = text(sent["title"]), text(sent["body"])+text(sent["description"])
		}
		if labels := text(sent["labels"]); labels != "" {
			p.Labels = strings.Split(labels, ",")
		}
		if ids, ok := sent["reviewer_ids"].([]any); ok {
			p.Reviewers = []string{fmt.Sprint(ids...)}
		}
		writeJSON(w, s.pull(*p))
		return
	}
	writeError(w, http.StatusNotFound, "no such pull request")
}

// change changes a pull request and responds with the changed pull request.
func (s *Server) change(w http.ResponseWriter, number string, change func(*Pull)) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(s.pulls) {
		writeError(w, http.StatusNotFound, "no such pull request")
		return
	}
	change(&s.pulls[n-1])
	if w != nil {
		writeJSON(w, s.pull(s.pulls[n-1]))
	}
}

// servePull serves requests for reviewers and the automatic merge. It returns false for other
// requests.
func (s *Server) servePull(w http.ResponseWriter, r *http.Request, number, path string) bool {
	hub := s.kind != "gitlab"
	switch r.Method + " " + path {
	case "POST requested_reviewers":
		s.change(w, number, func(p *Pull) {
			sent := parseBody(r)
			p.Reviewers = append(texts(sent["reviewers"]), texts(sent["team_reviewers"])...)
		})
		return hub
	case "POST merge": // Gitea
		sent := parseBody(r)
		if sent["Do"] != "squash" || sent["merge_when_checks_succeed"] != true {
			return false
		}
		auto := ""
		s.change(nil, number, func(p *Pull) { auto, p.Auto = p.Auto, text(sent["head_commit_id"]) })
		if auto != "" {
			writeError(w, http.StatusConflict, "pull request is already scheduled to auto merge when checks succeed")
		}
		return s.kind == "gitea"
	case "DELETE merge":
		auto := ""
		s.change(nil, number, func(p *Pull) { auto, p.Auto = p.Auto, "" })
		if auto == "" {
			writeError(w, http.StatusNotFound, "not scheduled")
		}
		return s.kind == "gitea"
	case "GET ":
		n, _ := strconv.Atoi(number)
		out := s.pull(s.pulls[n-1])
		if s.Pipeline != "" {
			out["head_pipeline"] = map[string]any{"sha": s.Pipeline, "status": "success"}
		}
		writeJSON(w, out)
		return !hub
	case "PUT merge":
		s.change(w, number, func(p *Pull) { p.Auto = text(parseBody(r)["sha"]) })
		return !hub
	case "POST cancel_merge_when_pipeline_succeeds":
		s.change(w, number, func(p *Pull) { p.Auto = "" })
		return !hub
	}
	return false
}

// graphql answers the mutations of the automatic merge of GitHub.
func (s *Server) graphql(w http.ResponseWriter, r *http.Request) {
	sent := parseBody(r)
	variables, _ := sent["variables"].(map[string]any)
	number := strings.TrimPrefix(text(variables["id"]), "PR_")
	switch query := text(sent["query"]); {
	case strings.Contains(query, "{enablePullRequestAutoMerge(") && variables["method"] == "SQUASH":
		s.change(nil, number, func(p *Pull) { p.Auto = text(variables["commit"]) })
		writeJSON(w, map[string]any{"data": map[string]any{}})
	case strings.Contains(query, "{disablePullRequestAutoMerge("):
		s.change(nil, number, func(p *Pull) { p.Auto = "" })
		writeJSON(w, map[string]any{"data": map[string]any{}})
	default:
		writeJSON(w, map[string]any{"errors": []any{map[string]any{"message": "Merge method is not allowed"}}})
	}
}

func (s *Server) editComment(w http.ResponseWriter, r *http.Request, id string) {
	for i := range s.comments {
		c := &s.comments[i]
		switch {
		case strconv.Itoa(c.ID) != id:
		case c.Foreign:
			writeError(w, http.StatusForbidden, "it is not yours")
			return
		default:
			c.Body = text(parseBody(r)["body"])
			writeJSON(w, s.comment(*c))
			return
		}
	}
	writeError(w, http.StatusNotFound, "no such comment")
}

func (s *Server) pull(p Pull) map[string]any {
	at := fmt.Sprintf("%s/%s/pull/%d", s.URL, Project, p.Number)
	var merged any
	if p.Merged {
		merged = "2026-01-01T00:00:00Z"
	}
	if s.kind == "gitlab" {
		source := 3
		if p.From != Project {
			source = 4
		}
		return map[string]any{
			"merged_at": merged,
			"id":        1000 + p.Number, "iid": p.Number, "web_url": at, "title": p.Title, "description": p.Body,
			"source_branch": p.Head, "target_branch": p.Base, "source_project_id": source, "target_project_id": 3,
			"merge_when_pipeline_succeeds": p.Auto != "",
		}
	}
	head := map[string]any{"ref": p.Head, "repo": map[string]any{"full_name": p.From}}
	if p.From == "" {
		head["repo"] = nil // the fork was deleted
	}
	if s.kind == "gitea" {
		if head["label"] = p.Head; p.Gone {
			head["ref"] = fmt.Sprintf("refs/pull/%d/head", p.Number)
		}
	}
	var auto any
	if p.Auto != "" && s.kind == "github" {
		auto = map[string]any{"merge_method": "squash"}
	}
	return map[string]any{
		"merged_at": merged, "node_id": fmt.Sprintf("PR_%d", p.Number), "auto_merge": auto,
		"id": 1000 + p.Number, "number": p.Number, "html_url": at, "title": p.Title, "body": p.Body, "head": head,
		"base": map[string]any{"ref": p.Base, "repo": map[string]any{"full_name": Project}},
	}
}

func (s *Server) comment(c Comment) map[string]any {
	out := map[string]any{"id": c.ID, "body": c.Body}
	if s.kind == "gitlab" {
		out["author"] = s.person(c.By)
	} else {
		out["user"] = s.person(c.By)
		out["html_url"] = fmt.Sprintf("%s/%s/pull/%d#%d", s.URL, Project, c.On, c.ID)
	}
	return out
}

// person returns an author as JSON. "" is the owner of the token.
func (s *Server) person(name string) map[string]any {
	kind := "User"
	if name == "" {
		name, kind = "quayside-bot", "Bot"
	}
	switch s.kind {
	case "gitlab":
		return map[string]any{"username": name, "id": len(name)}
	case "gitea":
		return map[string]any{"login": name, "username": name}
	}
	return map[string]any{"login": name, "type": kind}
}

func parseBody(r *http.Request) map[string]any {
	var out map[string]any
	if json.NewDecoder(r.Body).Decode(&out) != nil {
		return map[string]any{}
	}
	return out
}

// text returns v, a value in a decoded request body, as a string. It returns "" if v is no string.
func text(v any) string {
	s, _ := v.(string)
	return s
}

// texts returns the items of v, a list in a decoded request body, as strings.
func texts(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		out = append(out, text(item))
	}
	return out
}

func writeJSON(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(data)
}

func writeError(w http.ResponseWriter, code int, message string) {
	w.WriteHeader(code)
	writeJSON(w, map[string]string{"message": message})
}
