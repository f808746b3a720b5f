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

// kind contains the API requests of one type of forge. Package remote has the table of forges.
type kind struct {
	edit string // HTTP method for changing something

	// isAuthor reports whether author is the user me. If me is unknown (""), it reports whether
	// author may be that user.
	isAuthor func(author person, me string) bool

	repository func(project string) string
	pulls      func(project string) string                       // path for listing and opening pull requests
	pull       func(project string, number int64) string         // path for changing a pull request
	find       func(project string, p Pull, state string) string // query that finds p among the open or closed pull requests
	write      func(p Pull, open bool) map[string]any            // request body for opening (open is true) or changing p
	comments   func(project string, number int64) string         // path of the comments of a pull request
	comment    func(project string, number, id int64) string     // path of a comment

	draft    string                                                            // title prefix of a draft; empty: draft is a field of the API
	decorate func(ctx context.Context, c *Client, number int64, p Pull) error  // sets labels and reviewers
	merge    func(ctx context.Context, c *Client, p pull, commit string) error // enables the automatic merge
	cancel   func(ctx context.Context, c *Client, p pull) error                // disables the automatic merge
}

// splitTitle splits a title into the draft prefix and the rest.
func (k kind) splitTitle(title string) (mark, rest string) {
	if rest, found := strings.CutPrefix(title, k.draft); found {
		return k.draft, rest
	}
	return "", title
}

// kindOf returns the requests of a forge.
func kindOf(dialect remote.Forge) kind {
	if dialect == remote.GitLab {
		return gitlabKind()
	}
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
	if dialect == remote.GitHub {
		hub.isAuthor = func(author person, me string) bool { // the token of a CI job may not look up its user, which is a bot
			return author.name() == me || me == "" && author.Type == "Bot"
		}
		return hub
	}
	hub.find = func(_ string, p Pull, state string) string { // Gitea cannot filter by source branch, and has limit instead of per_page
		return url.Values{"state": {state}, "base_branch": {p.Base}, "sort": {"recentupdate"}, "limit": {"50"}}.Encode()
	}
	hub.draft, hub.merge, hub.cancel = "WIP: ", mergeGitea, cancelGitea
	return hub
}

func gitlabKind() kind {
	project := func(p string) string { return "projects/" + url.PathEscape(p) }
	return kind{
		edit: http.MethodPut, isAuthor: isOwnComment,
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
	for _, api := range remote.APIs() {
		names = append(names, string(api.Forge))
	}
	return names
}

// isOwnComment reports whether author is me. It returns true if me is unknown ("").
func isOwnComment(author person, me string) bool { return me == "" || author.name() == me }

// pathSegments escapes a path for a URL. It keeps the slashes.
func pathSegments(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// pull is a pull request as returned by the API of any forge.
type pull struct {
	Title    string `json:"title"`
	MergedAt string `json:"merged_at"` // empty if it is not merged

	// number of the pull request on GitHub and Gitea
	Number  int64  `json:"number"`
	HTMLURL string `json:"html_url"`
	Body    string `json:"body"`
	Head    *side  `json:"head"`
	Base    *side  `json:"base"`
	NodeID  string `json:"node_id"`    // only on GitHub
	Auto    any    `json:"auto_merge"` // only on GitHub; nil if the automatic merge is off

	// number of the pull request on GitLab
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
	Label string `json:"label"` // only on Gitea: name of the branch, even if it was deleted
	Repo  *struct {
		FullName string `json:"full_name"`
	} `json:"repo"` // null if the fork was deleted
}

// isAutomerged reports whether the automatic merge is enabled. On Gitea it always returns false, because
// Gitea's API does not return this setting.
func (p pull) isAutomerged() bool { return p.Auto != nil || p.AutoGitLab }

func (p pull) number() int64 { return max(p.Number, p.IID) }
func (p pull) url() string   { return p.HTMLURL + p.WebURL }
func (p pull) body() string  { return p.Body + p.Description }

// hasBranches reports whether p has the branches of want. It returns false for a fork.
func (p pull) hasBranches(project string, want Pull) bool {
	if p.Head == nil || p.Base == nil {
		return p.Source == want.Head && p.Target == want.Base && p.SourceID == p.TargetID && p.IID != 0
	}
	return slices.Contains([]string{p.Head.Ref, p.Head.Label}, want.Head) && p.Base.Ref == want.Base && p.Head.Repo != nil && strings.EqualFold(p.Head.Repo.FullName, project)
}

// comment is a comment as returned by the API of any forge.
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

// person is a user as returned by the API of any forge.
type person struct {
	Login    string `json:"login"`    // GitHub and Gitea
	Username string `json:"username"` // GitLab
	Type     string `json:"type"`     // only on GitHub: "Bot" or "User"
}

func (p person) name() string {
	if p.Username != "" {
		return p.Username
	}
	return p.Login
}
