package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/internal/yamlnode"
)

type initOptions struct {
	*app
	draft    settings.Draft
	profile  string
	catalogs []string
	mirrors  []string
	declared []string

	environments []string // value of --environment
}

func newInit(a *app) *cobra.Command {
	o := &initOptions{app: a}
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Create a workspace",
		Long: Doc(`
			Create a workspace: write quayside.yaml with your choices, and all other settings as
			comments, and .gitattributes, which prevents Git from changing line ends in the lock and
			the tree. For Flux, also write .sourceignore, so that Flux does not apply declarations.

			On a terminal, quayside asks for values without a flag. Existing files are not changed,
			except that missing lines are added to .gitattributes and .sourceignore.

			A catalog is a well-known name (operatorhubio; community, certified or redhat with an
			OpenShift version), an image, a directory, or any other source of spec.catalogs. To set
			the name that Subscriptions use, write NAMESPACE/NAME=SOURCE. Paths are relative to the
			workspace.

			quayside looks for declarations in the repository, and for objects that apply them. It
			lists the paths to read in quayside.yaml, with a comment for each object that it cannot
			read. If there are several environments, such as overlays of one base, --environment
			chooses one. Without it, quayside asks on a terminal, and otherwise prints the commands.
			--declarations sets the paths instead.

			If you reach registries through a mirror, --mirrors names a file with its configuration,
			as for podman or a cluster.`),
		Example: Examples(`
			quayside init envs/dev --catalog operatorhubio --kubernetes 1.34
			quayside init envs/prod --catalog redhat@4.20 --catalog community@4.20 --profile flux
			quayside init envs/lab --catalog olm/mine=oci:../../catalog --repo https://git.example.com/fleet.git`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := a.argPath(strings.Join(append(args, "."), "/"))
			return o.run(cmd, filepath.Clean(dir))
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.catalogs, "catalog", nil, "a `CATALOG`: a well-known name, [NAMESPACE/]NAME=SOURCE, or a source; may be given several times")
	f.StringVar(&o.profile, "profile", "", "the `TOOL` that applies the manifests: "+strings.Join(profile.Names(), ", "))
	f.StringVar(&o.draft.RepoURL, "repo", "", "`URL` of the Git repository that the tool reads")
	f.StringVar(&o.draft.KubernetesVersion, "kubernetes", "", "Kubernetes `VERSION` of the clusters, such as 1.34")
	f.StringVar(&o.draft.OpenShiftVersion, "openshift", "", "OpenShift `VERSION` of the clusters, such as 4.20")
	f.StringArrayVar(&o.mirrors, "mirrors", nil, "a `FILE` with registry mirrors: registries.conf, ImageDigestMirrorSet, ImageTagMirrorSet; may be given several times")
	f.StringArrayVar(&o.declared, "declarations", nil, "a `PATH` with Subscriptions, ClusterExtensions and similar kinds; may be given several times")
	f.StringArrayVar(&o.environments, "environment", nil, "read the declarations of the environment `NAME`; may be given several times: an operator is read from the first environment that has it")
	f.StringVar(&o.draft.Name, "name", "", "`NAME` of the environment (default: the directory's)")
	addOutput(cmd, a, nil, initReport{})
	a.complete(cmd, "profile", profile.Names())
	a.offer(cmd, "catalog", func(context.Context, string) []string { return knownCatalogs(o.draft.OpenShiftVersion) })
	if err := cmd.MarkFlagFilename("mirrors"); err != nil {
		panic(err) // the flag does not exist: a bug in this package
	}
	return cmd
}

// knownCatalogs returns the well-known catalogs as completions. If the OpenShift version is unknown, the
// names of OpenShift's catalogs end with "@", so that the user can add the version.
func knownCatalogs(openshift string) []string {
	var out []string
	for _, k := range source.WellKnown() {
		name := k.Name
		if _, _, _, err := source.FindKnown(name, openshift); err != nil {
			name += "@"
		}
		out = append(out, name+"\t"+k.Description)
	}
	return out
}

// initReport is the output of `quayside init`.
type initReport struct {
	Directory string   `json:"directory"`
	Files     []string `json:"files" doc:"written files"`
}

