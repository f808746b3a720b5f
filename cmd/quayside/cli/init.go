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
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/render/profile"
	"github.com/quayside/quayside/workspace"
)

type initOptions struct {
	*app
	draft    workspace.Draft
	profile  string
	catalogs []string
	mirrors  []string
}

func newInit(a *app) *cobra.Command {
	o := &initOptions{app: a}
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Make a workspace",
		Long: doc(`
			Write quayside.yaml with what you say and every other choice as a comment, and
			.gitattributes, so that no checkout changes the lock or the tree. For Flux also
			.sourceignore, so that no declaration reaches a cluster.

			On a terminal you are asked for what no flag says. A file that is there is never
			changed, but for .gitattributes and .sourceignore, to which lines are added.

			A catalog is one that everybody knows by name (operatorhubio; community, certified
			and redhat, of a version of OpenShift), an image, a directory, or anything else
			that spec.catalogs takes, with the name that Subscriptions have for it before it.
			Paths are relative to the workspace. Where registries are reached through a mirror,
			--mirrors names the file that says so, as podman and clusters have it.`),
		Example: examples(`
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
	f.StringVar(&o.profile, "profile", "", "the `TOOL` that applies the tree: "+strings.Join(profile.Names(), ", "))
	f.StringVar(&o.draft.RepoURL, "repo", "", "`URL` of the Git repository that the tool reads")
	f.StringVar(&o.draft.KubernetesVersion, "kubernetes", "", "`VERSION` of the clusters, such as 1.34")
	f.StringVar(&o.draft.OpenShiftVersion, "openshift", "", "`VERSION` of OpenShift, such as 4.20")
	f.StringArrayVar(&o.mirrors, "mirrors", nil, "a `FILE` with mirrors of registries: registries.conf, ImageDigestMirrorSet, ImageTagMirrorSet; may be given several times")
	f.StringVar(&o.draft.Name, "name", "", "`NAME` of the environment (default: the directory's)")
	addOutput(cmd, a, nil, initReport{})
	a.complete(cmd, "profile", profile.Names())
	a.offer(cmd, "catalog", func(context.Context, string) []string { return knownCatalogs(o.draft.OpenShiftVersion) })
	if err := cmd.MarkFlagFilename("mirrors"); err != nil {
		panic(err) // the flag does not exist: a mistake in this package
	}
	return cmd
}

// knownCatalogs returns the catalogs that have a short name, as shells show them.
// Where the version of OpenShift is not known it has to follow the name.
func knownCatalogs(openshift string) []string {
	var out []string
	for _, k := range source.WellKnown() {
		name := k.Name
		if _, _, _, err := source.FindKnown(name, openshift); err != nil {
			name += "@"
		}
		out = append(out, name+"\t"+k.Is)
	}
	return out
}

// initReport is what `quayside init` prints.
type initReport struct {
	Directory string   `json:"directory"`
	Files     []string `json:"files" doc:"that were written"`
}

func (o *initOptions) run(cmd *cobra.Command, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, workspace.FileName)); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s is there already", filepath.Join(dir, workspace.FileName))
		}
		return err
	}
	if err := o.ask(cmd.Context()); err != nil {
		return err
	}
	if err := o.complete(dir); err != nil {
		return usagef(cmd, "%w", err)
	}
	text := o.draft.Text()
	if _, err := workspace.Parse(workspace.FileName, text); err != nil {
		return fmt.Errorf("what these flags say is no workspace: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	r := initReport{Directory: filepath.ToSlash(dir), Files: []string{workspace.FileName}}
	for _, file := range o.draft.Beside() {
		added, err := addLines(filepath.Join(dir, file.Name), file.Lines)
		if err != nil {
			return err
		}
		if added {
			r.Files = append(r.Files, file.Name)
		}
	}
	if _, err := filetree.WriteFile(filepath.Join(dir, workspace.FileName), text); err != nil {
		return err
	}
	return o.print(r, func(w io.Writer) {
		for _, name := range r.Files {
			fmt.Fprintln(w, o.out.Sign("+")+" "+inert.Line(path.Join(r.Directory, name)))
		}
		if len(o.draft.Catalogs) == 0 {
			o.talk.Note("next: name a catalog below spec.catalogs of %s, or declare a CatalogSource", workspace.FileName)
			return
		}
		o.talk.Note("next: 'quayside catalog search WORD' finds an operator, 'quayside add PACKAGE --render' installs it")
	})
}

// ask asks a person for what no flag says.
func (o *initOptions) ask(ctx context.Context) error {
	if !o.prompt.Can() {
		return nil
	}
	var err error
	if o.profile == "" {
		if o.profile, err = o.prompt.Choose(ctx, "what applies the tree", profile.Names()); err != nil {
			return err
		}
	}
	lines := []struct {
		to       *string
		question string
	}{
		{&o.draft.RepoURL, "URL of the Git repository that it reads (empty: write no Application or Kustomization):"},
		{&o.draft.OpenShiftVersion, "version of OpenShift, such as 4.20 (empty: none):"},
		{&o.draft.KubernetesVersion, "version of Kubernetes, such as 1.34 (empty: not checked):"},
	}
	for _, l := range lines {
		if *l.to == "" {
			if *l.to, err = o.prompt.Line(ctx, l.question); err != nil {
				return err
			}
		}
	}
	if len(o.catalogs) == 0 {
		line, err := o.prompt.Line(ctx, "catalogs ("+strings.Join(source.KnownNames(), ", ")+", or where they are) [operatorhubio]:")
		if err != nil {
			return err
		}
		if o.catalogs = strings.Fields(strings.ReplaceAll(line, ",", " ")); len(o.catalogs) == 0 {
			o.catalogs = []string{"operatorhubio"}
		}
	}
	return nil
}

// complete reads what was said.
func (o *initOptions) complete(dir string) error {
	o.draft.Profile, o.draft.Path = profile.Name(o.profile), project.InRepository(dir)
	if o.draft.Name == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		if base := filepath.Base(abs); yamlnode.IsDNS1123Label(base) {
			o.draft.Name = base // else it cannot begin the names of objects
		}
	}
	for _, text := range o.catalogs {
		c, err := o.catalog(dir, text)
		if err != nil {
			return err
		}
		o.draft.Catalogs = append(o.draft.Catalogs, c)
	}
	for _, name := range o.mirrors {
		there, err := o.mirror(dir, name)
		if err != nil {
			return err
		}
		o.draft.Mirrors = append(o.draft.Mirrors, there)
	}
	return nil
}

// mirror reads a file with mirrors, so that its faults are told now, and returns
// its path from the workspace.
func (o *initOptions) mirror(dir, name string) (string, error) {
	data, err := o.readArg(name)
	if err != nil {
		return "", err
	}
	if _, err := registry.ParseMirrors(filepath.ToSlash(name), data); err != nil {
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

// catalog reads what --catalog says: a name that is known, "namespace/name=source",
// or a source that names itself.
func (o *initOptions) catalog(dir, text string) (workspace.Catalog, error) {
	if k, ref, ok, err := source.FindKnown(text, o.draft.OpenShiftVersion); ok {
		return workspace.Catalog{Namespace: k.ID.Namespace, Name: k.ID.Name, Source: ref}, err
	}
	name, rest, named := strings.Cut(text, "=")
	if !named {
		name, rest = "", text
	}
	there, err := project.Open(project.Dir(dir), project.Env{Getenv: o.getenv, Version: o.version, Offline: true, Talk: o.talk})
	if err != nil {
		return workspace.Catalog{}, err
	}
	ref, err := there.Ref(rest)
	if err != nil {
		return workspace.Catalog{}, fmt.Errorf("--catalog %s: %w; by name there are %s", text, err, strings.Join(source.KnownNames(), ", "))
	}
	id := catalog.ID{Name: name}
	if ns, n, ok := strings.Cut(name, "/"); ok {
		id = catalog.ID{Namespace: ns, Name: n}
	}
	if name == "" {
		id.Name = ref.Suggested()
	}
	if !yamlnode.IsDNS1123Subdomain(id.Name) {
		return workspace.Catalog{}, fmt.Errorf("--catalog %s: say what it is called: [NAMESPACE/]NAME=%s", text, rest)
	}
	return workspace.Catalog{Namespace: id.Namespace, Name: id.Name, Source: ref}, nil
}

// addLines adds those lines to a file that it does not have. It reports whether there
// were any.
func addLines(name string, lines []string) (bool, error) {
	old, err := os.ReadFile(name)
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
