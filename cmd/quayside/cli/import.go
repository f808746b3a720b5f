package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/adopt/extend"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/project"
)

type importOptions struct {
	*app
	check    bool
	login    loginFlags
	catalogs []string
}

func newImport(a *app) *cobra.Command {
	o := &importOptions{app: a}
	cmd := &cobra.Command{
		Use:   "import [FILE | DIR | -]",
		Short: "Bring what OLM installed in a cluster into the workspace",
		Long: doc(`
			Read a cluster in which OLM runs, and declare in files what it installed there:
			Subscriptions, OperatorGroups, CatalogSources, ClusterExtensions, and the
			Namespaces that operators are installed in. Then write quayside.lock, with every
			operator pinned at exactly what is installed.

			The cluster is a file as 'kubectl get -o json' or '-o yaml' prints it ('-' for
			standard input), a directory of such files, a must-gather, or without an argument
			the live cluster of the kubeconfig's current context, or of --context. It is only
			read.

			What OLM, the cluster or a GitOps tool added to the objects is left out. An
			operator whose version its catalog no longer has, or whose catalog cannot be read,
			is pinned by the image of its bundle, as the InstallPlan says it. --catalog says
			where the content of a catalog is that only the cluster can reach.

			An existing workspace is extended: what it declares already stays as it is, and is
			named where the cluster says something else. A second import changes nothing.
			What is not imported is listed with the reason. Nothing is written unless the
			declarations resolve to what is installed.

			Exit codes: 0 every operator of the cluster is in the workspace; 1 some are not, or,
			with --check, something would be written; 2 an error.`),
		Example: examples(`
			# the current context of the kubeconfig, or another one
			quayside import
			quayside import --context prod

			# from files
			kubectl get namespaces,subscriptions.operators.coreos.com,operatorgroups,catalogsources,installplans,csv -A -o json > olm.json
			quayside import olm.json
			quayside import must-gather.local.4711

			# a catalog that only the cluster can reach
			quayside import olm.json --catalog olm/quickstart=oci:catalog`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && (o.login.context != "" || o.login.kubeconfig != "") {
				return usagef(cmd, "%q or a live cluster: leave out --context and --kubeconfig", args[0])
			}
			contents, err := o.contents()
			if err != nil {
				return usagef(cmd, "%w", err)
			}
			return o.run(cmd.Context(), args, contents)
		},
	}
	f := cmd.Flags()
	o.login.flags(cmd)
	f.StringArrayVar(&o.catalogs, "catalog", nil, "where the content of a catalog of the cluster is: `NAMESPACE/NAME=SOURCE`, as in quayside.yaml; may be given several times")
	f.BoolVar(&o.check, "check", false, "write nothing; exit with 1 if anything would be written")
	addOffline(cmd, o.app)
	addOutput(cmd, a, nil, extend.Report{})
	a.offer(cmd, "context", func(context.Context, string) []string { return o.login.contexts(a) })
	return cmd
}

// contents reads --catalog.
func (o *importOptions) contents() ([]extend.Content, error) {
	var out []extend.Content
	for _, text := range o.catalogs {
		name, ref, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--catalog %q: want NAMESPACE/NAME=SOURCE", text)
		}
		if err := source.Ref(ref).Check(); err != nil {
			return nil, fmt.Errorf("--catalog %q: %w", text, err)
		}
		out = append(out, extend.Content{Catalog: name, Source: source.Ref(ref)})
	}
	return out, nil
}

func (o *importOptions) run(ctx context.Context, args []string, contents []extend.Content) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	s, err := o.snapshot(ctx, args, o.login, snapshot.Options{Keep: snapshot.Declares})
	if err != nil {
		return err
	}
	e, err := extend.New(ctx, p, s, contents)
	o.talk.Done()
	if err != nil {
		return err
	}
	o.talk.Warn(e.Report.Warnings)
	if !o.check && e.Changed() {
		if err := e.Write(); err != nil {
			return err
		}
	}
	if err := o.print(e.Report, func(io.Writer) { e.Report.Print(o.out) }); err != nil {
		return err
	}
	return o.verdict(e)
}

// verdict says what came of it, and is the exit code's reason.
func (o *importOptions) verdict(e *extend.Extension) error {
	c := e.Report.Counts
	o.talk.Note("%s: %d new, %d declared already, %d declared otherwise, %d not imported", diag.Count(c.Found, "object"), c.Added, c.Unchanged, c.Conflicts, c.Left)
	switch {
	case e.Report.Written:
		o.talk.Note("wrote %s with %s", project.LockFile, diag.Count(len(e.Report.Operators), "operator")+" of the cluster")
	case o.check && e.Changed():
		return &project.DiffersError{Msg: "the workspace lacks what the cluster has: run 'quayside import'"}
	}
	if !e.Whole() {
		return &project.DiffersError{Msg: "not every operator of the cluster is in the workspace: see above"}
	}
	return nil
}