func (o *initOptions) run(cmd *cobra.Command, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, settings.FileName)); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s already exists", filepath.Join(dir, settings.FileName))
		}
		return err
	}
	open, err := o.chooseDeclarations(cmd, dir)
	if err != nil {
		return err
	}
	if err := o.ask(cmd.Context()); err != nil {
		return err
	}
	if err := o.fillDraft(dir); err != nil {
		return Usagef(cmd, "%w", err)
	}
	text := o.draft.Text()
	if _, err := settings.Parse(settings.FileName, text); err != nil {
		return fmt.Errorf("invalid workspace settings: %w", err)
	}
	r := initReport{Directory: filepath.ToSlash(dir), Files: []string{settings.FileName}}
	for _, file := range o.draft.CompanionFiles() {
		added, err := addLines(filepath.Join(dir, file.Name), file.Lines)
		if err != nil {
			return err
		}
		if added {
			r.Files = append(r.Files, file.Name)
		}
	}
	if _, err := filetree.WriteFile(filepath.Join(dir, settings.FileName), text); err != nil {
		return err
	}
	summary, missing, err := o.review(dir, open)
	if err != nil {
		return err
	}
	return o.print(r, func(w io.Writer) {
		for _, name := range r.Files {
			fmt.Fprintln(w, o.out.Sign("+")+" "+sanitize.Line(path.Join(r.Directory, name)))
		}
		if len(o.draft.Declarations) > 0 && len(o.declared) == 0 {
			o.log.Note("declarations: %s", sanitize.Line(diag.Some(pathNames(o.draft.Declarations), 10)))
		}
		if summary != "" {
			defer o.log.Note("%s", summary)
		}
		switch {
		case len(missing) > 0:
			o.log.Note("next: add the catalogs of the declarations to spec.catalogs of %s: %s", settings.FileName, sanitize.Line(diag.Some(missing, 8)))
			return
		case len(o.draft.Catalogs) == 0:
			o.log.Note("next: add a catalog to spec.catalogs of %s, or declare a CatalogSource", settings.FileName)
			return
		}
		o.log.Note("next: 'quayside catalog search WORD' finds an operator, 'quayside add PACKAGE --render' installs it")
	})
}

// openNew opens the workspace to create.
func (o *initOptions) openNew(dir string) (*workspace.Project, error) {
	return workspace.Open(workspace.Dir(dir), workspace.Env{Getenv: o.getenv, Version: o.version, Offline: true, Log: o.log})
}

// chooseDeclarations sets the declaration paths of the draft to the paths in the flags. Without
// such flags, it uses the paths that the repository has for the chosen environments. open contains
// the paths of operators that none of these environments has.
func (o *initOptions) chooseDeclarations(cmd *cobra.Command, dir string) (open []declare.Path, err error) {
	for _, name := range o.declared {
		o.draft.Declarations = append(o.draft.Declarations, declare.Path{Path: name})
	}
	if len(o.declared) > 0 {
		return nil, nil
	}
	p, err := o.openNew(dir)
	if err != nil {
		return nil, err
	}
	proposal, err := p.Propose()
	if err != nil {
		return nil, err
	}
	for _, name := range o.environments {
		if !slices.Contains(proposal.Environments, name) {
			return nil, Usagef(cmd, "--environment %s: the declarations have no such environment%s", name, diag.DidYouMean(name, proposal.Environments))
		}
	}
	if proposal.IsOpen && len(o.environments) == 0 {
		if !o.prompt.IsInteractive() {
			return nil, o.errEnvironments(cmd, proposal)
		}
		name, err := o.prompt.Choose(cmd.Context(), "environment of the declarations", proposal.Environments)
		if err != nil {
			return nil, err
		}
		o.environments = []string{name}
	}
	chosen, open := proposal.Paths(o.environments)
	isDefault := func(d declare.Path) bool { return filetree.Within(d.Path, settings.Default().Declarations[0].Path) }
	if slices.ContainsFunc(chosen, func(d declare.Path) bool { return !isDefault(d) }) {
		o.draft.Declarations = chosen
	}
	if len(open) > 0 && len(o.environments) == 0 {
		o.log.Note("%s not declared, because other paths declare the same operators: choose with --environment from %s", diag.Count(len(open), "path"), diag.Some(proposal.Environments, 8))
	}
	return open, nil
}

