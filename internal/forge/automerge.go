package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/sanitize"
)

// The requests for labels, reviewers and the automatic merge follow the API documentation: GitHub's
// REST and GraphQL APIs, GitLab's v4, and Gitea's v1.

// splitReviewers returns the users and the teams in a list of reviewers.
func splitReviewers(reviewers []string) (users, teams []string) {
	for _, name := range reviewers {
		if team, found := strings.CutPrefix(name, "team/"); found {
			teams = append(teams, team)
		} else {
			users = append(users, name)
		}
	}
	return users, teams
}

// decorateHub sets labels and reviewers on GitHub and Gitea.
func decorateHub(ctx context.Context, c *Client, number int64, p Pull) error {
	top := "repos/" + pathSegments(c.at.Project)
	if len(p.Labels) > 0 {
		path := fmt.Sprintf("%s/issues/%d/labels", top, number)
		if err := c.do(ctx, http.MethodPost, path, map[string]any{"labels": p.Labels}, nil); err != nil {
			return err
		}
	}
	if len(p.Reviewers) == 0 {
		return nil
	}
	body := map[string]any{}
	users, teams := splitReviewers(p.Reviewers)
	if len(users) > 0 {
		body["reviewers"] = users
	}
	if len(teams) > 0 {
		body["team_reviewers"] = teams
	}
	return c.do(ctx, http.MethodPost, fmt.Sprintf("%s/pulls/%d/requested_reviewers", top, number), body, nil)
}

// decorateGitLab sets labels and reviewers on GitLab, which needs the numeric ID of each user.
func decorateGitLab(ctx context.Context, c *Client, number int64, p Pull) error {
	body := map[string]any{}
	if len(p.Labels) > 0 {
		body["labels"] = strings.Join(p.Labels, ",")
	}
	var ids []int64
	for _, name := range p.Reviewers {
		var found []struct {
			ID int64 `json:"id"`
		}
		if err := c.do(ctx, http.MethodGet, "users?"+url.Values{"username": {name}}.Encode(), nil, &found); err != nil {
			return err
		}
		if len(found) != 1 {
			return fmt.Errorf("no user %q to request a review from", name)
		}
		ids = append(ids, found[0].ID)
	}
	if len(ids) > 0 {
		body["reviewer_ids"] = ids
	}
	if len(body) == 0 {
		return nil
	}
	return c.do(ctx, http.MethodPut, c.kind.pull(c.at.Project, number), body, nil)
}

// mergeMethods contains the merge methods that a repository on GitHub or Gitea allows.
type mergeMethods struct {
	Merge   *bool  `json:"allow_merge_commit"`
	Squash  *bool  `json:"allow_squash_merge"`
	Default string `json:"default_merge_style"` // only on Gitea
}

func (c *Client) mergeMethods(ctx context.Context) (m mergeMethods, err error) {
	err = c.do(ctx, http.MethodGet, c.kind.repository(c.at.Project), nil, &m)
	return m, err
}

// mergeGitHub enables the automatic merge on GitHub. It prefers a merge commit to other methods.
func mergeGitHub(ctx context.Context, c *Client, p pull, commit string) error {
	allowed, err := c.mergeMethods(ctx)
	if err != nil {
		return err
	}
	method := "MERGE"
	if allowed.Merge != nil && !*allowed.Merge {
		method = "SQUASH"
		if allowed.Squash != nil && !*allowed.Squash {
			method = "REBASE"
		}
	}
	return c.mutate(ctx, "mutation($id: ID!, $method: PullRequestMergeMethod!, $commit: GitObjectID!) "+
		"{enablePullRequestAutoMerge(input: {pullRequestId: $id, mergeMethod: $method, expectedHeadOid: $commit}) {clientMutationId}}",
		map[string]any{"id": p.NodeID, "method": method, "commit": commit})
}

func cancelGitHub(ctx context.Context, c *Client, p pull) error {
	if p.Auto == nil {
		return nil
	}
	return c.mutate(ctx, "mutation($id: ID!) {disablePullRequestAutoMerge(input: {pullRequestId: $id}) {clientMutationId}}", map[string]any{"id": p.NodeID})
}

// mutate sends a GraphQL mutation. It decodes errors from the body, because GraphQL reports errors with status
// 200.
func (c *Client) mutate(ctx context.Context, query string, variables map[string]any) error {
	var got struct {
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	at := *c
	at.at.API = strings.TrimSuffix(c.at.API, "/v3")
	err := at.do(ctx, http.MethodPost, "graphql", map[string]any{"query": query, "variables": variables}, &got)
	if err == nil && len(got.Errors) > 0 {
		err = &statusError{http.StatusUnprocessableEntity, c.maskToken(sanitize.Line(sanitize.Truncate(got.Errors[0].Message, 400)))}
	}
	return err
}

// mergeGitLab enables the automatic merge on GitLab. It requires that the commit has a pipeline that runs or
// succeeded: without a pipeline, GitLab would merge at once. Before version 17.11, auto_merge was called
// merge_when_pipeline_succeeds.
func mergeGitLab(ctx context.Context, c *Client, p pull, commit string) error {
	var got struct {
		Pipeline *struct {
			SHA    string `json:"sha"`
			Status string `json:"status"`
		} `json:"head_pipeline"`
	}
	path := c.kind.pull(c.at.Project, p.number())
	if err := c.do(ctx, http.MethodGet, path, nil, &got); err != nil {
		return err
	}
	if l := got.Pipeline; l == nil || l.SHA != commit || !slices.Contains([]string{"created", "waiting_for_resource", "preparing", "pending", "running", "success"}, l.Status) {
		return &statusError{http.StatusConflict, "the merge request has no pipeline of its commit that runs or succeeded"}
	}
	return c.do(ctx, http.MethodPut, path+"/merge", map[string]any{"auto_merge": true, "merge_when_pipeline_succeeds": true, "sha": commit}, nil)
}

func cancelGitLab(ctx context.Context, c *Client, p pull) error {
	if !p.AutoGitLab {
		return nil
	}
	return c.do(ctx, http.MethodPost, c.kind.pull(c.at.Project, p.number())+"/cancel_merge_when_pipeline_succeeds", nil, nil)
}

func mergeGitea(ctx context.Context, c *Client, p pull, commit string) error {
	allowed, err := c.mergeMethods(ctx)
	if err != nil {
		return err
	}
	style := allowed.Default
	if style == "" {
		style = "merge"
	}
	body := map[string]any{"Do": style, "merge_when_checks_succeed": true, "head_commit_id": commit}
	err = c.do(ctx, http.MethodPost, c.kind.pull(c.at.Project, p.number())+"/merge", body, nil)
	var refused *statusError
	if errors.As(err, &refused) && refused.code == http.StatusConflict && strings.Contains(refused.text, "already scheduled") {
		return nil
	}
	return err
}

func cancelGitea(ctx context.Context, c *Client, p pull) error {
	err := c.do(ctx, http.MethodDelete, c.kind.pull(c.at.Project, p.number())+"/merge", nil, nil)
	var refused *statusError
	if errors.As(err, &refused) && refused.code == http.StatusNotFound {
		return nil // the automatic merge is off already
	}
	return err
}
