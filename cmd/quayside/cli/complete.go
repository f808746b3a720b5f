package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
)

// What a shell is offered comes from the lock, the declarations and the
// catalogs that are here: completing a word opens no socket. Whatever cannot be
// read offers nothing, for the command itself says what is wrong.

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
func offer(cmd *cobra.Command, flag string, w words) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return matching(cmd, w, prefix)
	})
	if err != nil {
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
	return slices.Compact(out), cobra.ShellCompDirectiveNoFileComp
}

// quietly opens the workspace for a completion: without a socket.
func (a *app) quietly() *project.Project {
	a.offline = true
	p, err := a.open()
	if err != nil {
		return nil
	}
	return p
}

// pins returns what the lock pins, if there is one that can be read.
func (a *app) pins() []lockfile.Pin {
	p := a.quietly()
	if p == nil {
		return nil
	}
	lock, err := p.Lock()
	if err != nil {
		return nil
	}
	return lock.Pins
}

// pinned offers the operators of the lock: namespace/package, and the package
// alone once that is how the word begins.
func (a *app) pinned(_ context.Context, prefix string) []string {
	var out []string
	for _, p := range a.pins() {
		out = append(out, p.Key())
		if prefix != "" && !strings.Contains(prefix, "/") {
			out = append(out, p.Package)
		}
	}
	return out
}

// operators offers the operators of the lock, as many as are wanted.
func (a *app) operators(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return matching(cmd, func(context.Context, string) []string {
		var out []string
		for _, p := range a.pins() {
			if !slices.Contains(args, p.Key()) {
				out = append(out, p.Key())
			}
		}
		return out
	}, prefix)
}

// versions offers the operators of the lock, and behind an @ the versions that
// the catalogs have of one.
func (a *app) versions(ctx context.Context, prefix string) []string {
	key, _, at := strings.Cut(prefix, "@")
	if !at {
		return a.pinned(ctx, prefix)
	}
	pkg := key[strings.LastIndex(key, "/")+1:]
	var out []string
	a.browse(ctx, func(sh *cache.Shelf) {
		x, err := sh.Pick(ctx, cache.Only(pkg))
		if err != nil {
			return
		}
		for _, c := range x.Catalogs() {
			if p, ok := c.Package(pkg); ok {
				for _, b := range p.Bundles() {
					out = append(out, key+"@"+b.Version().String())
				}
			}
		}
	})
	return out
}

// packages offers the packages of the catalogs.
func (a *app) packages(ctx context.Context, _ string) []string {
	var out []string
	a.browse(ctx, func(sh *cache.Shelf) {
		found, err := sh.Search(ctx, nil)
		if err != nil {
			return
		}
		for _, p := range found {
			out = append(out, p.Name)
		}
	})
	return out
}

// declared returns the workspace and its catalogs, nil where they cannot be read.
func (a *app) declared() (*project.Project, []cache.Catalog) {
	p := a.quietly()
	if p == nil {
		return nil, nil
	}
	set, err := p.Declarations()
	if err != nil {
		return nil, nil
	}
	return p, p.Catalogs(set)
}

// browse opens the catalogs as far as they are here.
func (a *app) browse(ctx context.Context, look func(*cache.Shelf)) {
	p, catalogs := a.declared()
	if p == nil {
		return
	}
	locked, err := p.Lock()
	if err != nil {
		locked = nil
	}
	sh, err := p.Shelf(ctx, catalogs, locked, false)
	if err != nil {
		return
	}
	defer sh.Close()
	look(sh)
}

// catalogs offers the names of the catalogs.
func (a *app) catalogs(context.Context, string) []string {
	var out []string
	_, catalogs := a.declared()
	for _, c := range catalogs {
		out = append(out, c.ID.String())
	}
	return out
}

// overlays offers the names of the clusters.
func (a *app) overlays(context.Context, string) []string {
	p := a.quietly()
	if p == nil {
		return nil
	}
	return p.Clusters()
}

// namespaces offers the install namespaces of the lock.
func (a *app) namespaces(context.Context, string) []string {
	var out []string
	for _, p := range a.pins() {
		out = append(out, p.Namespace)
	}
	return out
}
