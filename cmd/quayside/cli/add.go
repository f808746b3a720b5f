package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/app/edit"
	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/inert"
	"github.com/quayside/quayside/resolve/explain"
)

type editOptions struct {
	*app
	wish   edit.Wish
	check  bool
	render bool
}

func newAdd(a *app) *cobra.Command {
	o := &editOptions{app: a}
	cmd := &cobra.Command{
		Use:   "add PACKAGE[@CHANNEL | @VERSION]...",
		Short: "Declare operators and pin them in the lock",
		Long: Doc(`
			Declare operators in the workspace's files, choose versions for them and for what
			they depend on, and write quayside.lock. Without a solution nothing is written.

			A declaration is written in the dialect of the workspace: OLM's Subscription with
			the OperatorGroup that it needs, a ClusterExtension, or quayside's own
			Subscription, whichever most declarations are; quayside's own where there is
			none. It is written to a file of its own in the directory that --to names, else
			spec.newDeclarations, else the only directory of spec.declarations in the
			workspace (subscriptions/ by default), else the only one at all; where there are
			several you are asked on a terminal. A file among spec.declarations is appended
			to. Nothing else in a file changes. Other environments that read the same
			directory are listed.

			Behind an @ stands a channel, a version, which is then the only one that is
			wanted, or a range of versions. Without it the package's default channel is
			taken; on a terminal you are asked, where there are several.

			The namespace is that of -n, else what the operator suggests, else the name of
			the package. The operator watches all namespaces if it can, else its own, unless
			--watch or an OperatorGroup says otherwise.

			Exit codes: 0 done; 1 with --check, something would be written; 2 an error; 3 no
			solution.`),
		Example: Examples(`
			quayside add etcd -n databases

			# a channel, and the namespaces to watch
			quayside add etcd@singlenamespace-alpha -n team-a --watch team-a

			# a range of versions; and render at once
			quayside add etcd@0.9.x -n team-b --render

			# into one of several directories of spec.declarations
			quayside add etcd@singlenamespace-alpha -n team-c --to subscriptions`),
		Args: someArgs("package"),
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return matchingWords(cmd, func(ctx context.Context, prefix string) []string { return a.wishes(ctx, o.wish.Catalog, prefix) }, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.wish.Packages = args
			if !cmd.Flags().Changed("watch") {
				o.wish.Watch = nil
			}
			if a.prompt.Can() {
				o.wish.Choose = a.prompt.Choose // asks on the terminal
			}
			return o.run(cmd.Context(), func(ctx context.Context, p *workspace.Project) (*edit.Edit, error) { return edit.Add(ctx, p, o.wish) })
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.wish.Namespace, "namespace", "n", "", "install into `NAMESPACE`")
	f.StringVar(&o.wish.To, "to", "", "write to this `PATH` of spec.declarations")
	f.StringVar(&o.wish.Catalog, "catalog", "", "take the package from the catalog `[NAMESPACE/]NAME`")
	f.StringSliceVar(&o.wish.Watch, "watch", nil, "namespaces for the operator to watch: `NAMESPACE`s, or all ('*')")
	o.flags(cmd)
	a.offer(cmd, "catalog", a.catalogs)
	a.offer(cmd, "namespace", a.namespaces)
	return cmd
}

func newRemove(a *app) *cobra.Command {
	o := &editOptions{app: a}
	cmd := &cobra.Command{
		Use:   "remove [NAMESPACE/]PACKAGE...",
		Short: "Remove operators from the declarations and the lock",
		Long: Doc(`
			Take operators out of the declarations, and out of quayside.lock together with
			what nothing requires any more. The OperatorGroup of a namespace in which nothing
			is declared any more goes too; a Namespace stays. Nothing else in a file changes;
			a file in which nothing is left is removed.

			A declaration is removed from the file that has it, also outside of the workspace;
			other environments that read that file are listed. What a kustomization builds and
			what stands in one document with other objects is left for you to edit.

			Exit codes: 0 done; 1 with --check, something would be written; 2 an error; 3 what
			is left has no solution.`),
		Example: Examples(`
			quayside remove vault/vault
			quayside remove at-operator my-etcd/etcd --render`),
		Args:              someArgs("operator"),
		ValidArgsFunction: a.operators,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), func(ctx context.Context, p *workspace.Project) (*edit.Edit, error) { return edit.Remove(ctx, p, args) })
		},
	}
	o.flags(cmd)
	return cmd
}

// flags adds the common flags to cmd.
func (o *editOptions) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.check, "check", false, "write nothing; exit with 1 if anything would be written")
	cmd.Flags().BoolVar(&o.render, "render", false, "write the rendered tree too")
	addOffline(cmd, o.app)
	addOutput(cmd, o.app, nil, editReport{})
}

// editReport is the output of `quayside add` and `quayside remove`.
type editReport struct {
	Written   bool                  `json:"written"`
	Files     []edit.File           `json:"files" doc:"of declarations"`
	Shared    []string              `json:"sharedWith" doc:"directories of other workspaces in the repository that read one of the files"`
	Lock      string                `json:"lock"`
	Pins      int                   `json:"pins"`
	Changes   []workspace.Change    `json:"changes" doc:"to the lock"`
	Rendered  *workspace.TreeReport `json:"rendered,omitempty"` // with --render
	Warnings  []diag.Warning        `json:"warnings"`
	Conflicts []*explain.Conflict   `json:"conflicts"`
}

func (o *editOptions) run(ctx context.Context, edits func(context.Context, *workspace.Project) (*edit.Edit, error)) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	e, err := edits(ctx, p)
	o.log.Done()
	if err != nil {
		return err
	}
	res := e.Resolution
	o.log.Warn(res.Warnings)
	r := editReport{
		Files: append([]edit.File{}, e.Files...), Shared: append([]string{}, e.SharedWith...), Lock: workspace.LockFile, Pins: res.Pins, Changes: append([]workspace.Change{}, res.Changes...),
		Warnings: append([]diag.Warning{}, res.Warnings...), Conflicts: append([]*explain.Conflict{}, res.Conflicts...),
	}
	if res.Lock != nil && !o.check {
		if err := e.Write(); err != nil {
			return err
		}
		r.Written = true
		if o.render {
			if r.Rendered, err = p.RenderAnew(ctx); err != nil {
				return err
			}
		}
	}
	if err := o.print(r, func(w io.Writer) { o.show(w, e, r) }); err != nil || res.Failed != nil {
		return errors.Join(err, res.Failed)
	}
	if o.check {
		return errDiffers
	}
	return nil
}

func (o *editOptions) show(w io.Writer, e *edit.Edit, r editReport) {
	if e.Resolution.Lock == nil {
		o.log.Note("nothing written: the new declarations have no solution")
		return
	}
	for _, f := range r.Files {
		fmt.Fprintln(w, o.out.Sign(f.Change.Sign())+" "+inert.Line(f.Path))
	}
	for _, c := range r.Changes {
		fmt.Fprintln(w, o.out.Sign(c.Sign())+" "+inert.Line(c.String()))
	}
	for _, note := range e.Notes {
		o.log.Note("%s", inert.Line(note))
	}
	if r.Rendered != nil {
		defer r.Rendered.Print(o.out, o.log)
	}
	if r.Written {
		o.log.Note("wrote %s (%s)", r.Lock, diag.Count(r.Pins, "operator"))
	}
}
