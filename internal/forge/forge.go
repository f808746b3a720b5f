// Package forge opens and updates pull requests, and keeps one comment of a pull request up to date. It
// supports GitHub, GitLab, Gitea and Forgejo. It deletes and approves nothing. It merges only through the
// automatic merge of the server.
//
// All operations are idempotent: they do not change a pull request or comment that is already correct. The
// token is sent only to the configured server, which must be on the local machine or use https. Errors never
// contain the token.
//
// Start from [Open] and [Client.Propose].
package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Outcome describes the change to a pull request or a comment.
type Outcome string

// The outcomes. Unchanged means that the pull request or comment was already correct.
const (
	Opened    Outcome = "opened"
	Updated   Outcome = "updated"
	Unchanged Outcome = "unchanged"
)

// Pull describes a pull request to create. Both branches are in the same repository.
type Pull struct {
	Head  string // source branch, such as "upgrade/dev/ops/etcd"
	Base  string // target branch; empty: the default branch of the repository
	Title string
	Body  string // text in Markdown

	// Proposal identifies the proposed changes. Propose writes it to the text as an HTML comment; see
	// [Client.Declined].
	Proposal string

	// Labels, Reviewers and Draft are only set on a new pull request. A reviewer "team/x" is the team x.
	Labels, Reviewers []string
	Draft             bool

	Automerge *Automerge // nil: do not change the automatic merge
}

// Automerge is the condition for merging a pull request automatically.
type Automerge struct {
	Allowed bool          // whether the content of the pull request permits it
	After   time.Duration // minimum age of the current title
	Now     time.Time
	Commit  string // hash of the commit to merge
}

// RequestResult is the result of creating or updating a pull request or a comment.
type RequestResult struct {
	Number  int64   `json:"number"`                                       // number of the pull request
	URL     string  `json:"url"`                                          // URL of the web page, as returned by the server
	Outcome Outcome `json:"outcome" form:"enum=opened|updated|unchanged"` // empty if there is no comment and none is needed

	Automerge bool   `json:"automerge,omitempty" doc:"whether the forge merges it when its requirements are met"`
	Refusal   string `json:"automergeRefused,omitempty" doc:"reason why the forge refused the automatic merge"`
	NotSet    string `json:"notSet,omitempty" doc:"reason why the labels or reviewers of a new pull request were not set"`
}

// Client accesses one repository of a forge.
type Client struct {
	at    Address
	kind  kind
	token string
	http  *http.Client
}

// Propose opens a pull request from p.Head into p.Base. If one is already open, Propose updates its title and
// text. It ignores pull requests from forks, even if the branch name is the same. It never reopens a closed
// pull request, but opens a new one; see [Client.Declined].
func (c *Client) Propose(ctx context.Context, p Pull) (RequestResult, error) {
	operation := fmt.Sprintf("proposing %s in %s", p.Head, c.at.Project)
	p, err := c.withBase(ctx, p)
	if err != nil {
		return RequestResult{}, fmt.Errorf("%s: %w", operation, err)
	}
	if p.Proposal != "" {
		p.Body += "\n" + proposalMark + p.Proposal + " -->\n"
	}
	if a := p.Automerge; a != nil {
		p.Body += "\n" + proposedMark + a.Now.UTC().Format(time.RFC3339) + " -->\n"
	}
	result, err := c.propose(ctx, p)
	var refused *statusError
	if errors.As(err, &refused) && (refused.code == http.StatusUnprocessableEntity || refused.code == http.StatusConflict) {
		// Another run may have opened the pull request in the meantime.
		if open, again := c.open(ctx, p); again == nil && open != nil {
			result, err = c.update(ctx, p, *open)
		}
	}
	if err != nil {
		return RequestResult{}, fmt.Errorf("%s: %w", operation, err)
	}
	return result, nil
}

const (
	proposalMark  = "<!-- quayside:proposal "  // start of the line with the ID of the proposal
	withdrawnMark = "<!-- quayside:withdrawn " // start of the same line after Withdraw
	proposedMark  = "<!-- quayside:proposed "  // start of the last line, with the time of the current title
)

// withBase returns p. If p.Base is empty, the result has the default branch of the repository as Base.
func (c *Client) withBase(ctx context.Context, p Pull) (Pull, error) {
	var err error
	if p.Base == "" {
		p.Base, err = c.defaultBranch(ctx)
	}
	return p, err
}

// maxClosedPages is the maximum number of pages to search for a closed pull request. Only Gitea needs many
// pages, because it cannot list the pull requests of one branch.
const maxClosedPages = 20

