package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/deliver"
	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/terminal"
)

type renderOptions struct {
	*app
	stdout  bool
	overlay string
	check   bool
	force   bool
	into    string
	split   string // value of --split
	of      string // value of --operator

	observed []string
}

func newRender(a *app) *cobra.Command {
	o := &renderOptions{app: a}
	cmd := &cobra.Command{
		Use:   "render",
		Short: "Write the manifests of all operators in quayside.lock",
		Long: Doc(`
			Write the manifests of every operator in quayside.lock as a tree of kustomizations:
			a base for each operator, an overlay for each cluster, and a directory with all
			CustomResourceDefinitions, in rendered/ or in spec.output of quayside.yaml.

			quayside reads only the lock, quayside.yaml and the bundles: the same lock gives the
			same bytes on every machine. It removes its own files that are no longer needed, and
			does not touch files that it did not write. If you edited one of its files, it reports
			an error: move your change to an overlay, or overwrite the file with --force.

			quayside computes the needs of the operators in the clusters: APIs, classes, Secrets,
			Pod Security levels, OLM. If neither the tree, nor spec.provides, nor an observation
			(--observed) meets a need, and the cluster would reject the objects or pods, it reports
			an error and writes nothing. The same applies to patches in overlays, and to settings of
			the GitOps tool, that select no object.

			--stdout builds the overlay of one cluster, with your patches, like 'kubectl kustomize',
			and prints the objects in the order in which kubectl can apply them: Namespaces,
			ServiceAccounts and configuration, then CustomResourceDefinitions, roles, workloads,
			webhooks, and at last custom resources. --split writes one file for each of them; the
			order of the names is that of application. --operator selects those of one operator.

			With --into, the tree is written to another directory instead, such as one in a clone of
			the repository that the GitOps tool reads, with the files of your overlays.

			See also: docs/needs.md, docs/gitops.md
			Exit codes: 0 done; 1 with --check, the tree is out of date; 2 an error.`),
		Example: Examples(`
			# write the tree
			quayside render

			# in CI: check that the committed tree is up to date with the lock
			quayside render --check

			# print the objects of one cluster as one stream, in apply order
			quayside render --stdout --overlay default

			quayside render --split out --operator my-etcd/etcd

			# write the tree into a clone of the repository that Argo CD or Flux reads
			quayside render --into ../deploy/envs/prod`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.stdout && (o.check || cmd.Flags().Changed("output")) {
				return Usagef(cmd, "--stdout cannot be used with --check or --output")
			}
			for _, flag := range []string{"overlay", "operator"} {
				if cmd.Flags().Changed(flag) && !o.stdout && o.split == "" {
					return Usagef(cmd, "--%s requires --stdout or --split", flag)
				}
			}
			if o.split != "" && o.check {
				return Usagef(cmd, "--split cannot be used with --check")
			}
			if o.force && (o.stdout || o.check) {
				return Usagef(cmd, "--force cannot be used with --check or --stdout")
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.stdout, "stdout", false, "print one stream of YAML documents in apply order instead of writing the tree")
	f.StringVar(&o.split, "split", "", "write the objects of --stdout to the `DIRECTORY`, one file for each")
	f.StringVar(&o.of, "operator", "", "with --stdout or --split, only the objects of `NAMESPACE/PACKAGE`")
	f.StringVar(&o.overlay, "overlay", "", "with --stdout or --split, the `CLUSTER` to print (default: the only one)")
	f.BoolVar(&o.check, "check", false, "write nothing; print the differences and exit with 1 if there are any")
	f.BoolVar(&o.force, "force", false, "overwrite and remove files of the tree that were edited by hand")
	f.StringVar(&o.into, "into", "", "the `DIRECTORY` to write the tree to, which may be in another repository, instead of spec.output")
	for _, flag := range []string{"into", "split"} {
		if err := cmd.MarkFlagDirname(flag); err != nil {
			panic(err) // the flag does not exist: a bug in this package
		}
	}
	cmd.MarkFlagsMutuallyExclusive("stdout", "split", "into")
	addObservedSupply(cmd, &o.observed)
	addOffline(cmd, o.app)
	addOutput(cmd, a, nil, workspace.TreeReport{})
	addAll(cmd, a, "stdout", "split", "into")
	a.offer(cmd, "overlay", a.completions(edit.Completer.Clusters))
	a.offer(cmd, "operator", a.completions(edit.Completer.Operators))
	addWriter(cmd, a, "check", "stdout", "split")
	return cmd
}

func (o *renderOptions) run(ctx context.Context) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	if err := p.CheckRead(ctx); err != nil {
		return err
	}
	if p.Observed, err = o.readObserved(p, o.observed...); err != nil {
		return err
	}
	var r *workspace.TreeReport
	switch {
	case o.into != "":
		r, err = o.renderInto(ctx, p)
	case o.stdout, o.split != "":
		r, err = p.RenderChecked(ctx)
	case o.check:
		r, err = p.CheckTree(ctx, false)
	default:
		r, err = p.WriteTree(ctx, o.force)
	}
	if o.logTree(r); err != nil {
		return err
	}
	if o.stdout || o.split != "" {
		return o.stream(p, r)
	}
	err = o.print(r, func(io.Writer) { o.printRendered(r) })
	if err == nil && o.check {
		err = r.Err()
	}
	return err
}

// renderInto writes the tree to the directory of --into or, with --check, compares it.
func (o *renderOptions) renderInto(ctx context.Context, p *workspace.Project) (*workspace.TreeReport, error) {
	r, err := p.RenderChecked(ctx)
	if err != nil {
		return r, err
	}
	tree, err := deliver.SelfContained(ctx, p, r.Result)
	if err != nil {
		return r, err
	}
	dir := filetree.OpenUserDir(o.argPath(o.into))
	if err := r.CompareWith(dir, o.into, tree); err != nil || o.check {
		return r, err
	}
	return r, r.WriteTo(dir, o.force)
}

// stream prints the objects of a cluster, including the effect of the user's overlays. With --split, it writes
// them to a directory.
func (o *renderOptions) stream(p *workspace.Project, r *workspace.TreeReport) error {
	cluster, err := p.Settings.ClusterName(o.overlay, "--overlay")
	if err != nil {
		return err
	}
	if o.of != "" {
		if err := checkPinned(p, o.of); err != nil {
			return err
		}
		r.Operators = 1
	}
	objects, err := r.Stream(cluster, o.of)
	if err != nil {
		return err
	}
	if o.split == "" {
		_, err = o.out.Write(objects.YAML())
		return err
	}
	files, err := objects.Files()
	if err != nil {
		return err
	}
	dir := filetree.OpenUserDir(o.argPath(o.split))
	if err := r.CompareWith(dir, o.split, files); err != nil {
		return err
	}
	if err := r.WriteTo(dir, o.force); err != nil {
		return err
	}
	return o.print(r, func(io.Writer) { o.printRendered(r) })
}

// checkPinned returns an error if the lock has no such operator.
func checkPinned(p *workspace.Project, operator string) error {
	lock, err := p.NeedLock()
	if err != nil {
		return err
	}
	var names []string
	for _, pin := range lock.Pins {
		names = append(names, pin.Key())
	}
	if !slices.Contains(names, operator) {
		return fmt.Errorf("no operator %q in %s (available: %s)%s", operator, workspace.LockFile, strings.Join(names, ", "), diag.DidYouMean(operator, names))
	}
	return nil
}

// logTree prints the warnings and notes of a report. r may be nil.
func (a *app) logTree(r *workspace.TreeReport) {
	if r == nil {
		return
	}
	a.log.Warn(r.Warnings)
	for _, note := range r.Notes {
		a.log.Note("%s", note)
	}
}

// maxListed is the maximum number of written files that are listed one by one.
const maxListed = 40

// printRendered lists the differences, and logs the result.
func (a *app) printRendered(r *workspace.TreeReport) {
	changes := r.Changes
	if a.out.Brief {
		printCounts(a.out, r.Output, changes)
		return
	}
	if r.Written && len(changes) > maxListed {
		changes = foldChanges(changes)
	}
	for _, c := range changes {
		if c.Kind == workspace.Foreign {
			fmt.Fprintf(a.out, "? %s (not quayside's)\n", sanitize.Line(c.Path))
			continue
		}
		fmt.Fprintf(a.out, "%s %s\n", a.out.Sign(c.Kind.Sign()), sanitize.Line(c.Path))
	}
	has := diag.Count(r.Operators, "operator") + ", " + diag.Count(r.Files, "file")
	switch {
	case r.Elsewhere:
		a.log.Note("rendered %s: 'quayside propose --tree' commits the tree to %s, and 'quayside render --into' writes it to a clone", has, r.Output)
	case r.Written:
		a.log.Note("wrote %s (%s)", r.Output, has)
	case r.IsUpToDate():
		a.log.Note("%s is up to date (%s)", r.Output, has)
	}
}

// printCounts prints the number of added, changed and removed files.
func printCounts(out *terminal.Terminal, dir string, changes []filetree.FileChange) {
	count := map[filetree.Kind]int{}
	for _, c := range changes {
		count[c.Kind]++
	}
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		if kind != workspace.Foreign {
			fmt.Fprintf(out, "%s %s (%s)\n", out.Sign(kind.Sign()), sanitize.Line(dir), diag.Count(count[kind], "file"))
		}
	}
}

// foldChanges combines the changes in each directory of an operator, a package's CRDs or a cluster into one
// entry. It does the same for every other directory at the top of the tree.
func foldChanges(changes []filetree.FileChange) []filetree.FileChange {
	var dirs []string
	files := map[string][]filetree.FileChange{}
	for _, c := range changes {
		parts := strings.Split(c.Path, "/")
		depth := 1 // a directory such as pieces/ or argocd/
		switch parts[0] {
		case "operators", "crds", "clusters":
			depth = 2
		}
		dir := strings.Join(parts[:min(depth, len(parts)-1)], "/")
		if files[dir] == nil {
			dirs = append(dirs, dir)
		}
		files[dir] = append(files[dir], c)
	}
	var out []filetree.FileChange
	for _, dir := range dirs {
		all := files[dir]
		if dir == "" || len(all) == 1 {
			out = append(out, all...)
			continue
		}
		kind := all[0].Kind
		if slices.ContainsFunc(all, func(c filetree.FileChange) bool { return c.Kind != kind }) {
			kind = filetree.Modified
		}
		out = append(out, filetree.FileChange{Path: fmt.Sprintf("%s/ (%s)", dir, diag.Count(len(all), "file")), Kind: kind})
	}
	return out
}
