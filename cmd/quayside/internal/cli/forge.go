package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/compare"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/forge"
)

// addForge adds the flag --forge to cmd.
func addForge(cmd *cobra.Command, a *app, kind *string) {
	cmd.Flags().StringVar(kind, "forge", "", "the `KIND` of forge: github, gitlab or gitea (default: derived from the remote or the CI job)")
	a.complete(cmd, "forge", forge.Kinds())
}

// postComment creates or updates the comment on a pull request with the report. If the report is
// empty, it only updates an existing comment.
func (o *diffOptions) postComment(ctx context.Context, c *compare.Comparison, r *diff.Report) error {
	remote, err := c.Remote("origin")
	if err != nil {
		return err
	}
	marker, text := diff.Comment(r, c.InRepo(""))
	return o.sendComment(ctx, o.forge, remote, o.comment, marker, text, !r.Empty())
}

// postFailure replaces the report in a pull request's comment by the errors of verify.
func (o *verifyOptions) postFailure(ctx context.Context, failed error) error {
	dir, err := o.workspaceDir()
	if err != nil {
		return err
	}
	repo, name, err := workspace.Dir(dir).OpenRepo()
	if err != nil {
		return err
	}
	remote, err := repo.Address("origin")
	if err != nil {
		return err
	}
	marker, text := diff.FailureComment(failed.Error(), name)
	return o.sendComment(ctx, o.forge, remote, o.comment, marker, text, true)
}

// sendComment creates or updates a comment in the forge of a remote, and logs the outcome. kind is the kind of the
// forge; if it is empty, it is derived from the remote.
func (a *app) sendComment(ctx context.Context, kind, remote string, number int64, marker, text string, create bool) error {
	client, err := forge.Open(kind, remote, a.getenv)
	if err != nil {
		return err
	}
	result, err := client.Comment(ctx, number, marker, text, create)
	if err != nil {
		return err
	}
	if result.Outcome != "" {
		a.log.Note("comment on pull request %d: %s", result.Number, result.Outcome)
	}
	return nil
}

// addComment adds the flags --comment and --forge to cmd.
func addComment(cmd *cobra.Command, a *app, number *int64, kind *string, usage string) {
	cmd.Flags().Int64Var(number, "comment", 0, usage)
	addForge(cmd, a, kind)
}

// checkComment returns an error for invalid values of --comment and --forge.
func checkComment(cmd *cobra.Command, number int64, kind string) error {
	if cmd.Flags().Changed("comment") && number < 1 {
		return Usagef(cmd, "--comment %d: must be the number of a pull request", number)
	}
	if kind != "" && number == 0 {
		return Usagef(cmd, "--forge requires --comment NUMBER")
	}
	return nil
}
