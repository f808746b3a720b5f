package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/diff/state"
	"github.com/quayside/quayside/internal/forge"
)

// addForge gives cmd the flag --forge.
func addForge(cmd *cobra.Command, a *app, kind *string) {
	cmd.Flags().StringVar(kind, "forge", "", "the `KIND` of server that the remote is on: github, gitlab or gitea (default: known by its address, or by the CI job)")
	a.complete(cmd, "forge", forge.Kinds())
}

// postComment keeps the comment of a pull request that has the report of this workspace.
// Where nothing differs there is none, unless one of an earlier commit stands there.
func (o *diffOptions) postComment(ctx context.Context, c *state.Comparison, r *diff.Report) error {
	remote, err := c.Remote("origin")
	if err != nil {
		return err
	}
	client, err := forge.Open(o.forge, remote, o.getenv)
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