// Declined looks for a pull request that was closed without merging and has the branches and the proposal of p. It
// returns the number of the pull request. It returns 0 if there is none, or if one with these branches is open.
func (c *Client) Declined(ctx context.Context, p Pull) (number int64, err error) {
	err = c.withOpen(ctx, p, "looking up closed pull requests of", func(p Pull, open *pull) error {
		if open != nil {
			return nil
		}
		pages := 0
		return list(ctx, c, c.kind.pulls(c.at.Project)+"?"+c.kind.find(c.at.Project, p, "closed"), func(all []pull) bool {
			pages++
			for _, have := range all {
				if have.hasBranches(c.at.Project, p) && have.MergedAt == "" && strings.Contains(have.body(), proposalMark+p.Proposal+" ") {
					number = have.number()
					return false
				}
			}
			return pages < maxClosedPages
		})
	})
	if err != nil {
		return 0, err
	}
	return number, nil
}

// withOpen calls do with p, and with the open pull request that has the branches of p, or nil if there is
// none. If p.Base is empty, do gets p with the default branch as Base. Error messages start with operation.
func (c *Client) withOpen(ctx context.Context, p Pull, operation string, do func(p Pull, open *pull) error) error {
	var open *pull
	withBase, err := c.withBase(ctx, p)
	if err == nil {
		open, err = c.open(ctx, withBase)
	}
	if err == nil {
		err = do(withBase, open)
	}
	if err != nil {
		return fmt.Errorf("%s %s in %s: %w", operation, p.Head, c.at.Project, err)
	}
	return nil
}

// Withdraw marks the open pull request that has p's branches, if there is one. Declined then ignores it after
// it is closed. Call Withdraw before you delete the branch, because the forge then closes the pull request.
func (c *Client) Withdraw(ctx context.Context, p Pull) error {
	return c.withOpen(ctx, p, "withdrawing", func(p Pull, open *pull) error {
		if open == nil || !strings.Contains(open.body(), proposalMark) {
			return nil
		}
		p.Title, p.Body = open.Title, strings.ReplaceAll(open.body(), proposalMark, withdrawnMark)
		return c.do(ctx, c.kind.edit, c.kind.pull(c.at.Project, open.number()), c.kind.write(p, false), nil)
	})
}

func (c *Client) propose(ctx context.Context, p Pull) (RequestResult, error) {
	open, err := c.open(ctx, p)
	switch {
	case err != nil:
		return RequestResult{}, err
	case open != nil:
		return c.update(ctx, p, *open)
	}
	first := p
	if p.Draft && c.kind.draft != "" {
		first.Title, first.Draft = c.kind.draft+p.Title, false
	}
	var got pull
	if err := c.do(ctx, http.MethodPost, c.kind.pulls(c.at.Project), c.kind.write(first, true), &got); err != nil {
		return RequestResult{}, err
	}
	result := RequestResult{Number: got.number(), URL: got.url(), Outcome: Opened}
	if err := c.kind.decorate(ctx, c, result.Number, p); err != nil {
		if ctx.Err() != nil {
			return result, err
		}
		result.NotSet = err.Error() // an error would prevent the caller from opening further pull requests
	}
	return result, c.automerge(ctx, p, got, &result)
}

// update sets the title and the text of an open pull request if they differ from those of p.
func (c *Client) update(ctx context.Context, p Pull, have pull) (RequestResult, error) {
	result := RequestResult{Number: have.number(), URL: have.url(), Outcome: Unchanged}
	mark, title := c.kind.splitTitle(have.Title)
	if title == p.Title {
		p.Body = keepProposedLine(p.Body, have.body())
	}
	if title != p.Title || !isSameText(have.body(), p.Body) {
		result.Outcome = Updated
		next := p
		next.Title = mark + p.Title // keep the draft prefix as it is: a person may have changed it
		if err := c.do(ctx, c.kind.edit, c.kind.pull(c.at.Project, result.Number), c.kind.write(next, false), nil); err != nil {
			return result, err
		}
	}
	return result, c.automerge(ctx, p, have, &result)
}

// keepProposedLine replaces the proposedMark line of body by the one in have, and returns the result. If
// body or have lacks this line, it returns body unchanged.
func keepProposedLine(body, have string) string {
	i, j := strings.LastIndex(body, proposedMark), strings.LastIndex(have, proposedMark)
	if i < 0 || j < 0 {
		return body
	}
	line, _, _ := strings.Cut(have[j:], "\n")
	return body[:i] + strings.TrimRight(line, "\r") + "\n"
}

