package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/remote"
)

// kind is the API of one type of forge. To add a type, add its kind to forgeKinds, and its
// links to internal/remote.
type kind struct {
	name      string // a [remote.Forge]
	api       string // path of the API below the address of a server
	publicAPI string // API of the public server, if on another host
	edit      string // HTTP method of changes

	// ci returns the server address, API address and repository from the variables of a
	// CI job. All are empty outside a job.
	ci func(getenv func(string) string) (server, api, project string)

	// isAuthor reports whether author is me. If me is empty, it reports whether author may be me.
	isAuthor func(author person, me string) bool

	repository func(project string) string
	pulls      func(project string) string                       // path to list and open pull requests
	pull       func(project string, number int64) string         // path to change a pull request
	find       func(project string, p Pull, state string) string // query that finds p among open or closed ones
	write      func(p Pull, open bool) map[string]any            // body of the request to open or to change
	comments   func(project string, number int64) string         // path of the comments of a pull request
	comment    func(project string, number, id int64) string     // path of a comment

	draft    string                                                            // prefix of the title of a draft; empty: a field
	decorate func(ctx context.Context, c *Client, number int64, p Pull) error  // sets labels and reviewers
	merge    func(ctx context.Context, c *Client, p pull, commit string) error // enables the automatic merge
	cancel   func(ctx context.Context, c *Client, p pull) error                // disables it
}

// splitTitle returns the prefix of a draft, and the rest of a title.
func (k kind) splitTitle(title string) (mark, rest string) {
	if rest, found := strings.CutPrefix(title, k.draft); found {
		return k.draft, rest
	}
	return "", title
}

// forgeKinds returns the forges in the order of CI detection: Gitea precedes GitHub
// because its runner sets GitHub's variables too.
func forgeKinds() []kind {
	hub := kind{
		edit:       http.MethodPatch,
		isAuthor:   isOwnComment,
		repository: func(project string) string { return "repos/" + pathSegments(project) },
		pulls:      func(project string) string { return "repos/" + pathSegments(project) + "/pulls" },
		pull: func(project string, n int64) string {
			return fmt.Sprintf("repos/%s/pulls/%d", pathSegments(project), n)
		},
		find: func(project string, p Pull, state string) string {
			owner, _, _ := strings.Cut(project, "/")
			return url.Values{"state": {state}, "head": {owner + ":" + p.Head}, "base": {p.Base}, "per_page": {"100"}}.Encode()
		},
		write: func(p Pull, open bool) map[string]any {
			out := map[string]any{"title": p.Title, "body": p.Body}
			if open {
				out["head"], out["base"] = p.Head, p.Base
			}
			if open && p.Draft {
				out["draft"] = true
			}
			return out
		},
		comments: func(project string, n int64) string {
			return fmt.Sprintf("repos/%s/issues/%d/comments", pathSegments(project), n)
		},
		comment: func(project string, _, id int64) string {
			return fmt.Sprintf("repos/%s/issues/comments/%d", pathSegments(project), id)
		},
		decorate: decorateHub, merge: mergeGitHub, cancel: cancelGitHub,
	}
	gitea, github := hub, hub
	gitea.name, gitea.api, gitea.ci = string(remote.Gitea), "api/v1", giteaJob
	gitea.find = func(_ string, p Pull, state string) string { // Gitea has no head filter, and limit instead of per_page
		return url.Values{"state": {state}, "base_branch": {p.Base}, "sort": {"recentupdate"}, "limit": {"50"}}.Encode()
	}
	gitea.draft, gitea.merge, gitea.cancel = "WIP: ", mergeGitea, cancelGitea
	github.isAuthor = func(author person, me string) bool { // the token of a job cannot look up its bot user
		return author.name() == me || me == "" && author.Type == "Bot"
	}
	github.name, github.api, github.publicAPI, github.ci = string(remote.GitHub), "api/v3", "https://api.github.com", githubJob
	return []kind{
		gitea,
		github,
		gitlabKind(),
	}
}

