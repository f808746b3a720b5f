package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/diff/state"
	"github.com/quayside/quayside/internal/forge"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/propose"
)

// addForge gives cmd the flag --forge.
func addForge(cmd *cobra.Command, kind *string) {
	cmd.Flags().StringVar(kind, "forge", "", "the `KIND` of server that the remote is on: github, gitlab or gitea (default: known by its address, or by the CI job)")
	complete(cmd, "forge", forge.Kinds())
}

// requestView is a pull request, and what was done to it.
type requestView struct {
	Number  int64         `json:"number"`
	URL     string        `json:"url"`
	Outcome forge.Outcome `json:"outcome" form:"enum=opened|updated|unchanged"`
}

// forgeAt returns the client for the repository that is pushed to at remote.
func (a *app) forgeAt(kind, remote string) (*forge.Client, error) {
	at, err := forge.Locate(kind, remote, a.getenv)
	if err != nil {
		return nil, err
	}
	return forge.New(at, a.env["GIT_TOKEN"])
}

// request has a pull request for a branch that was pushed.
func (o *resolveOptions) request(ctx context.Context, made *propose.Proposal, branch string, text []byte) (*requestView, error) {
	remote, err := made.Remote(o.proposal.push)
	if err != nil {
		return nil, err
	}
	client, err := o.forgeAt(o.proposal.forge, remote)
	if err != nil {
		return nil, err
	}
	got, err := client.Propose(ctx, forge.Pull{Head: branch, Base: o.proposal.into, Title: made.Title(), Body: string(text)})
	if err != nil {
		return nil, err
	}
	o.talk.Note("pull request %d of %s: %s", got.Number, inert.Line(branch), got.Outcome)
	return &requestView{got.Number, inert.Line(got.URL), got.Outcome}, nil
}

// postComment keeps the comment of a pull request that has the report of this workspace.
// Where nothing differs there is none, unless one of an earlier commit stands there.
func (o *diffOptions) postComment(ctx context.Context, c *state.Comparison, r *diff.Report) error {
	remote, err := c.Remote("origin")
	if err != nil {
		return err
	}
	client, err := o.forgeAt(o.forge, remote)
	if err != nil {
		return err
	}
	marker, text := diff.Comment(r, c.InRepo(""))
	made, err := client.Comment(ctx, o.comment, marker, text, !r.Empty())
	if err != nil {
		return err
	}
	if made.Outcome != "" {
		o.talk.Note("comment on %d: %s", made.Number, made.Outcome)
	}
	return nil
}
