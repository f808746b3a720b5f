package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/suggest"
)

// words returns what may stand where a word begins with prefix.
type words func(ctx context.Context, prefix string) []string

// first offers words for the first argument, and nothing for others.
func first(w words) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return matching(cmd, w, prefix)
	}
}

// offer offers words for a flag.
func (a *app) offer(cmd *cobra.Command, flag string, w words) {
	a.completeBy(cmd, flag, func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return matching(cmd, w, prefix)
	})
}

// complete offers a few words for a flag that are always the same.
func (a *app) complete(cmd *cobra.Command, flag string, words []string) {
	a.completeBy(cmd, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// completeBy has f asked for what may stand behind a flag. Cobra keeps f, and all that
// it knows, for as long as the process lives: so it gets it where a shell asks, alone.
func (a *app) completeBy(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if !a.completes {
		return
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag does not exist: a mistake in this package
	}
}

func matching(cmd *cobra.Command, w words, prefix string) ([]string, cobra.ShellCompDirective) {
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
		directive |= cobra.ShellCompDirectiveNoSpace // a version follows
	}
	return slices.Compact(out), directive
}

// asked returns what a workspace has to offer, found out without a socket; in is the
// one catalog to look in, as --catalog says it.
func (a *app) asked(ctx context.Context, in, prefix string, words func(suggest.Place, context.Context, string) []string) []string {
	a.offline = true
	p, err := a.open()
	if err != nil {
		return nil
	}
	return words(suggest.Place{Workspace: p, Here: a.root(), Catalog: in}, ctx, prefix)
}

func (a *app) pinned(ctx context.Context, prefix string) []string {
	return a.asked(ctx, "", prefix, suggest.Place.Pinned)
}

func (a *app) versions(ctx context.Context, prefix string) []string {
	return a.asked(ctx, "", prefix, suggest.Place.Versions)
}

func (a *app) wishes(ctx context.Context, in, prefix string) []string {
	return a.asked(ctx, in, prefix, suggest.Place.Wishes)
}

func (a *app) catalogs(ctx context.Context, prefix string) []string {
	return a.asked(ctx, "", prefix, suggest.Place.Catalogs)
}

func (a *app) overlays(ctx context.Context, prefix string) []string {
	return a.asked(ctx, "", prefix, suggest.Place.Clusters)
}

func (a *app) namespaces(ctx context.Context, prefix string) []string {
	return a.asked(ctx, "", prefix, suggest.Place.Namespaces)
}

// anyCatalog offers what may be named where there need be no workspace: the names of
// the catalogs, and those that everybody knows.
func (a *app) anyCatalog(ctx context.Context, prefix string) []string {
	return a.asked(ctx, "", prefix, func(at suggest.Place, ctx context.Context, prefix string) []string {
		return append(at.Catalogs(ctx, prefix), knownCatalogs(at.Workspace.Settings.OpenShiftVersion)...)
	})
}

// operators offers the operators of the lock, as many as are wanted.
func (a *app) operators(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return matching(cmd, func(ctx context.Context, prefix string) []string {
		keys := a.asked(ctx, "", prefix, suggest.Place.Operators)
		return slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(args, key) })
	}, prefix)
}