// errEnvironments returns an error that asks the user to choose an environment, and lists a command
// for each one.
func (o *initOptions) errEnvironments(cmd *cobra.Command, proposal workspace.Proposal) error {
	words := append([]string{cmd.CommandPath()}, cmd.Flags().Args()...)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if cmd.InheritedFlags().Lookup(f.Name) != nil {
			return
		}
		values := []string{f.Value.String()}
		if list, is := f.Value.(pflag.SliceValue); is {
			values = list.GetSlice()
		}
		for _, v := range values {
			words = append(words, "--"+f.Name+"="+v)
		}
	})
	for _, name := range proposal.Environments[:min(len(proposal.Environments), 20)] {
		chosen, _ := proposal.Paths([]string{name})
		o.log.Note("%s", sanitize.Line(fmt.Sprintf("run '%s --environment=%s' to read %s", strings.Join(words, " "), name, diag.Some(pathNames(chosen), 3))))
	}
	return diag.Hintf(diag.Pos{}, "choose one with --environment; if you give several, an operator is read from the first environment that has it",
		"the declarations of the repository are for several environments: %s", diag.Some(proposal.Environments, 20))
}

func pathNames(paths []declare.Path) []string {
	var names []string
	for _, d := range paths {
		names = append(names, d.Path)
	}
	return names
}

// review reads the declarations of the new workspace, and writes quayside.yaml again. It adds a comment for
// each declaration that is not read, and each catalog that a declaration names and that is not declared. It
// returns a summary, or "" if the repository has no declarations. It also returns the added catalogs whose
// source is unknown.
func (o *initOptions) review(dir string, open []declare.Path) (summary string, missing []string, err error) {
	p, err := o.openNew(dir)
	if err != nil {
		return "", nil, err
	}
	states, err := p.DeclarationStates()
	states = slices.DeleteFunc(states, func(s workspace.DeclarationState) bool { return !s.Selected })
	if err != nil || len(states) == 0 {
		return "", nil, err
	}
	read, _ := countRead(states)
	summary = fmt.Sprintf("read %d of %s", read, diag.Count(len(states), "declaration"))
	if read < len(states) {
		summary += ": run 'quayside declarations' to list the others"
		for _, d := range open {
			o.draft.Unread = append(o.draft.Unread, "one of several, or for another environment: "+d.Path)
		}
	}
	for _, s := range states {
		if !s.Read && len(o.draft.Unread) < maxComments {
			o.draft.Unread = append(o.draft.Unread, fmt.Sprintf("not read: %s: %s: %s", s.Pos, strings.TrimSpace(s.Kind+" "+s.Name), s.Reason))
		}
	}
	for _, id := range workspace.UndeclaredCatalogs(p) {
		c := settings.CatalogSettings{Namespace: id.Namespace, Name: id.Name, Source: source.ImageRef("registry.example.com/" + id.Name + ":latest")}
		if k, known := source.KnownAs(id); known {
			if c.Source = k.Image(o.draft.OpenShiftVersion); c.Source != "" {
				o.draft.Catalogs = append(o.draft.Catalogs, c)
				continue
			}
			c.Source = k.Image("4.20") // an example of a version
		}
		missing = append(missing, id.String())
		o.draft.Missing = append(o.draft.Missing, c)
	}
	_, err = filetree.WriteFile(filepath.Join(dir, settings.FileName), o.draft.Text())
	return summary, missing, err
}

// maxComments is the maximum number of comments about declarations that are not read.
const maxComments = 100

