package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
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
	directive := cobra.ShellCompDirectiveNoFileComp
	if len(out) == 1 && strings.Contains(out[0]+"\t", "@\t") {
		directive |= cobra.ShellCompDirectiveNoSpace // a version follows
	}
	return slices.Compact(out), directive
}

// quietly looks at the workspace for a completion: without a socket.
func (a *app) quietly(look func(*project.Project) error) {
	a.offline = true
	if p, err := a.open(); err == nil {
		_ = look(p)
	}
}

// ofPins offers what word returns of each pin of the lock.
func (a *app) ofPins(word func(lockfile.Pin) string) []string {
	var out []string
	a.quietly(func(p *project.Project) error {
		lock, err := p.Lock()
		if err != nil {
			return err
		}
		for _, pin := range lock.Pins {
			out = append(out, word(pin))
		}
		return nil
	})
	return out
}

// pinned offers the operators of the lock: namespace/package, and the package
// alone once that is how the word begins, where one namespace has it.
func (a *app) pinned(_ context.Context, prefix string) []string {
	out := a.ofPins(lockfile.Pin.Key)
	if prefix == "" || strings.Contains(prefix, "/") {
		return out
	}
	names := a.ofPins(func(p lockfile.Pin) string { return p.Package })
	for i, name := range names {
		if !slices.Contains(names[:i], name) && !slices.Contains(names[i+1:], name) {
			out = append(out, name)
		}
	}
	return out
}

// operators offers the operators of the lock, as many as are wanted.
func (a *app) operators(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return matching(cmd, func(context.Context, string) []string {
		return slices.DeleteFunc(a.ofPins(lockfile.Pin.Key), func(key string) bool { return slices.Contains(args, key) })
	}, prefix)
}

// versions offers the operators of the lock, and behind an @ the versions that
// the catalogs have of one.
func (a *app) versions(ctx context.Context, prefix string) []string {
	key, _, at := strings.Cut(prefix, "@")
	if !at {
		return a.pinned(ctx, prefix)
	}
	var out []string
	a.each(ctx, "", key[strings.LastIndex(key, "/")+1:], func(p *catalog.Package) {
		for _, b := range p.Bundles() {
			out = append(out, key+"@"+b.Version().String())
		}
	})
	return out
}

// wishes offers the packages of the catalogs, and behind an @ the channels and the
// versions of one.
func (a *app) wishes(ctx context.Context, in, prefix string) []string {
	name, _, at := strings.Cut(prefix, "@")
	if !at {
		return a.packages(ctx, in)
	}
	var out []string
	a.each(ctx, in, name, func(p *catalog.Package) {
		for _, c := range p.ChannelNames() {
			out = append(out, name+"@"+c)
		}
		for _, b := range p.Bundles() {
			out = append(out, name+"@"+b.Version().String())
		}
	})
	return out
}

// each hands out the packages of that name in the catalogs, or in the one that
// --catalog says.
func (a *app) each(ctx context.Context, in, name string, take func(*catalog.Package)) {
	a.browse(ctx, in, func(sh *cache.Shelf) error {
		x, err := sh.Pick(ctx, cache.Only(name))
		if err != nil {
			return err
		}
		for _, c := range x.Catalogs() {
			if p, ok := c.Package(name); ok {
				take(p)
			}
		}
		return nil
	})
}

// packages offers the packages of the catalogs, or of the one that --catalog says.
func (a *app) packages(ctx context.Context, in string) []string {
	var out []string
	a.browse(ctx, in, func(sh *cache.Shelf) error {
		found, err := sh.Search(ctx, nil)
		for _, p := range found {
			out = append(out, p.Name)
		}
		return err
	})
	return out
}

// declared looks at the workspace and its catalogs.
func (a *app) declared(look func(*project.Project, []cache.Catalog) error) {
	a.quietly(func(p *project.Project) error {
		set, err := p.DeclarationsIfAny()
		if err != nil {
			return err
		}
		return look(p, p.Catalogs(set))
	})
}

// browse looks into the catalogs, or the one that --catalog says, as far as they are
// here.
func (a *app) browse(ctx context.Context, in string, look func(*cache.Shelf) error) {
	a.declared(func(p *project.Project, catalogs []cache.Catalog) error {
		p, catalogs, err := (&catalogOptions{app: a, catalog: in}).chosen(&cobra.Command{}, p, catalogs)
		if err != nil {
			return err
		}
		locked, _ := p.Lock() // without it, what a tag stands for is not known
		sh, err := p.Shelf(ctx, catalogs, locked, false)
		if err != nil {
			return err
		}
		defer sh.Close()
		return look(sh)
	})
}

// anyCatalog offers what may be named where there need be no workspace: the names of
// the catalogs, and those that everybody knows.
func (a *app) anyCatalog(ctx context.Context, prefix string) []string {
	out := a.catalogs(ctx, prefix)
	a.quietly(func(p *project.Project) error {
		out = append(out, knownCatalogs(p.Settings.OpenShiftVersion)...)
		return nil
	})
	return out
}

// catalogs offers the names of the catalogs.
func (a *app) catalogs(context.Context, string) []string {
	var out []string
	a.declared(func(_ *project.Project, catalogs []cache.Catalog) error {
		for _, c := range catalogs {
			out = append(out, c.ID.String())
		}
		return nil
	})
	return out
}

// overlays offers the names of the clusters.
func (a *app) overlays(context.Context, string) []string {
	var out []string
	a.quietly(func(p *project.Project) error {
		out = p.Clusters()
		return nil
	})
	return out
}

// namespaces offers the install namespaces of the lock.
func (a *app) namespaces(context.Context, string) []string {
	return a.ofPins(func(p lockfile.Pin) string { return p.Namespace })
}