func gitlabKind() kind {
	project := func(p string) string { return "projects/" + url.PathEscape(p) }
	return kind{
		name: string(remote.GitLab), api: "api/v4", edit: http.MethodPut, isAuthor: isOwnComment,
		ci: func(getenv func(string) string) (server, api, project string) {
			return getenv("CI_SERVER_URL"), getenv("CI_API_V4_URL"), getenv("CI_PROJECT_PATH")
		},
		repository: project,
		pulls:      func(p string) string { return project(p) + "/merge_requests" },
		pull:       func(p string, n int64) string { return fmt.Sprintf("%s/merge_requests/%d", project(p), n) },
		find: func(_ string, p Pull, state string) string {
			if state == "open" {
				state = "opened"
			}
			return url.Values{"state": {state}, "source_branch": {p.Head}, "target_branch": {p.Base}, "per_page": {"100"}}.Encode()
		},
		write: func(p Pull, open bool) map[string]any {
			out := map[string]any{"title": p.Title, "description": p.Body}
			if open {
				out["source_branch"], out["target_branch"] = p.Head, p.Base
			}
			return out
		},
		draft: "Draft: ", decorate: decorateGitLab, merge: mergeGitLab, cancel: cancelGitLab,
		comments: func(p string, n int64) string { return fmt.Sprintf("%s/merge_requests/%d/notes", project(p), n) },
		comment: func(p string, n, id int64) string {
			return fmt.Sprintf("%s/merge_requests/%d/notes/%d", project(p), n, id)
		},
	}
}

// Kinds returns the names of the supported forges, sorted.
func Kinds() []string {
	var names []string
	for _, k := range forgeKinds() {
		names = append(names, k.name)
	}
	slices.Sort(names)
	return names
}

// isOwnComment reports whether author is me; an empty me matches every author.
func isOwnComment(author person, me string) bool { return me == "" || author.name() == me }

func githubJob(getenv func(string) string) (server, api, project string) {
	return getenv("GITHUB_SERVER_URL"), getenv("GITHUB_API_URL"), getenv("GITHUB_REPOSITORY")
}

// giteaJob returns the variables of a Gitea or Forgejo job, recognized by its API path.
func giteaJob(getenv func(string) string) (server, api, project string) {
	if server, api, project = githubJob(getenv); strings.HasSuffix(strings.TrimRight(api, "/"), "/api/v1") {
		return server, api, project
	}
	return "", "", ""
}

// pathSegments escapes a path except for its slashes.
func pathSegments(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// pull is a pull request as decoded from the API of any forge.
type pull struct {
	Title    string `json:"title"`
	MergedAt string `json:"merged_at"` // "" if it is not merged

	// GitHub and Gitea
	Number  int64  `json:"number"`
	HTMLURL string `json:"html_url"`
	Body    string `json:"body"`
	Head    *side  `json:"head"`
	Base    *side  `json:"base"`
	NodeID  string `json:"node_id"`    // of GitHub
	Auto    any    `json:"auto_merge"` // of GitHub; nil if it is off

	// GitLab
	IID         int64  `json:"iid"`
	WebURL      string `json:"web_url"`
	Description string `json:"description"`
	Source      string `json:"source_branch"`
	Target      string `json:"target_branch"`
	SourceID    int64  `json:"source_project_id"`
	TargetID    int64  `json:"target_project_id"`
	AutoGitLab  bool   `json:"merge_when_pipeline_succeeds"`
}

type side struct {
	Ref   string `json:"ref"`
	Label string `json:"label"` // of Gitea: the branch, also if it was deleted
	Repo  *struct {
		FullName string `json:"full_name"`
	} `json:"repo"` // null if the fork was deleted
}

// isAutomerged reports whether the automatic merge is on. Gitea does not return this.
func (p pull) isAutomerged() bool { return p.Auto != nil || p.AutoGitLab }

func (p pull) number() int64 { return max(p.Number, p.IID) }
func (p pull) url() string   { return p.HTMLURL + p.WebURL }
func (p pull) body() string  { return p.Body + p.Description }

// hasBranches reports whether p has the branches of want and is not from a fork.
func (p pull) hasBranches(project string, want Pull) bool {
	if p.Head == nil || p.Base == nil {
		return p.Source == want.Head && p.Target == want.Base && p.SourceID == p.TargetID && p.IID != 0
	}
	return slices.Contains([]string{p.Head.Ref, p.Head.Label}, want.Head) && p.Base.Ref == want.Base && p.Head.Repo != nil && strings.EqualFold(p.Head.Repo.FullName, project)
}

// comment is a comment as decoded from the API of any forge.
type comment struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	URL  string `json:"html_url"`

	User   *person `json:"user"`   // GitHub and Gitea
	Author *person `json:"author"` // GitLab
}

func (c comment) author() person {
	for _, p := range []*person{c.User, c.Author} {
		if p != nil {
			return *p
		}
	}
	return person{}
}

// person is a user as decoded from the API of any forge.
type person struct {
	Login    string `json:"login"`    // GitHub and Gitea
	Username string `json:"username"` // GitLab
	Type     string `json:"type"`     // of GitHub: "Bot", "User"
}

func (p person) name() string {
	if p.Username != "" {
		return p.Username
	}
	return p.Login
}