// ask prompts for the values of flags that are not set.
func (o *initOptions) ask(ctx context.Context) error {
	if !o.prompt.IsInteractive() {
		return nil
	}
	var err error
	if o.profile == "" {
		if o.profile, err = o.prompt.Choose(ctx, "GitOps tool", profile.Names()); err != nil {
			return err
		}
	}
	lines := []struct {
		to       *string
		question string
	}{
		{&o.draft.RepoURL, "URL of the Git repository that the tool reads (empty: write no Application or Kustomization):"},
		{&o.draft.OpenShiftVersion, "OpenShift version, such as 4.20 (empty: none):"},
		{&o.draft.KubernetesVersion, "Kubernetes version, such as 1.34 (empty: not checked):"},
	}
	for _, l := range lines {
		if *l.to == "" {
			if *l.to, err = o.prompt.Line(ctx, l.question); err != nil {
				return err
			}
		}
	}
	if len(o.catalogs) == 0 {
		line, err := o.prompt.Line(ctx, "catalogs ("+strings.Join(source.KnownNames(), ", ")+", or a source) [operatorhubio]:")
		if err != nil {
			return err
		}
		if o.catalogs = strings.Fields(strings.ReplaceAll(line, ",", " ")); len(o.catalogs) == 0 {
			o.catalogs = []string{"operatorhubio"}
		}
	}
	return nil
}

// fillDraft sets the fields of the draft from the flags.
func (o *initOptions) fillDraft(dir string) error {
	o.draft.Profile, o.draft.Path = profile.Name(o.profile), workspace.InRepository(dir)
	if o.draft.Name == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		if base := filepath.Base(abs); yamlnode.IsDNS1123Label(base) {
			o.draft.Name = base // the names of Kubernetes objects begin with this name, so it must be valid for them
		}
	}
	for _, text := range o.catalogs {
		c, err := o.parseCatalog(dir, text)
		if err != nil {
			return err
		}
		o.draft.Catalogs = append(o.draft.Catalogs, c)
	}
	for _, name := range o.mirrors {
		file, err := o.checkMirrors(dir, name)
		if err != nil {
			return err
		}
		o.draft.Mirrors = append(o.draft.Mirrors, file)
	}
	return nil
}

// checkMirrors parses a file with mirrors, to report faults early. It returns its path relative to
// the workspace.
func (o *initOptions) checkMirrors(dir, name string) (string, error) {
	data, err := o.readArg(name)
	if err != nil {
		return "", err
	}
	if _, err := oci.ParseMirrors(filepath.ToSlash(name), data); err != nil {
		return "", err
	}
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(o.argPath(name))
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(from, to)
	return filepath.ToSlash(rel), err
}

// parseCatalog parses a value of --catalog: a well-known name, "[namespace/]name=source", or a
// source from which the name is derived.
func (o *initOptions) parseCatalog(dir, text string) (settings.CatalogSettings, error) {
	if k, ref, ok, err := source.FindKnown(text, o.draft.OpenShiftVersion); ok {
		return settings.CatalogSettings{Namespace: k.ID.Namespace, Name: k.ID.Name, Source: ref}, err
	}
	name, rest, named := strings.Cut(text, "=")
	if !named {
		name, rest = "", text
	}
	p, err := workspace.Open(workspace.Dir(dir, o.allowedDirs()...), workspace.Env{Getenv: o.getenv, Version: o.version, Offline: true, Log: o.log})
	if err != nil {
		return settings.CatalogSettings{}, err
	}
	ref, err := p.CatalogRef(rest)
	if err != nil {
		return settings.CatalogSettings{}, fmt.Errorf("--catalog %s: %w; well-known catalogs: %s", text, err, strings.Join(source.KnownNames(), ", "))
	}
	id := catalog.ID{Name: name}
	if ns, n, ok := strings.Cut(name, "/"); ok {
		id = catalog.ID{Namespace: ns, Name: n}
	}
	if name == "" {
		id.Name = ref.SuggestedName()
	}
	if !yamlnode.IsDNS1123Subdomain(id.Name) {
		return settings.CatalogSettings{}, fmt.Errorf("--catalog %s: name required: [NAMESPACE/]NAME=%s", text, rest)
	}
	return settings.CatalogSettings{Namespace: id.Namespace, Name: id.Name, Source: ref}, nil
}

// addLines appends lines to a file unless it contains them. It reports whether the file changed.
func addLines(name string, lines []string) (bool, error) {
	old, err := filetree.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	out := bytes.Clone(old)
	if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, '\n')
	}
	for _, line := range lines {
		if !bytes.Contains(append([]byte("\n"), out...), []byte("\n"+line+"\n")) {
			out = append(out, line+"\n"...)
		}
	}
	if len(out) == len(old) {
		return false, nil
	}
	return filetree.WriteFile(name, out)
}
