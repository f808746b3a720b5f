package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/spf13/cobra"
)

// words returns the completions of prefix.
type words func(ctx context.Context, prefix string) []string

// completeFirst completes the first argument with the results of w.
func completeFirst(w words) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return matchingWords(cmd, w, prefix)
	}
}

// completeEach completes each argument with the results of w.
func completeEach(w words) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return matchingWords(cmd, w, prefix)
	}
}

// offer completes the values of a flag with the results of w.
func (a *app) offer(cmd *cobra.Command, flag string, w words) {
	a.completeBy(cmd, flag, completeEach(w))
}

// complete completes the values of a flag with fixed words.
func (a *app) complete(cmd *cobra.Command, flag string, words []string) {
	a.completeBy(cmd, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// completeBy completes a flag with f. It registers f only if the shell requests completions,
// because a registered function stays in memory until the process ends.
func (a *app) completeBy(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if !a.isCompletion {
		return
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag does not exist, which is a bug in this package
	}
}

func matchingWords(cmd *cobra.Command, w words, prefix string) ([]string, cobra.ShellCompDirective) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	var out []string
	for _, word := range w(ctx, prefix) {
		if strings.HasPrefix(word, prefix) {
			out = append(out, word)
		}
	}
	slices.Sort(out)
	directive := cobra.ShellCompDirectiveNoFileComp
	if len(out) == 1 && strings.Contains(out[0]+"\t", "@\t") {
		directive |= cobra.ShellCompDirectiveNoSpace // the user types a version next
	}
	return slices.Compact(out), directive
}

// workspaceCompletions opens the workspace without network access, and returns the results of words. in
// is the catalog to search, in the format of --catalog; if it is empty, words searches all catalogs.
func (a *app) workspaceCompletions(ctx context.Context, in, prefix string, words func(edit.Completer, context.Context, string) []string) []string {
	a.offline = true
	p, err := a.open()
	if err != nil {
		return nil
	}
	return words(edit.Completer{Workspace: p, Here: a.root(), Catalog: in}, ctx, prefix)
}

// completions returns a shell completion function, which opens the workspace and suggests the results of words.
func (a *app) completions(words func(edit.Completer, context.Context, string) []string) func(context.Context, string) []string {
	return func(ctx context.Context, prefix string) []string {
		return a.workspaceCompletions(ctx, "", prefix, words)
	}
}

// anyCatalogCompletions returns the catalogs of the workspace, if there is one, and the well-known
// catalogs.
func (a *app) anyCatalogCompletions(ctx context.Context, prefix string) []string {
	return a.workspaceCompletions(ctx, "", prefix, func(at edit.Completer, ctx context.Context, prefix string) []string {
		return append(at.Catalogs(ctx, prefix), knownCatalogs(at.Workspace.Settings.OpenShiftVersion)...)
	})
}

// completeOperators completes each argument with the operators in the lock that are not yet given.
func (a *app) completeOperators(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return matchingWords(cmd, func(ctx context.Context, prefix string) []string {
		keys := a.workspaceCompletions(ctx, "", prefix, edit.Completer.Operators)
		return slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(args, key) })
	}, prefix)
}
