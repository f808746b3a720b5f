package edit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/subscription"
)

// Wish is what somebody wants to have declared.
type Wish struct {
	Packages  []string // each "package", "package@channel", "package@1.2.3" or "package@>=1.2 <2"
	Namespace string   // for all of them; "" for what each suggests, else its own name
	Catalog   string   // "[namespace/]name"; "" for the only one that has the package
	Watch     []string // namespaces; "*" alone: all; nil: what each operator prefers
	To        string   // the entry of spec.declarations to write to; "" for the default

	// Choose asks a person for one of several options; nil takes the first.
	Choose func(ctx context.Context, question string, options []string) (string, error)
}

// Add declares operators.
func Add(ctx context.Context, p *project.Project, w Wish) (*Edit, error) {
	set, err := p.DeclarationsIfAny()
	if err != nil {
		return nil, err
	}
	a := adder{project: p, wish: w, set: set, dialect: dialect(set), files: map[string]addition{}}
	if a.to, err = destination(ctx, p, w); err != nil {
		return nil, err
	}
	if err := a.look(ctx); err != nil {
		return nil, err
	}
	var faults diag.List
	for _, text := range w.Packages {
		if err := a.add(ctx, text); err != nil {
			faults.Add(diag.Pos{File: text}, err)
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	files, merged, err := a.outcome()
	if err != nil {
		return nil, err
	}
	e, err := finish(ctx, p, merged, files, false)
	if err != nil {
		return nil, diag.Moved(err, a.asked)
	}
	if e.Resolution.Lock == nil {
		a.point(e.Resolution)
	}
	return e, nil
}

// destination returns where declarations are written to. It asks where that is
// ambiguous.
func destination(ctx context.Context, p *project.Project, w Wish) (project.DeclarationPath, error) {
	candidates, err := p.NewDeclarations(w.To)
	if err != nil {
		return project.DeclarationPath{}, err
	}
	if len(candidates) == 1 {
		return candidates[0], nil
	}
	var paths []string
	for _, c := range candidates {
		paths = append(paths, c.Path)
	}
	if w.Choose == nil {
		return project.DeclarationPath{}, fmt.Errorf("several of spec.declarations can take new declarations: choose one with --to (%s), or set spec.newDeclarations", strings.Join(paths, ", "))
	}
	chosen, err := w.Choose(ctx, "where to write declarations", paths)
	if err != nil {
		return project.DeclarationPath{}, err
	}
	return candidates[slices.Index(paths, chosen)], nil
}

type adder struct {
	project *project.Project
	to      project.DeclarationPath
	wish    Wish
	set     *subscription.Set
	dialect subscription.Dialect
	index   *catalog.Index
	files   map[string]addition // by path
	drafts  []draft
	places  []place // of the drafts
}

// place is where a draft begins, and by which argument.
type place struct {
	file string
	line int
	text string
}

// look reads the packages that are wished for.
func (a *adder) look(ctx context.Context) error {
	lock, err := a.project.LockIfAny()
	if err != nil {
		return err
	}
	all := a.project.Catalogs(a.set)
	if len(all) == 0 {
		return errors.New("no catalog to look in: 'quayside init --catalog' makes a workspace with one, spec.catalogs of quayside.yaml adds another")
	}
	sh, err := a.project.Shelf(ctx, all, lock, false)
	if err != nil {
		return err
	}
	defer sh.Close()
	var names []string
	for _, text := range a.wish.Packages {
		name, _, _ := strings.Cut(text, "@")
		names = append(names, name)
	}
	if a.index, err = sh.Pick(ctx, cache.Only(names...)); err != nil {
		return err
	}
	_, err = a.project.Broken(a.index)
	return err
}

// add makes the declaration of one package.
func (a *adder) add(ctx context.Context, text string) error {
	name, at, _ := strings.Cut(text, "@")
	pkg, err := a.pick(name)
	if err != nil {
		return err
	}
	d := draft{dialect: a.dialect, name: name, pkg: name}
	if id := pkg.Catalog().ID(); a.fits(id) && (len(a.index.Having(name)) > 1 || a.dialect == subscription.V0) {
		d.catalog = id
	} else if !a.fits(id) {
		d.dialect = subscription.Quayside
		if len(a.index.Having(name)) > 1 {
			d.catalog = id
		}
	}
	b, err := a.version(ctx, &d, pkg, at)
	if err != nil {
		return err
	}
	d.namespace = cmp.Or(a.wish.Namespace, project.SuggestedNamespace(b.Metadata().Annotations), name)
	if have := declaredAs(a.set, d.namespace+"/"+name); len(have) > 0 {
		return fmt.Errorf("%s/%s is declared already, at %s", d.namespace, name, have[0].Pos)
	}
	if slices.ContainsFunc(a.drafts, func(o draft) bool { return o.namespace == d.namespace && o.pkg == d.pkg }) {
		return fmt.Errorf("%s is asked for twice", name)
	}
	if err := a.watch(&d, b); err != nil {
		return err
	}
	a.drafts = append(a.drafts, d)
	return a.place(d, text)
}

// fits reports whether a declaration of the workspace's dialect can name a catalog.
func (a *adder) fits(id catalog.ID) bool {
	namespaced := id.Namespace != ""
	return a.dialect == subscription.Quayside || namespaced == (a.dialect == subscription.V0)
}

// pick returns the package of that name.
func (a *adder) pick(name string) (*catalog.Package, error) {
	var found []*catalog.Package
	var names, have []string
	for _, c := range a.index.Catalogs() {
		if a.wish.Catalog != "" && a.wish.Catalog != c.ID().Name && a.wish.Catalog != c.ID().String() {
			continue
		}
		names = append(names, c.Names()...)
		if p, ok := c.Package(name); ok {
			found, have = append(found, p), append(have, c.ID().String())
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("package %q is in several catalogs: say which with --catalog (%s)", name, strings.Join(have, ", "))
	case len(names) == 0 && a.wish.Catalog != "":
		return nil, fmt.Errorf("no catalog %q", a.wish.Catalog)
	}
	hint := diag.DidYouMean(name, names)
	if hint == "" {
		hint = fmt.Sprintf(": 'quayside catalog search %s' looks for what mentions it", name)
	}
	return nil, fmt.Errorf("no package %q in the catalogs%s", name, hint)
}

// version says in d which versions are wanted, and returns the bundle that stands
// for them.
func (a *adder) version(ctx context.Context, d *draft, pkg *catalog.Package, at string) (*catalog.Bundle, error) {
	channel, ok := pkg.Channel(cmp.Or(at, pkg.DefaultChannel()))
	if ok && at == "" && a.wish.Choose != nil && len(pkg.Channels()) > 1 {
		others := slices.DeleteFunc(pkg.ChannelNames(), func(name string) bool { return name == pkg.DefaultChannel() })
		names := append([]string{pkg.DefaultChannel()}, others...)
		name, err := a.wish.Choose(ctx, "channel of "+pkg.Name(), names)
		if err != nil {
			return nil, err
		}
		channel, ok = pkg.Channel(name)
	}
	if ok {
		d.channel = channel.Name()
		return channel.Head().Bundle(), nil
	}
	within, err := olm.ParseVersions(at)
	if err != nil {
		return nil, fmt.Errorf("package %q has no channel %q, and that is no version or range of versions%s", pkg.Name(), at, diag.DidYouMean(at, pkg.ChannelNames()))
	}
	b, channel := newest(pkg, within)
	if b == nil {
		return nil, fmt.Errorf("package %q has no version %s", pkg.Name(), at)
	}
	if d.dialect != subscription.V0 {
		d.version = at
		return b, nil
	}
	d.channel, d.start = channel.Name(), b.Name()
	return b, nil
}

// newest returns the highest version of a package that is wanted, and the channel to
// take it from: the default one where it has that version.
func newest(pkg *catalog.Package, within func(version string) bool) (best *catalog.Bundle, in *catalog.Channel) {
	for _, c := range pkg.Channels() {
		for _, e := range c.Entries() {
			b := e.Bundle()
			if b == nil || !within(b.Version().String()) {
				continue
			}
			by := 1
			if best != nil {
				by = cmp.Or(b.Version().Compare(best.Version()), b.CompareReleases(best))
			}
			if by > 0 || by == 0 && c.Name() == pkg.DefaultChannel() {
				best, in = b, c
			}
		}
	}
	return best, in
}

// watch says in d which namespaces the operator watches.
func (a *adder) watch(d *draft, b *catalog.Bundle) error {
	modes := b.Metadata().InstallModes
	groups := a.set.OperatorGroupsIn(d.namespace)
	switch {
	case a.wish.Watch != nil:
		watch := a.wish.Watch
		if slices.Equal(watch, []string{"*"}) {
			watch = nil
		}
		if !catalog.Supports(modes, d.namespace, watch) {
			return fmt.Errorf("%s cannot watch %s: it supports %s", d.pkg, strings.Join(a.wish.Watch, ", "), supported(modes))
		}
		if len(groups) > 0 {
			return fmt.Errorf("%s: the OperatorGroup at %s says what operators in %s watch: leave out --watch", d.pkg, groups[0].Pos, d.namespace)
		}
		d.watch = a.wish.Watch
	case len(groups) > 0 || slices.ContainsFunc(a.drafts, func(o draft) bool { return o.namespace == d.namespace && o.group }):
		return nil
	case catalog.Supports(modes, d.namespace, nil):
		d.watch = []string{"*"}
	case catalog.Supports(modes, d.namespace, []string{d.namespace}):
		d.watch = []string{d.namespace}
	default:
		return fmt.Errorf("%s watches namespaces that you name (%s): add --watch NAMESPACE", d.pkg, supported(modes))
	}
	switch {
	case d.dialect == subscription.V0:
		d.group = true
	case a.wish.Watch == nil:
		d.watch = nil // that is what it prefers
	}
	return nil
}

func supported(modes []catalog.InstallMode) string {
	var names []string
	for _, m := range modes {
		names = append(names, string(m))
	}
	return strings.Join(names, ", ")
}

// place finds the file that a declaration goes into.
func (a *adder) place(d draft, text string) error {
	names := []string{a.to.Path}
	if !a.to.IsFile {
		names = []string{path.Join(a.to.Path, d.name+".yaml"), path.Join(a.to.Path, d.namespace+"-"+d.name+".yaml")}
	}
	for _, name := range names {
		f, ours := a.files[name]
		if !ours {
			var err error
			if f.old, err = readIfAny(a.project, name); err != nil {
				return err
			}
		}
		if !a.to.IsFile && (ours || f.old != nil) {
			continue
		}
		a.places = append(a.places, place{name, f.lines() + bytes.Count(f.added, []byte{'\n'}) + 1, text})
		f.added = yamlnode.Append(f.added, d.text())
		a.files[name] = f
		return nil
	}
	return fmt.Errorf("%s is there already: name another namespace with -n, or declare %s by hand", names[0], d.pkg)
}

// addition is what a file is and what is added to it.
type addition struct{ old, added []byte }

// lines returns how many lines stand before what is added.
func (f addition) lines() int {
	if f.old == nil {
		return 0
	}
	return bytes.Count(yamlnode.Append(f.old, nil), []byte{'\n'})
}

// asked returns the argument that p was made of, for what lies in a draft, which nobody
// can look at before it is written; else p.
func (a *adder) asked(p diag.Pos) diag.Pos {
	for _, at := range slices.Backward(a.places) {
		if p.File == at.file && p.Line >= at.line {
			return diag.Pos{File: at.text}
		}
	}
	return p
}

// point has what was found without a solution point at arguments, likewise; a conflict
// at the first that takes part, for without that it was not there.
func (a *adder) point(res *project.Resolution) {
	for i := range res.Warnings {
		res.Warnings[i].Pos = a.asked(res.Warnings[i].Pos)
	}
	for _, c := range res.Conflicts {
		c.Point(func(at string) string {
			file, rest, _ := strings.Cut(at, ":")
			row, _, _ := strings.Cut(rest, ":")
			if line, err := strconv.Atoi(row); err == nil {
				if p := a.asked(diag.Pos{File: file, Line: line}); p.Line == 0 {
					return p.String()
				}
			}
			return at
		})
		for _, l := range slices.Backward(c.Chain) {
			if slices.ContainsFunc(a.places, func(p place) bool { return l.Depth == 0 && l.At == diag.Pos{File: p.text}.String() }) {
				c.At = l.At
			}
		}
	}
}

// outcome returns the files as they will be, and what is declared with what is new,
// each at its place.
func (a *adder) outcome() ([]File, *subscription.Set, error) {
	var files []File
	sets := []*subscription.Set{a.set}
	for _, name := range slices.Sorted(maps.Keys(a.files)) {
		f := a.files[name]
		change := Created
		if f.old != nil {
			change = Changed
		}
		set, err := subscription.Parse(name, append(bytes.Repeat([]byte{'\n'}, f.lines()), f.added...))
		if err != nil {
			return nil, nil, err
		}
		files, sets = append(files, File{name, change, yamlnode.Append(f.old, f.added)}), append(sets, set)
	}
	set, err := subscription.Merge(sets...)
	return files, set, err
}
