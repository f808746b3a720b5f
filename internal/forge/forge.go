// Package forge opens and updates pull requests, and keeps one comment of a pull request up to
// date, on the servers that host repositories: GitHub, GitLab, Gitea and Forgejo. It deletes and
// approves nothing, and merges only by the server's automatic merge.
//
// All operations are idempotent: a second run does not change a pull request or comment that is
// already correct. The token is sent only to the configured server, over https or to the local
// machine, and appears in no error.
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

// Outcome is the action taken on a pull request or a comment.
type Outcome string

// The outcomes. Unchanged means that it was already correct.
const (
	Opened    Outcome = "opened"
	Updated   Outcome = "updated"
	Unchanged Outcome = "unchanged"
)

// Pull is the desired pull request. Both branches are in the same repository.
type Pull struct {
	Head  string // "upgrade/dev/ops/etcd"
	Base  string // "main"; "" is the default branch of the repository
	Title string
	Body  string // in Markdown

	// Proposal identifies the proposed changes, in a comment at the end of the text; see Declined.
	Proposal string

	// Labels, Reviewers and Draft apply to a new pull request. A reviewer "team/x" is a team.
	Labels, Reviewers []string
	Draft             bool

	Automerge *Automerge // nil: the automatic merge is not changed
}

// Automerge is the condition for the automatic merge of a pull request.
type Automerge struct {
	Allowed bool          // whether the content allows it
	After   time.Duration // minimum time since the current title was set
	Now     time.Time
	Commit  string // the commit to merge
}

// RequestResult is the outcome of creating or updating a pull request or a comment.
type RequestResult struct {
	Number  int64   `json:"number"`                                       // of the pull request
	URL     string  `json:"url"`                                          // web page, from the server's answer
	Outcome Outcome `json:"outcome" form:"enum=opened|updated|unchanged"` // "" if there is no comment and none is wanted

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

// Propose opens a pull request from p.Head into p.Base, or updates the title and the text
// of the open one. It ignores pull requests from forks, also with the same branch name. A
// closed pull request stays closed, and a new one is opened; see [Client.Declined].
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
		// Another run may have opened it after the lookup.
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
	proposalMark  = "<!-- quayside:proposal "  // begins a line of a text, which identifies the proposal
	withdrawnMark = "<!-- quayside:withdrawn " // begins that line after Withdraw
	proposedMark  = "<!-- quayside:proposed "  // begins the last line of a text, which has the time since the title is proposed
)

// withBase returns p with the default branch as its base, if it has none.
func (c *Client) withBase(ctx context.Context, p Pull) (Pull, error) {
	var err error
	if p.Base == "" {
		p.Base, err = c.defaultBranch(ctx)
	}
	return p, err
}

// maxClosedPages is the number of pages to search for a closed pull request. Only Gitea cannot list the
// pull requests of one branch.
const maxClosedPages = 20

// Declined returns the number of a pull request with the branches and the proposal of p that was closed
// without merging it, or 0 if there is none or one is open.
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

// withOpen calls do with p, into the default branch if it names no other, and the open pull request of
// its branches, or nil. The operation is the beginning of the error.
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

// Withdraw marks the open pull request of p's branches, if there is one, before its branch is deleted, so
// that Declined does not return it.
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
		result.NotSet = err.Error() // an error would keep the caller from opening the next pull request
	}
	return result, c.automerge(ctx, p, got, &result)
}

// update sets the title and the text of an open pull request if they differ.
func (c *Client) update(ctx context.Context, p Pull, have pull) (RequestResult, error) {
	result := RequestResult{Number: have.number(), URL: have.url(), Outcome: Unchanged}
	mark, title := c.kind.splitTitle(have.Title)
	if title == p.Title {
		p.Body = keepProposedLine(p.Body, have.body())
	}
	if title != p.Title || !isSameText(have.body(), p.Body) {
		result.Outcome = Updated
		next := p
		next.Title = mark + p.Title // a person may have made it ready, or a draft
		if err := c.do(ctx, c.kind.edit, c.kind.pull(c.at.Project, result.Number), c.kind.write(next, false), nil); err != nil {
			return result, err
		}
	}
	return result, c.automerge(ctx, p, have, &result)
}

// keepProposedLine returns body with the line of proposedMark from have, if both have one.
func keepProposedLine(body, have string) string {
	i, j := strings.LastIndex(body, proposedMark), strings.LastIndex(have, proposedMark)
	if i < 0 || j < 0 {
		return body
	}
	line, _, _ := strings.Cut(have[j:], "\n")
	return body[:i] + strings.TrimRight(line, "\r") + "\n"
}

// automerge enables the automatic merge if a pull request is old enough. A refusal by the forge is
// part of the result.
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

// CancelAutomerge disables the automatic merge of an open pull request, so that a new commit is not
// merged by an earlier decision.
func (c *Client) CancelAutomerge(ctx context.Context, p Pull) error {
	return c.withOpen(ctx, p, "cancelling the automatic merge of", func(_ Pull, open *pull) error {
		if open == nil {
			return nil
		}
		return c.kind.cancel(ctx, c, *open)
	})
}

// open returns the open pull request of the repository's own branch, or nil.
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

// Comment creates or updates the comment of a pull request that has marker as its first line,
// followed by text. If create is false, it only updates. It ignores such comments by other
// authors, because they could later edit a report that readers trust.
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

// userName returns the user name of the token, or "" if the token has no permission to look it
// up, such as the token of a CI job.
func (c *Client) userName(ctx context.Context) (string, error) {
	var got person
	err := c.do(ctx, http.MethodGet, "user", nil, &got)
	var refused *statusError
	if errors.As(err, &refused) && (refused.code == http.StatusForbidden || refused.code == http.StatusNotFound) {
		return "", nil
	}
	return got.name(), err
}

// isSameText reports whether two texts are equal apart from line endings and outer white space:
// some servers change these.
func isSameText(have, want string) bool {
	plain := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return plain(have) == plain(want)
}
