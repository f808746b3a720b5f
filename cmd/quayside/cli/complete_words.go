package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/lockfile"
)

// What a shell is offered comes from the lock, the declarations and the
// catalogs that are here: completing a word opens no socket. Whatever cannot be
// read offers nothing, for the command itself says what is wrong.

// addCompletions gives the commands below root the words for their arguments
// and flags.
func addCompletions(a *app, root *cobra.Command) {
	for _, path := range []string{"catalog show", "catalog channels", "catalog graph"} {
		cmd := command(root, path)
		cmd.ValidArgsFunction = first(a.packages)
		offer(cmd, "catalog", a.catalogs)
	}
	for _, path := range []string{"catalog list", "catalog search"} {
		cmd := command(root, path)
		cmd.ValidArgsFunction = cobra.NoFileCompletions
		offer(cmd, "catalog", a.catalogs)
	}
	for _, path := range []string{"resolve", "render", "verify", "outdated", "tree", "images", "vendor", "mirror", "version"} {
		command(root, path).ValidArgsFunction = cobra.NoFileCompletions
	}
	command(root, "why").ValidArgsFunction = first(a.pinned)
	command(root, "why-not").ValidArgsFunction = first(a.versions)
	command(root, "status").ValidArgsFunction = a.operators
	offer(command(root, "status"), "cluster", a.overlays)
	offer(command(root, "resolve"), "upgrade", a.versions)
	offer(command(root, "diff"), "upgrade", a.versions)
	offer(command(root, "render"), "overlay", a.overlays)
	offer(command(root, "catalog graph"), "namespace", a.namespaces)
	if err := root.MarkPersistentFlagDirname("directory"); err != nil {
		panic(err) // the flag does not exist: a mistake in this package
	}
}

// command returns the command of that path below root.
func command(root *cobra.Command, path string) *cobra.Command {
	cmd, rest, err := root.Find(strings.Fields(path))
	if err != nil || len(rest) > 0 {
		panic("no command " + path)
	}
	return cmd
}

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

// pins returns what the lock pins, if there is one that can be read.
func (a *app) pins() []lockfile.Pin {
	s, err := a.open()
	if err != nil {
		return nil
	}
	lock, err := s.lock(lockFile)
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
	a.browse(ctx, func(sh *shelf) {
		x, err := sh.pick(only(pkg))
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
	a.browse(ctx, func(sh *shelf) {
		rows, _, err := sh.rows(nil)
		if err != nil {
			return
		}
		for _, r := range rows {
			out = append(out, r.Package)
		}
	})
	return out
}

// browse opens the catalogs as far as they are here.
func (a *app) browse(ctx context.Context, look func(*shelf)) {
	s, err := a.open()
	if err != nil {
		return
	}
	set, err := s.declarations()
	if err != nil {
		return
	}
	locked, err := s.lock(lockFile)
	if err != nil {
		locked = nil
	}
	sh, err := s.shelf(ctx, s.sources(set), locked, true, false)
	if err != nil {
		return
	}
	defer sh.close()
	look(sh)
}

// catalogs offers the names of the catalogs.
func (a *app) catalogs(context.Context, string) []string {
	s, err := a.open()
	if err != nil {
		return nil
	}
	set, err := s.declarations()
	if err != nil {
		return nil
	}
	var out []string
	for _, src := range s.sources(set) {
		out = append(out, src.id.String())
	}
	return out
}

// overlays offers the names of the clusters.
func (a *app) overlays(context.Context, string) []string {
	s, err := a.open()
	if err != nil {
		return nil
	}
	return s.clusterNames()
}

// namespaces offers the install namespaces of the lock.
func (a *app) namespaces(context.Context, string) []string {
	var out []string
	for _, p := range a.pins() {
		out = append(out, p.Namespace)
	}
	return out
}
