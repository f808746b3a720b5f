package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/app/compare"
	"github.com/quayside/quayside/internal/base/forge"
)

// addForge adds the flag --forge to cmd.
func addForge(cmd *cobra.Command, a *app, kind *string) {
	cmd.Flags().StringVar(kind, "forge", "", "the `KIND` of forge: github, gitlab or gitea (default: derived from the remote or the CI job)")
	a.complete(cmd, "forge", forge.Kinds())
}

// postComment creates or updates the comment of a pull request with the report. For an empty
// report it only updates an existing comment.
func (o *diffOptions) postComment(ctx context.Context, c *compare.Comparison, r *diff.Report) error {
	remote, err := c.Remote("origin")
	if err != nil {
		return err
	}
	client, err := forge.Open(o.forge, remote, o.getenv)
	if err != nil {
		return err
	}
	marker, text := diff.Comment(r, c.InRepo(""))
	result, err := client.Comment(ctx, o.comment, marker, text, !r.Empty())
	if err != nil {
		return err
	}
	if result.Outcome != "" {
		o.log.Note("comment on pull request %d: %s", result.Number, result.Outcome)
	}
	return nil
}
