// Package forge opens and updates pull requests, and keeps one comment of a pull
// request up to date, on the servers that host repositories: GitHub, GitLab, and
// Gitea with its kin. It deletes, merges and approves nothing.
//
// Everything is done in place: what a second run finds as it should be it leaves
// alone, so that it may be run any number of times. The token goes to the one
// server that is asked, over https or to this machine alone, and is in no error.
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
)

// Outcome says what was done to what is to be there.
type Outcome string

// What can be done. Nothing is done to what is as it should be.
const (
	Opened    Outcome = "opened"
	Updated   Outcome = "updated"
	Unchanged Outcome = "unchanged"
)

// Pull is a pull request as it should be. Both branches are in the same repository.
type Pull struct {
	Head  string // "upgrade/dev/ops/etcd"
	Base  string // "main"; "" is the default branch of the repository
	Title string
	Body  string // in Markdown
}

// Made is what became of a pull request or a comment.
type Made struct {
	Number  int64   `json:"number"`                                       // of the pull request
	URL     string  `json:"url"`                                          // where a person reads it, as the server says
	Outcome Outcome `json:"outcome" form:"enum=opened|updated|unchanged"` // "" where there is nothing, and nothing was to be made
}

// Client speaks with one repository of a forge.
type Client struct {
	at    Address
	kind  kind
	token string
	http  *http.Client
}

// Propose has a pull request for p.Head into p.Base: it opens one, or gives the one
// that is open the title and the text. One from a fork is somebody else's,
// whatever its branch is called. One that was closed stays closed, and another is
// opened.
func (c *Client) Propose(ctx context.Context, p Pull) (Made, error) {
	doing := fmt.Sprintf("proposing %s in %s", p.Head, c.at.Project)
	if p.Base == "" {
		var err error
		if p.Base, err = c.defaultBranch(ctx); err != nil {
			return Made{}, fmt.Errorf("%s: %w", doing, err)
		}
	}
	made, err := c.propose(ctx, p)
	var refused *statusError
	if errors.As(err, &refused) && (refused.code == http.StatusUnprocessableEntity || refused.code == http.StatusConflict) {
		// Another run may have opened it after the look.
		if open, again := c.open(ctx, p); again == nil && open != nil {
			made, err = c.update(ctx, p, *open)
		}
	}
	if err != nil {
		return Made{}, fmt.Errorf("%s: %w", doing, err)
	}
	return made, nil
}

func (c *Client) propose(ctx context.Context, p Pull) (Made, error) {
	open, err := c.open(ctx, p)
	switch {
	case err != nil:
		return Made{}, err
	case open != nil:
		return c.update(ctx, p, *open)
	}
	var got pull
	err = c.do(ctx, http.MethodPost, c.kind.pulls(c.at.Project), c.kind.write(p, true), &got)
	return Made{Number: got.number(), URL: got.url(), Outcome: Opened}, err
}

// update gives an open pull request the title and the text that it should have.
func (c *Client) update(ctx context.Context, p Pull, have pull) (Made, error) {
	made := Made{Number: have.number(), URL: have.url(), Outcome: Unchanged}
	if have.Title == p.Title && same(have.body(), p.Body) {
		return made, nil
	}
	made.Outcome = Updated
	return made, c.do(ctx, c.kind.edit, c.kind.pull(c.at.Project, made.Number), c.kind.write(p, false), nil)
}

// open returns the open pull request of the repository's own branch, nil where there
// is none.
func (c *Client) open(ctx context.Context, p Pull) (*pull, error) {
	var found *pull
	err := list(ctx, c, c.kind.pulls(c.at.Project)+"?"+c.kind.find(c.at.Project, p), func(all []pull) bool {
		i := slices.IndexFunc(all, func(have pull) bool { return have.is(c.at.Project, p) })
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
		err = errors.New("the server names no default branch")
	}
	return got.DefaultBranch, err
}

// Comment keeps one comment of a pull request: the one whose first line is marker,
// which is put before text. Without one it is made, but not where create is false.
// One that begins so and is somebody else's is left alone: it may be changed by whoever
// wrote it, and would be believed to be the report.
func (c *Client) Comment(ctx context.Context, number int64, marker, text string, create bool) (Made, error) {
	want := marker + "\n" + text
	made, err := c.comment(ctx, number, marker, want, create)
	if err != nil {
		return Made{}, fmt.Errorf("commenting on %d in %s: %w", number, c.at.Project, err)
	}
	return made, nil
}

func (c *Client) comment(ctx context.Context, number int64, marker, want string, create bool) (Made, error) {
	made := Made{Number: number}
	me, err := c.me(ctx)
	if err != nil {
		return made, err
	}
	var ours []comment
	err = list(ctx, c, c.kind.comments(c.at.Project, number), func(all []comment) bool {
		for _, have := range all {
			if first, _, _ := strings.Cut(have.Body, "\n"); strings.TrimRight(first, "\r") == marker && c.kind.by(have.author(), me) {
				ours = append(ours, have)
			}
		}
		return true
	})
	if err != nil {
		return made, err
	}
	for _, have := range ours {
		made.URL = have.URL
		if same(have.Body, want) {
			made.Outcome = Unchanged
			return made, nil
		}
		err := c.do(ctx, c.kind.edit, c.kind.one(c.at.Project, number, have.ID), map[string]string{"body": want}, nil)
		var refused *statusError
		if errors.As(err, &refused) && (refused.code == http.StatusForbidden || refused.code == http.StatusNotFound) {
			continue
		}
		made.Outcome = Updated
		return made, err
	}
	made.URL = ""
	if !create {
		return made, nil
	}
	var got comment
	err = c.do(ctx, http.MethodPost, c.kind.comments(c.at.Project, number), map[string]string{"body": want}, &got)
	made.URL, made.Outcome = got.URL, Opened
	return made, err
}

// me returns who the token is; empty where it may not ask, as that of a job may not.
func (c *Client) me(ctx context.Context) (string, error) {
	var got person
	err := c.do(ctx, http.MethodGet, "user", nil, &got)
	var refused *statusError
	if errors.As(err, &refused) && (refused.code == http.StatusForbidden || refused.code == http.StatusNotFound) {
		return "", nil
	}
	return got.name(), err
}

// same reports whether a server has a text: some of them change how lines end, and
// what stands after the last one.
func same(have, want string) bool {
	plain := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return plain(have) == plain(want)
}