// automerge enables the automatic merge of a pull request if its proposal is at least p.Automerge.After
// old. If the forge refuses, automerge adds the reason to result and returns no error.
func (c *Client) automerge(ctx context.Context, p Pull, have pull, result *RequestResult) error {
	a := p.Automerge
	if a == nil || !a.Allowed {
		return nil
	}
	text, _, _ := strings.Cut(p.Body[strings.LastIndex(p.Body, proposedMark)+len(proposedMark):], " ")
	since, err := time.Parse(time.RFC3339, text)
	if err != nil || a.Now.Sub(since) < a.After {
		return nil //nolint:nilerr // the text was edited
	}
	if result.Automerge = have.isAutomerged(); result.Automerge {
		return nil
	}
	err = c.kind.merge(ctx, c, have, a.Commit)
	var refused *statusError
	if errors.As(err, &refused) {
		result.Refusal = refused.text
		return nil
	}
	result.Automerge = err == nil
	return err
}

// CancelAutomerge disables the automatic merge of an open pull request. Otherwise the forge could merge a new
// commit because of the decision about an earlier commit.
func (c *Client) CancelAutomerge(ctx context.Context, p Pull) error {
	return c.withOpen(ctx, p, "cancelling the automatic merge of", func(_ Pull, open *pull) error {
		if open == nil {
			return nil
		}
		return c.kind.cancel(ctx, c, *open)
	})
}

// open returns the open pull request with the branches of p, or nil. It ignores forks.
func (c *Client) open(ctx context.Context, p Pull) (*pull, error) {
	var found *pull
	err := list(ctx, c, c.kind.pulls(c.at.Project)+"?"+c.kind.find(c.at.Project, p, "open"), func(all []pull) bool {
		i := slices.IndexFunc(all, func(have pull) bool { return have.hasBranches(c.at.Project, p) })
		if i >= 0 {
			found = &all[i]
		}
		return i < 0
	})
	return found, err
}

func (c *Client) defaultBranch(ctx context.Context) (string, error) {
	var got struct {
		DefaultBranch string `json:"default_branch"`
	}
	err := c.do(ctx, http.MethodGet, c.kind.repository(c.at.Project), nil, &got)
	if err == nil && got.DefaultBranch == "" {
		err = errors.New("the server returned no default branch")
	}
	return got.DefaultBranch, err
}

// Comment creates or updates a comment on a pull request. It finds the comment by its first line, marker. If
// create is false, Comment only updates. It ignores comments by other authors, because these authors could
// later edit a report that readers trust.
func (c *Client) Comment(ctx context.Context, number int64, marker, text string, create bool) (RequestResult, error) {
	want := marker + "\n" + text
	result, err := c.comment(ctx, number, marker, want, create)
	if err != nil {
		return RequestResult{}, fmt.Errorf("commenting on pull request %d of %s: %w", number, c.at.Project, err)
	}
	return result, nil
}

func (c *Client) comment(ctx context.Context, number int64, marker, want string, create bool) (RequestResult, error) {
	result := RequestResult{Number: number}
	me, err := c.userName(ctx)
	if err != nil {
		return result, err
	}
	var ours []comment
	err = list(ctx, c, c.kind.comments(c.at.Project, number), func(all []comment) bool {
		for _, have := range all {
			if first, _, _ := strings.Cut(have.Body, "\n"); strings.TrimRight(first, "\r") == marker && c.kind.isAuthor(have.author(), me) {
				ours = append(ours, have)
			}
		}
		return true
	})
	if err != nil {
		return result, err
	}
	for _, have := range ours {
		result.URL = have.URL
		if isSameText(have.Body, want) {
			result.Outcome = Unchanged
			return result, nil
		}
		err := c.do(ctx, c.kind.edit, c.kind.comment(c.at.Project, number, have.ID), map[string]string{"body": want}, nil)
		var refused *statusError
		if errors.As(err, &refused) && (refused.code == http.StatusForbidden || refused.code == http.StatusNotFound) {
			continue
		}
		result.Outcome = Updated
		return result, err
	}
	result.URL = ""
	if !create {
		return result, nil
	}
	var got comment
	err = c.do(ctx, http.MethodPost, c.kind.comments(c.at.Project, number), map[string]string{"body": want}, &got)
	result.URL, result.Outcome = got.URL, Opened
	return result, err
}

// userName returns the name of the user who owns the token. It returns "" if the token, such as that of a CI
// job, may not look up its user.
func (c *Client) userName(ctx context.Context) (string, error) {
	var got person
	err := c.do(ctx, http.MethodGet, "user", nil, &got)
	var refused *statusError
	if errors.As(err, &refused) && (refused.code == http.StatusForbidden || refused.code == http.StatusNotFound) {
		return "", nil
	}
	return got.name(), err
}

// isSameText reports whether two texts are equal if line endings and outer white space are ignored:
// some servers change these.
func isSameText(have, want string) bool {
	plain := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return plain(have) == plain(want)
}
