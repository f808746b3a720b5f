package edit

import (
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
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/helm"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// AddOptions selects the operators to declare.
type AddOptions struct {
	Packages    []string         // each "package", "package@channel", "package@1.2.3" or "package@>=1.2 <2"
	Bundle      string           // bundle to declare instead of packages: a directory, an OCI layout or an image
	Namespace   string           // for all packages; empty: the namespace that the bundle suggests, or else the package name
	Catalog     string           // "[namespace/]name"; empty: the only catalog with the package
	Watch       []string         // watched namespaces; "*" alone: all; nil: as the operator prefers
	Approval    declare.Approval // empty: Automatic for a new declaration
	Config      *string          // config of the operator's pods, as YAML; nil: unchanged
	Set         []string         // assignments to values of a chart, in the syntax of Helm's --set
	ValuesFiles []string         // files with values of a chart, relative to the workspace; nil: unchanged
	Only        []string         // environments that install new operators; nil: all that read the declaration; added to an existing spec.only, together with this environment
	To          string           // entry of spec.declarations to write to; empty: the default

	Choose Chooser // asks the user for a choice; nil: use defaults, or return an error
}

// Add declares operators. For an operator that is already declared, it sets the given channel, version and
// other fields, and upgrades the operator to the given version. It skips a declaration that already has these
// values, so that an interrupted run can be repeated.
func Add(ctx context.Context, p *workspace.Project, w AddOptions) (*Edit, error) {
	set, err := p.DeclarationsIfAny()
	if err != nil {
		return nil, err
	}
	a := adder{project: p, options: w, set: set, writer: usualWriter(set), draft: NewDraft(p)}
	if w.Config != nil {
		if a.config, err = declare.ParseConfig("--config", *w.Config); err != nil {
			return nil, err
		}
	}
	if a.to, err = Destination(ctx, p, w.To, w.Choose); err != nil {
		return nil, err
	}
	if err := a.addAll(ctx); err != nil {
		return nil, err
	}
	merged, err := a.draft.Declared(set)
	if err != nil {
		return nil, err
	}
	e, err := resolveEdit(ctx, p, merged, a.draft.list(), editOptions{targets: a.targets, fresh: a.fresh})
	if err != nil {
		return nil, diag.MapPositions(err, a.argumentPos)
	}
	if e.Resolution.Lock == nil {
		a.replacePositions(e.Resolution)
	}
	e.Notes = slices.Concat(a.notes, a.skippedNotes(e.Resolution), e.Notes)
	return e, nil
}

// addAll adds the declarations of all requested packages, or of the bundle, to the draft.
func (a *adder) addAll(ctx context.Context) error {
	var faults diag.List
	if a.options.Bundle != "" {
		faults.Add(diag.Pos{File: a.options.Bundle}, a.addBundle(ctx))
		return faults.Err()
	}
	if err := a.openPackages(ctx); err != nil {
		return err
	}
	for _, text := range a.options.Packages {
		faults.Add(diag.Pos{File: text}, a.add(ctx, text))
	}
	return faults.Err()
}

// addBundle adds a declaration that names a bundle, or sets the bundle in an existing declaration.
func (a *adder) addBundle(ctx context.Context) error {
	b, err := workspace.ReadNamedBundle(ctx, a.project, a.options.Bundle)
	if err != nil {
		return err
	}
	o := operator{writer: declare.AnyCatalog(), Declaration: declare.Declaration{
		Name: b.Package, Package: b.Package, Bundle: b.Ref, Namespace: cmp.Or(a.options.Namespace, b.Namespace), Only: a.options.Only,
	}}
	lock, err := a.project.LockIfAny()
	if err != nil {
		return err
	}
	set := a.set
	if lock != nil {
		if set, err = workspace.CompleteFromLock(set, lock); err != nil {
			return err
		}
	}
	have := declarationsOf(set.Subscriptions, o.Package, a.options.Namespace)
	if len(have) != 1 {
		have = declarationsOf(set.Subscriptions, o.Package, o.Namespace)
	}
	if len(have) > 0 {
		return a.changeBundle(have[0], b.Ref)
	}
	if err := a.setWatch(&o, b.Modes); err != nil {
		return err
	}
	o.Approval, o.Config = a.options.Approval, a.config
	a.wanted = append(a.wanted, o)
	return a.addToFile(o, a.options.Bundle)
}

// changeBundle sets the bundle of an existing declaration.
func (a *adder) changeBundle(s declare.Subscription, ref string) error {
	switch s.Bundle {
	case "":
		return fmt.Errorf("%s/%s is declared at %s by its package: replace spec.package with spec.bundle there, or choose another namespace with -n", s.Namespace, s.Package, s.Pos)
	case ref:
		a.notes = append(a.notes, fmt.Sprintf("%s/%s is already declared at %s", s.Namespace, s.Package, s.Pos))
		return nil
	}
	return a.draft.Change(s, map[declare.Field][]string{declare.FieldBundle: {ref}})
}

// skippedNotes returns a note for each requested upgrade that skips versions on its upgrade path.
func (a *adder) skippedNotes(res *workspace.Resolution) []string {
	var out []string
	for _, t := range a.targets {
		operator := t.Namespace + "/" + t.Package
		if !slices.ContainsFunc(res.Changes, func(c workspace.Change) bool { return c.Operator == operator && c.From != c.To }) || res.Lock == nil {
			continue
		}
		if pin, ok := res.Lock.Pin(t.Namespace, t.Package); ok && len(pin.Skipped) > 0 {
			out = append(out, fmt.Sprintf("%s skips %s, which the clusters never run: to run them, add one version after the other", operator, diag.Some(pin.Skipped, 5)))
		}
	}
	return out
}

// Chooser asks the user to choose one of several options, and returns the chosen option.
type Chooser func(ctx context.Context, question string, options []string) (string, error)

// Destination returns the entry of spec.declarations for new declarations: the entry whose path is to; if to is empty,
// the only possible entry or the user's choice. If several are possible and choose is nil, it returns an error.
func Destination(ctx context.Context, p *workspace.Project, to string, choose Chooser) (workspace.DeclarationPath, error) {
	candidates, err := p.NewDeclarations(to)
	if err != nil {
		return workspace.DeclarationPath{}, err
	}
	if len(candidates) == 1 {
		return candidates[0], nil
	}
	var paths []string
	for _, c := range candidates {
		paths = append(paths, c.Path)
	}
	if choose == nil {
		_, err := ChooseNone(ctx, "", paths)
		return workspace.DeclarationPath{}, fmt.Errorf("%w, or choose one with --to", err)
	}
	chosen, err := choose(ctx, "the path for new declarations", paths)
	if err != nil {
		return workspace.DeclarationPath{}, err
	}
	return candidates[slices.Index(paths, chosen)], nil
}

// ChooseNone is a [Chooser] that always returns an error, for commands that cannot prompt.
func ChooseNone(_ context.Context, _ string, paths []string) (string, error) {
	return "", fmt.Errorf("several paths of spec.declarations can hold new declarations (%s): set spec.newDeclarations", strings.Join(paths, ", "))
}

// operator is a new declaration, with the writer for its dialect, which is the kind of object that declares it.
type operator struct {
	declare.Declaration
	writer declare.Writer
}

type adder struct {
	project *workspace.Project
	to      workspace.DeclarationPath
	options AddOptions
	set     *declare.Set
	writer  declare.Writer // writer of the dialect that the workspace uses most
	config  []byte         // options.Config as canonical JSON; nil: not set, or empty
	index   *catalog.Index
	// If a requested name is not a package but an API, providers has the packages that provide this API.
	providers map[string][]string
	draft     *Draft
	wanted    []operator
	places    []place // positions of the new declarations
	notes     []string
	targets   []resolve.Target // requested versions of operators that are already declared
	fresh     bool             // whether to resolve the tags of catalog images again
}

// place is the position of a new declaration in the draft, with the command-line argument that requested it.
type place struct {
	file string
	line int
	text string
}

// openPackages opens the catalogs of the requested packages.
func (a *adder) openPackages(ctx context.Context) error {
	lock, err := a.project.LockIfAny()
	if err != nil {
		return err
	}
	all := a.project.Catalogs(a.set)
	if len(all) == 0 {
		return errors.New("no catalog to search: create a workspace with 'quayside init --catalog', or add one to spec.catalogs of quayside.yaml")
	}
	if slices.ContainsFunc(a.options.Packages, func(text string) bool {
		name, at, _ := strings.Cut(text, "@")
		return at != "" && len(a.declared(name, "")) > 0
	}) {
		lock, a.fresh = nil, true
	}
	sh, err := a.project.OpenCatalogs(ctx, all, workspace.CatalogOptions{Locked: lock})
	if err != nil {
		return err
	}
	defer sh.Close()
	var names []string
	for _, text := range a.options.Packages {
		name, _, _ := strings.Cut(text, "@")
		names = append(names, name)
	}
	if a.index, err = sh.Pick(ctx, cache.PickNames(names...)); err != nil {
		return err
	}
	if _, err = a.project.BrokenCatalogs(a.index); err != nil {
		return err
	}
	return a.chooseProviders(ctx, sh, names)
}

// chooseProviders replaces names of APIs by packages: for each name that is no package but an API,
// it asks the user which of the packages that provide the API to add; see [catalog.GVK.IsCalled].
// If it cannot ask, it records these packages in a.providers.
func (a *adder) chooseProviders(ctx context.Context, sh *cache.CatalogSet, names []string) error {
	missing := func(name string) bool { return len(a.index.CatalogsWith(name)) == 0 }
	if !slices.ContainsFunc(names, missing) {
		return nil
	}
	all, err := sh.Search(ctx, nil)
	if err != nil {
		return err
	}
	a.options.Packages, a.providers = slices.Clone(a.options.Packages), map[string][]string{}
	for i, name := range names {
		if !missing(name) {
			continue
		}
		var owners []string
		for _, s := range all {
			if s.Provides(name) && !slices.Contains(owners, s.Name) {
				owners = append(owners, s.Name)
			}
		}
		if a.providers[name] = owners; len(owners) == 0 || a.options.Choose == nil {
			continue
		}
		owner, err := a.options.Choose(ctx, "package that provides "+name, owners)
		if err != nil {
			return err
		}
		names[i], a.options.Packages[i] = owner, owner+strings.TrimPrefix(a.options.Packages[i], name)
	}
	a.index, err = sh.Pick(ctx, cache.PickNames(names...))
	return err
}

// add adds the declaration of one package to the draft.
func (a *adder) add(ctx context.Context, text string) error {
	name, at, _ := strings.Cut(text, "@")
	if have := a.declared(name, a.options.Namespace); len(have) == 1 {
		return a.change(ctx, have[0], at, text)
	}
	if have := a.declaredElsewhere(name, a.options.Namespace); len(have) == 1 {
		return a.change(ctx, have[0], at, text)
	}
	pkg, err := a.pick(name, a.options.Catalog)
	if err != nil {
		return err
	}
	o := operator{writer: a.writer, Declaration: declare.Declaration{Name: name, Package: name, Only: a.options.Only}}
	id := pkg.Catalog().ID()
	if o.Only != nil || len(a.options.Set)+len(a.options.ValuesFiles) > 0 || !o.writer.CanName(id) {
		o.writer = declare.AnyCatalog() // other declarations have no spec.only and no values
	}
	if a.options.Catalog != "" || len(a.index.CatalogsWith(name)) > 1 || o.writer.NamesCatalog {
		o.Catalog = id
	}
	b, err := a.setVersion(ctx, &o, pkg, at)
	if err != nil {
		return err
	}
	o.Namespace = cmp.Or(a.options.Namespace, workspace.SuggestedNamespace(b.Metadata().Annotations), name)
	if slices.ContainsFunc(a.wanted, func(w operator) bool { return w.Namespace == o.Namespace && w.Package == o.Package }) {
		return fmt.Errorf("duplicate argument %s", name)
	}
	if have := append(a.declared(name, o.Namespace), a.declaredElsewhere(name, o.Namespace)...); len(have) > 0 {
		return a.change(ctx, have[0], at, text)
	}
	if err := a.setWatch(&o, b.Metadata().InstallModes); err != nil {
		return err
	}
	if o.Approval = a.options.Approval; o.Approval != "" && !o.writer.HasApproval {
		return fmt.Errorf("declarations of %s have no approval: omit --approval", o.writer.Dialect)
	}
	o.Config, o.ValuesFiles = a.config, a.options.ValuesFiles
	if o.Values, err = helm.SetValues(nil, a.options.Set); err != nil {
		return err
	}
	a.wanted = append(a.wanted, o)
	return a.addToFile(o, text)
}

// declared returns the declarations of a package in a namespace or, if namespace is empty, in all namespaces.
func (a *adder) declared(name, namespace string) []declare.Subscription {
	return declarationsOf(a.set.Subscriptions, name, namespace)
}

// declaredElsewhere is like declared, for declarations whose spec.only does not contain this environment. If
// the user named the path for a new declaration, it returns nil.
func (a *adder) declaredElsewhere(name, namespace string) []declare.Subscription {
	if a.options.To != "" {
		return nil
	}
	return declarationsOf(a.set.Elsewhere, name, namespace)
}

func declarationsOf(list []declare.Subscription, name, namespace string) []declare.Subscription {
	return slices.DeleteFunc(slices.Clone(list), func(s declare.Subscription) bool {
		return s.Package != name || namespace != "" && s.Namespace != namespace
	})
}

// change changes an existing declaration to the values in the argument and the flags. If the argument has an
// exact version, the resolver must also select this version. change extends an existing spec.only by the
// environments in --only or, without the flag, by this environment.
func (a *adder) change(ctx context.Context, s declare.Subscription, at, text string) error {
	if a.options.Only != nil && s.Only == nil {
		return fmt.Errorf("%s/%s is declared at %s: --only is for new declarations; edit spec.only there", s.Namespace, s.Package, s.Pos)
	}
	values, err := a.values(ctx, s, at, text)
	if err != nil {
		return err
	}
	if s.Only != nil {
		values[declare.FieldOnly] = a.extendOnly(s.Only)
	}
	maps.DeleteFunc(values, func(f declare.Field, v []string) bool { return slices.Equal(s.Values(f), v) })
	if len(values) == 0 {
		a.notes = append(a.notes, fmt.Sprintf("%s/%s is already declared at %s", s.Namespace, s.Package, s.Pos))
		return nil
	}
	return a.draft.Change(s, values)
}

// extendOnly returns the environments in only, plus those in --only or, without the flag, this environment.
func (a *adder) extendOnly(only []string) []string {
	further := a.options.Only
	if further == nil {
		further = []string{a.project.Environment()}
	}
	out := slices.Clone(only)
	for _, name := range further {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// values returns the new values of a declaration's fields, according to the argument and the flags.
func (a *adder) values(ctx context.Context, s declare.Subscription, at, text string) (map[declare.Field][]string, error) {
	out := map[declare.Field][]string{}
	from := a.options.Catalog
	if from == "" && s.Catalog != nil {
		from = s.Catalog.String()
	}
	pkg, err := a.pick(s.Package, from)
	if err != nil {
		return nil, err
	}
	if id := pkg.Catalog().ID(); a.options.Catalog != "" {
		out[declare.FieldCatalog] = []string{id.String()}
		if s.Dialect == declare.V0 {
			out[declare.FieldCatalog], out[declare.FieldCatalogNamespace] = []string{id.Name}, []string{id.Namespace}
		}
	}
	if a.options.Approval != "" {
		out[declare.FieldApproval] = []string{string(a.options.Approval)}
	}
	if a.options.Watch != nil {
		out[declare.FieldWatch] = slices.Sorted(slices.Values(a.options.Watch))
	}
	if a.options.Config != nil {
		out[declare.FieldConfig] = nil
		if a.config != nil {
			out[declare.FieldConfig] = []string{string(a.config)}
		}
	}
	if a.options.ValuesFiles != nil {
		out[declare.FieldValuesFiles] = a.options.ValuesFiles
	}
	if len(a.options.Set) > 0 {
		values, err := helm.SetValues(s.OwnValues, a.options.Set)
		if err != nil {
			return nil, err
		}
		out[declare.FieldValues] = []string{string(values)}
	}
	if at == "" {
		return out, nil
	}
	i := slices.IndexFunc(declare.Writers(), func(w declare.Writer) bool { return w.Dialect == s.Dialect })
	if i < 0 {
		return nil, newByHandError(s, "as an object of "+string(s.Dialect))
	}
	o := operator{writer: declare.Writers()[i]}
	b, err := a.setVersion(ctx, &o, pkg, at, s.Channels...)
	switch {
	case err != nil:
		return nil, err
	case o.Version != "":
		out[declare.FieldRange] = []string{o.Version}
	case o.Start != "":
		out[declare.FieldStartingCSV] = []string{o.Start}
	}
	inChannel := slices.ContainsFunc(b.Entries(), func(e *catalog.Entry) bool { return slices.Contains(s.Channels, e.Channel().Name()) })
	if _, isChannel := pkg.Channel(at); isChannel || len(s.Channels) > 0 && !inChannel {
		out[declare.FieldChannel] = []string{o.Channel}
	}
	return out, a.addTarget(s, b, &o, text)
}

// addTarget requires the resolver to select b, the bundle for o. It does nothing if o has a version range that
// includes the pinned version.
func (a *adder) addTarget(s declare.Subscription, b *catalog.Bundle, o *operator, text string) error {
	lock, err := a.project.LockIfAny()
	if err != nil || lock == nil || o.Version == "" && o.Start == "" {
		return err
	}
	if pin, ok := lock.Pin(s.Namespace, s.Package); ok {
		if within, err := catalog.ParseVersions(o.Version); o.Version != "" && err == nil && within(pin.Version) {
			return nil
		}
	}
	a.targets = append(a.targets, resolve.Target{Namespace: s.Namespace, Package: s.Package, Version: b.Version().String(), At: diag.Pos{File: text}})
	return nil
}

// pick returns the package with this name. from is the catalog to search; if it is empty, pick
// searches all. It returns an error if no catalog or several catalogs have the package.
func (a *adder) pick(name, from string) (*catalog.Package, error) {
	var found []*catalog.Package
	var names, have []string
	for _, c := range a.index.Catalogs() {
		if from != "" && from != c.ID().Name && from != c.ID().String() {
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
		return nil, fmt.Errorf("package %q is in several catalogs: choose one with --catalog (%s)", name, strings.Join(have, ", "))
	case len(names) == 0 && from != "":
		return nil, fmt.Errorf("catalog %q is not declared: add it to spec.catalogs", from)
	}
	if owners := a.providers[name]; len(owners) > 0 {
		return nil, fmt.Errorf("no package %q in the catalogs: it is an API of %s", name, strings.Join(owners, ", "))
	}
	hint := diag.DidYouMean(name, names)
	if hint == "" {
		hint = fmt.Sprintf(": try 'quayside catalog search %s'", name)
	}
	return nil, fmt.Errorf("no package %q in the catalogs%s", name, hint)
}

// setVersion sets the channel and the version of o, and returns the newest matching bundle. at is a channel, a
// version or a range ("package@at"). If at is empty, the default channel applies. setVersion prefers the
// channels in declared.
func (a *adder) setVersion(ctx context.Context, o *operator, pkg *catalog.Package, at string, declared ...string) (*catalog.Bundle, error) {
	channel, ok := pkg.Channel(cmp.Or(at, pkg.DefaultChannel()))
	if ok && at == "" && a.options.Choose != nil && len(pkg.Channels()) > 1 {
		others := slices.DeleteFunc(pkg.ChannelNames(), func(name string) bool { return name == pkg.DefaultChannel() })
		names := append([]string{pkg.DefaultChannel()}, others...)
		name, err := a.options.Choose(ctx, "channel of "+pkg.Name(), names)
		if err != nil {
			return nil, err
		}
		channel, ok = pkg.Channel(name)
	}
	if ok {
		o.Channel = channel.Name()
		return channel.Head().Bundle(), nil
	}
	within, err := catalog.ParseVersions(at)
	if err != nil {
		return nil, fmt.Errorf("%q is not a channel of package %q (available: %s), a version or a version range%s", at, pkg.Name(), strings.Join(pkg.ChannelNames(), ", "), diag.DidYouMean(at, pkg.ChannelNames()))
	}
	b, channel := newestBundle(pkg, within, declared...)
	if b == nil {
		b, channel = newestBundle(pkg, within)
	}
	if b == nil {
		hint := ""
		if newest, _ := newestBundle(pkg, func(string) bool { return true }); newest != nil {
			hint = fmt.Sprintf(" (the newest is %s)", newest.Version())
		}
		return nil, fmt.Errorf("package %q has no version %s%s", pkg.Name(), at, hint)
	}
	switch {
	case o.writer.HasStart:
		o.Channel, o.Start = channel.Name(), b.Name()
	default:
		o.Version = at
		if _, err := catalog.ParseVersion(at); err == nil {
			a.notes = append(a.notes, fmt.Sprintf("%s is not upgraded beyond %s, because its declaration allows only this version; for later versions, add %s@'>=%s'", pkg.Name(), at, pkg.Name(), at))
		}
		if len(declared) > 0 {
			o.Channel = channel.Name()
		}
	}
	return b, nil
}

// newestBundle returns the bundle with the highest version that the function within accepts, and a
// channel that contains the bundle. It prefers the default channel. It searches the given channels,
// or all channels if none are given. It returns nil if no version matches.
func newestBundle(pkg *catalog.Package, within func(version string) bool, channels ...string) (best *catalog.Bundle, in *catalog.Channel) {
	for _, c := range pkg.Channels() {
		for _, e := range c.Entries() {
			b := e.Bundle()
			if len(channels) > 0 && !slices.Contains(channels, c.Name()) || b == nil || !within(b.Version().String()) {
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

// setWatch sets the watched namespaces of o. modes holds the install modes of its bundle.
func (a *adder) setWatch(o *operator, modes []catalog.InstallMode) error {
	groups := a.set.OperatorGroupsIn(o.Namespace)
	switch {
	case a.options.Watch != nil:
		watch := a.options.Watch
		if slices.Equal(watch, []string{"*"}) {
			watch = nil
		}
		if !catalog.SupportsNamespaces(modes, o.Namespace, watch) {
			return fmt.Errorf("%s cannot watch %s: it supports %s", o.Package, strings.Join(a.options.Watch, ", "), FormatModes(modes))
		}
		if len(groups) > 0 {
			return fmt.Errorf("%s: the OperatorGroup at %s sets the namespaces that operators in %s watch: omit --watch", o.Package, groups[0].Pos, o.Namespace)
		}
		o.Watch = a.options.Watch
	case len(groups) > 0 || slices.ContainsFunc(a.wanted, func(w operator) bool { return w.Namespace == o.Namespace && w.Group }):
		return nil
	case catalog.SupportsNamespaces(modes, o.Namespace, nil):
		o.Watch = []string{"*"}
	case catalog.SupportsNamespaces(modes, o.Namespace, []string{o.Namespace}):
		o.Watch = []string{o.Namespace}
	default:
		return fmt.Errorf("%s supports only the install modes %s: add --watch NAMESPACE", o.Package, FormatModes(modes))
	}
	switch {
	case o.writer.HasGroup:
		o.Group = true
	case a.options.Watch == nil:
		o.Watch = nil // the operator's preference applies
	}
	return nil
}

// FormatModes returns a comma-separated list of install modes.
func FormatModes(modes []catalog.InstallMode) string {
	var names []string
	for _, m := range modes {
		names = append(names, string(m))
	}
	return strings.Join(names, ", ")
}

// addToFile adds the declaration of o to the destination file, or to a new file in the destination
// directory. text is the command-line argument.
func (a *adder) addToFile(o operator, text string) error {
	names := []string{a.to.Path}
	if !a.to.IsFile {
		names = []string{path.Join(a.to.Path, o.Name+".yaml"), path.Join(a.to.Path, o.Namespace+"-"+o.Name+".yaml")}
	}
	for _, name := range names {
		if !a.to.IsFile {
			if exists, err := a.draft.exists(name); err != nil {
				return err
			} else if exists {
				continue
			}
		}
		line, err := a.draft.Add(name, o.writer.Objects(o.Declaration)...)
		a.places = append(a.places, place{name, line, text})
		return err
	}
	return fmt.Errorf("%s already exists: choose another namespace with -n, or declare %s by hand", names[0], o.Package)
}

// argumentPos converts the position of a new declaration to the command-line argument that requested it,
// because the user cannot see the draft. It returns other positions unchanged.
func (a *adder) argumentPos(p diag.Pos) diag.Pos {
	for _, at := range slices.Backward(a.places) {
		if p.File == at.file && p.Line >= at.line {
			return diag.Pos{File: at.text}
		}
	}
	return p
}

// argumentAt is like argumentPos for a position in text form. It returns false if at is not the position of a
// new declaration.
func (a *adder) argumentAt(at string) (diag.Pos, bool) {
	file, rest, _ := strings.Cut(at, ":")
	row, _, _ := strings.Cut(rest, ":")
	line, err := strconv.Atoi(row)
	if err != nil {
		return diag.Pos{}, false
	}
	p := a.argumentPos(diag.Pos{File: file, Line: line})
	return p, p.Line == 0
}

// replacePositions replaces the positions of new declarations in warnings and conflicts by command-line
// arguments. The position of a conflict becomes the first argument in the chain of the conflict, because this
// argument is the cause. The advice to remove a new declaration is dropped.
func (a *adder) replacePositions(res *workspace.Resolution) {
	for i := range res.Warnings {
		res.Warnings[i].Pos = a.argumentPos(res.Warnings[i].Pos)
	}
	for _, c := range res.Conflicts {
		c.Changes = slices.DeleteFunc(c.Changes, func(change explain.Remedy) bool {
			_, isNew := a.argumentAt(change.At)
			return isNew && strings.HasPrefix(change.Text, "remove subscription ")
		})
		c.MapPositions(func(at string) string {
			if p, ok := a.argumentAt(at); ok {
				return p.String()
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
