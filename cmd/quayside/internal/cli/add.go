package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/resolve/explain"
)

type editOptions struct {
	*app
	options edit.AddOptions
	check   bool
	render  bool
	prune   bool // of remove
}

func newAdd(a *app) *cobra.Command {
	o := &editOptions{app: a}
	var config string
	cmd := &cobra.Command{
		Use:   "add PACKAGE[@CHANNEL | @VERSION]... | --bundle REF",
		Short: "Declare operators and pin them in the lock",
		Long: Doc(`
			Declare operators: write declarations to the workspace, choose versions for the
			operators and their dependencies, and write quayside.lock. If there is no solution,
			nothing is written.

			PACKAGE can be followed by @ and a channel, a version or a range of versions. If a
			package has several channels, quayside asks on a terminal; the default is its own.

			quayside writes the kind of declaration that most of the existing ones have: OLM's
			Subscription with its OperatorGroup, a ClusterExtension, or quayside's own Subscription,
			which is the default. Each declaration is a new file in the directory of --to, else of
			spec.newDeclarations, else in the only directory of spec.declarations (default:
			subscriptions/). If --to names a file, the declaration is appended. If other
			environments read the same directory, quayside lists their changes, and refuses those
			that break one of them; --only ENVIRONMENT restricts the operator to an environment.

			An operator that is declared already is changed: 'quayside add etcd@0.9.4' sets the
			version in its declaration and upgrades to it, also along several edges of the upgrade
			graph, or in another channel. A channel, --catalog, --approval, --config, --watch and the
			values of a chart (--set, --values) are set in the same way, and so is another --bundle.
			Comments are preserved.

			The namespace is that of -n, else the one that the operator suggests, else the name of
			the package. The operator watches all namespaces if it supports this, else its own;
			--watch or an existing OperatorGroup overrides this.

			Exit codes: 0 done; 1 with --check, there is something to write; 2 an error; 3 no
			solution.`),
		Example: Examples(`
			quayside add etcd -n databases
			quayside add --bundle catalog-src/etcd/0.9.0 -n etcd-test

			# with a channel and the namespaces to watch
			quayside add etcd@singlenamespace-alpha -n team-a --watch team-a
			quayside add etcd@0.9.x -n team-b --render

			# change the declaration of an operator
			quayside add memcached-operator@0.0.2
			quayside add memcached-operator --config '{resources: {limits: {memory: 64Mi}}}'`),
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.options.Bundle == "":
				return someArgs("package")(cmd, args)
			case len(args) > 0:
				return Usagef(cmd, "--bundle cannot be used together with packages")
			case o.options.Catalog != "" || len(o.options.Set)+len(o.options.ValuesFiles) > 0:
				return Usagef(cmd, "--bundle cannot be used together with --catalog, --set or --values")
			}
			return nil
		},
		ValidArgsFunction: completeEach(func(ctx context.Context, prefix string) []string {
			return a.workspaceCompletions(ctx, o.options.Catalog, prefix, edit.Completer.Requests)
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.options.Packages = args
			if !cmd.Flags().Changed("watch") {
				o.options.Watch = nil
			}
			if cmd.Flags().Changed("config") {
				o.options.Config = &config
			}
			if a.prompt.IsInteractive() {
				o.options.Choose = a.prompt.Choose // prompt on the terminal
			}
			return o.run(cmd.Context(), func(ctx context.Context, p *workspace.Project) (*edit.Edit, error) {
				return edit.Add(ctx, p, o.options)
			})
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.options.Namespace, "namespace", "n", "", "install into `NAMESPACE`")
	f.StringVar(&o.options.Bundle, "bundle", "", "declare the bundle `REF` instead of a package: oci:PATH, an image, or a directory (relative to quayside.yaml) with a bundle, a chart, or YAML files in PACKAGE/VERSION")
	f.StringVar(&o.options.To, "to", "", "write to this `PATH` of spec.declarations")
	f.StringSliceVar(&o.options.Only, "only", nil, "write spec.only: install new operators in these `ENVIRONMENTS` only")
	f.StringVar(&o.options.Catalog, "catalog", "", "take the package from the catalog `[NAMESPACE/]NAME`")
	f.StringSliceVar(&o.options.Watch, "watch", nil, "namespaces for the operator to watch: `NAMESPACE`s, or all ('*')")
	approval := &format{value: (*string)(&o.options.Approval), known: []string{string(declare.Automatic), string(declare.Manual)}}
	f.Var(approval, "approval", "upgrade approval; Manual: upgrade only if named")
	a.complete(cmd, "approval", approval.known)
	f.StringArrayVar(&o.options.Set, "set", nil, "set values of a chart, as with helm --set: `KEY=VALUE`")
	f.StringArrayVar(&o.options.ValuesFiles, "values", nil, "take values of a chart from a `FILE`, relative to quayside.yaml")
	f.StringVar(&config, "config", "", "settings of the operator's pods, as in spec.config of a Subscription: `YAML`")
	o.addFlags(cmd)
	a.offer(cmd, "catalog", a.completions(edit.Completer.Catalogs))
	a.offer(cmd, "namespace", a.completions(edit.Completer.Namespaces))
	addWriter(cmd, a, "check")
	return cmd
}

