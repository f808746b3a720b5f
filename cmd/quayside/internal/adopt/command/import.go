package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/extend"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
)

type importOptions struct {
	cli.Host
	check    bool
	update   bool
	login    *cli.Login
	catalogs []string
	include  []string
}

func newImport(h cli.Host) *cobra.Command {
	o := &importOptions{Host: h}
	cmd := &cobra.Command{
		Use:   "import [FILE | DIR | -]",
		Short: "Import the operators that OLM, Flux or Argo CD installed in a cluster into the workspace",
		Long: cli.Doc(`
			Import the operators that OLM installed in a cluster: write declarations of them to the
			workspace (Subscriptions, OperatorGroups, CatalogSources, ClusterExtensions,
			Namespaces), and pin the installed versions in quayside.lock. The same for charts of
			HelmReleases of Flux and Applications of Argo CD that have the label
			quayside.dev/operator: "true", or that --include selects.
` + sourceDoc + `
			The cluster is only read. A new quayside.yaml has the Kubernetes version of a live cluster.

			Fields that OLM, the cluster or a GitOps tool added are omitted. If a catalog cannot be
			read, or no longer has the installed version, quayside pins the bundle image that the
			InstallPlan names. --catalog supplies the content of a catalog that only the cluster can
			reach.

			In an existing workspace, quayside adds declarations, and lists those that differ from the
			cluster. Only --update changes existing ones, and only the channel, the approval, the config
			and the values of Subscriptions. Objects that are not imported are listed with the reason.
			quayside writes nothing unless the declarations resolve to exactly the installed versions.

			See also: docs/adopt.md
			Exit codes: 0 the workspace has every operator of the cluster; 1 some are missing, or
			with --check, there is something to write; 2 an error.`),
		Example: cli.Examples(`
			# the cluster of the current context, or of another one
			quayside import
			quayside import --context prod

			# with all charts of Flux in a namespace
			quayside import --include 'operators/*'

			# from files
			kubectl get namespaces,subscriptions.operators.coreos.com,operatorgroups,catalogsources,installplans,csv -A -o json > olm.json
			quayside import olm.json
			quayside import must-gather.local.4711

			# with the content of a catalog that only the cluster can reach
			quayside import olm.json --catalog olm/quickstart=oci:catalog`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSource(cmd, args, o.login); err != nil {
				return err
			}
			contents, err := o.contents()
			for _, pattern := range o.include {
				if _, bad := path.Match(pattern, ""); bad != nil || strings.Count(pattern, "/") != 1 {
					err = fmt.Errorf("--include %q: must be NAMESPACE/NAME, where * matches any text", pattern)
				}
			}
			if err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			return o.run(cmd.Context(), args, contents)
		},
	}
	f := cmd.Flags()
	o.login = o.AddLogin(cmd)
	f.StringArrayVar(&o.catalogs, "catalog", nil, "where to read a catalog of the cluster: `NAMESPACE/NAME=SOURCE`, with SOURCE as in quayside.yaml; may be given several times")
	f.StringArrayVar(&o.include, "include", nil, "also import the HelmReleases and Applications that match `NAMESPACE/NAME`, such as \"flux-system/*\"; may be given several times")
	f.BoolVar(&o.update, "update", false, "change the channel, the approval, the config and the values of declared Subscriptions to those in the cluster")
	f.BoolVar(&o.check, "check", false, "write nothing; exit with 1 if anything would be written")
	f.BoolVar(o.Offline, "offline", false, "no network access; list missing content")
	h.AddOutput(cmd, extend.ImportReport{})
	o.AddWriter(cmd, "check")
	return cmd
}

// contents parses the values of --catalog.
func (o *importOptions) contents() ([]extend.CatalogContent, error) {
	var out []extend.CatalogContent
	for _, text := range o.catalogs {
		name, ref, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--catalog %q: must be NAMESPACE/NAME=SOURCE", text)
		}
		if err := source.Ref(ref).Check(); err != nil {
			return nil, fmt.Errorf("--catalog %q: %w", text, err)
		}
		out = append(out, extend.CatalogContent{Catalog: name, Source: source.Ref(ref)})
	}
	return out, nil
}

func (o *importOptions) run(ctx context.Context, args []string, contents []extend.CatalogContent) error {
	p, err := o.Open()
	if err != nil {
		return err
	}
	s, err := readCluster(ctx, o.Host, args, o.login, snapshot.Selection{Keep: snapshot.IsDeclaration, Charts: true})
	if err != nil {
		return err
	}
	e, r, err := extend.Import(ctx, p, extend.Read(s, o.include...), contents, o.update)
	o.Log.Done()
	if err != nil {
		return err
	}
	o.Log.Warn(r.Warnings)
	if !o.check && e != nil {
		if _, err := e.Write(ctx, false); err != nil {
			return err
		}
		r.Written = true
	}
	if err := o.Print(r, func(w io.Writer) { o.show(w, r) }); err != nil {
		return err
	}
	c := r.Counts
	o.Log.Note("%s: %d new, %d already declared, %d declared differently, %d not imported", diag.Count(c.Found, "object"), c.Added, c.Unchanged, c.Conflicts, c.Skipped)
	if r.Others > 0 {
		o.Log.Note("%s of Flux and Argo CD without the label %s: \"true\": not read (--include selects them)", diag.Count(r.Others, "chart"), survey.SelectLabel)
	}
	switch {
	case r.Written:
		o.Log.Note("wrote %s with %s", workspace.LockFile, diag.Count(len(r.Operators), "operator")+" of the cluster")
	case o.check && e != nil:
		return &workspace.DiffersError{Msg: "the workspace differs from the cluster: run the command without --check"}
	}
	if !r.IsComplete() {
		return &workspace.DiffersError{Msg: "some operators of the cluster are not in the workspace: see above"}
	}
	return nil
}

// show prints the result of an import.
func (o *importOptions) show(w io.Writer, r *extend.ImportReport) {
	line := func(sign, text string) { fmt.Fprintln(w, o.Out.Sign(sign)+" "+sanitize.Line(text)) }
	for _, f := range r.Files {
		if len(f.Objects) > 0 {
			line("+", f.Path+": "+strings.Join(f.Objects, ", "))
		} else {
			line(f.Change.Symbol(), f.Path)
		}
	}
	for _, op := range r.Operators {
		text := op.Namespace + "/" + op.Name + ": " + op.Bundle
		if op.Image != "" {
			text += " as " + op.Image
		} else if op.Generated {
			text += " (a dependency)"
		}
		fmt.Fprintln(w, "  "+sanitize.Line(text))
		for _, note := range op.Notes {
			fmt.Fprintln(w, "      "+sanitize.Line(note))
		}
	}
	for _, u := range r.Updates {
		from, to := cmp.Or(u.From, "not set"), cmp.Or(u.To, "not set")
		text := u.Object + " at " + u.Position + ": " + u.Field + " was " + from + ", now " + to + " as in the cluster"
		if !o.update {
			text = u.Object + " at " + u.Position + ": " + u.Field + " is " + from + ", but " + to + " in the cluster: --update changes it"
		}
		line("~", text)
	}
	for _, c := range r.Conflicts {
		line("~", c.Object+" is declared differently at "+c.Position+", unchanged: "+c.Reason)
	}
	for _, u := range r.Unread {
		line("-", u.Kind+" cannot be read: "+u.Reason)
	}
	for _, l := range r.Skipped {
		line("-", l.Kind+" "+strings.TrimPrefix(l.Namespace+"/"+l.Name, "/")+" is not imported: "+l.Reason)
	}
}