func newRemove(a *app) *cobra.Command {
	o := &editOptions{app: a}
	cmd := &cobra.Command{
		Use:   "remove [NAMESPACE/]PACKAGE...",
		Short: "Remove operators from the declarations and the lock",
		Long: Doc(`
			Remove operators from the declarations and from quayside.lock, with the same result as
			'quayside resolve' after you delete the declarations. Dependencies that nothing else
			requires are kept and listed; --prune removes them, too. If no other operator is
			declared in the namespace, its OperatorGroup is removed; its Namespace is kept. Other
			content of the files does not change. A file without remaining content is deleted.

			quayside edits the file with the declaration, even outside of the workspace, and lists
			the changes of other environments that read it. An environment removes an operator after
			the one that it follows. It does not edit files of a kustomization, or documents that
			contain other objects: remove the declaration there by hand. Delete overlays of the
			operator first.

			Exit codes: 0 done; 1 with --check, there is something to write; 2 an error; 3 the
			remaining declarations have no solution.`),
		Example: Examples(`
			quayside remove vault/vault
			quayside remove at-operator my-etcd/etcd --prune --render`),
		Args:              someArgs("operator"),
		ValidArgsFunction: a.completeOperators,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), func(ctx context.Context, p *workspace.Project) (*edit.Edit, error) {
				return edit.Remove(ctx, p, args, o.prune)
			})
		},
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&o.prune, "prune", false, "also remove dependencies that nothing requires any more")
	addWriter(cmd, a, "check")
	return cmd
}

// addFlags adds the common flags to cmd.
func (o *editOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.check, "check", false, "write nothing; exit with 1 if anything would be written")
	cmd.Flags().BoolVar(&o.render, "render", false, "write the rendered tree too")
	addOffline(cmd, o.app)
	addOutput(cmd, o.app, nil, editReport{})
}

// editReport is the output of `quayside add` and `quayside remove`.
type editReport struct {
	Written   bool                  `json:"written"`
	Files     []edit.File           `json:"files" doc:"files of declarations"`
	Shared    []string              `json:"sharedWith" doc:"directories of other workspaces in the repository that read one of the files"`
	Lock      string                `json:"lock"`
	Pins      int                   `json:"pins"`
	Changes   []workspace.Change    `json:"changes" doc:"changes to the lock"`
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
		r.Rendered, err = e.Write(ctx, o.render)
		if o.logTree(r.Rendered); err != nil {
			return err
		}
		r.Written = true
	}
	if err := o.print(r, func(w io.Writer) { o.show(w, e, r) }); err != nil || res.Failed != nil {
		return errors.Join(err, res.Failed)
	}
	if o.check && !e.IsEmpty() {
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
		fmt.Fprintln(w, o.out.Sign(f.Change.Symbol())+" "+sanitize.Line(f.Path))
	}
	o.printChanges(w, r.Changes)
	for _, note := range e.Notes {
		o.log.Note("%s", sanitize.Line(note))
	}
	if r.Rendered != nil {
		defer o.printRendered(r.Rendered)
	}
	if r.Written {
		o.log.Note("wrote %s (%s)", r.Lock, diag.Count(r.Pins, "operator"))
	}
}
