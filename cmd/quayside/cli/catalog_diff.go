package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
)

type catalogDiffOptions struct {
	*app
	pkg      string
	exitZero bool
}

func newCatalogDiff(a *app) *cobra.Command {
	o := &catalogDiffOptions{app: a}
	cmd := &cobra.Command{
		Use:   "diff <before> <after>",
		Short: "Show what changed between two catalogs",
		Long: doc(`
			Show what changed between two catalogs, or two states of one: packages, default
			channels, channels and their heads, the edges of the upgrade graphs, bundles
			with their images, properties and related images, deprecations, and how long
			versions are supported.

			Each is given as in quayside.yaml ("image:quay.io/org/catalog@sha256:…"), as a
			directory, as an image, or by its name in the workspace.

			Exit codes: 0 no differences; 1 differences; 2 an error.`),
		Example: examples(`
			quayside catalog diff olm/quickstart catalog-src --exit-zero
			quayside catalog diff oci:catalog bundles:catalog-src -o json`),
		Args: wantArgs("two catalogs", "the second catalog"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1]) },
	}
	addOutput(cmd, a, nil, catalogDiffView{})
	cmd.Flags().StringVar(&o.pkg, "package", "", "look at the package `NAME` only")
	cmd.Flags().BoolVar(&o.exitZero, "exit-zero", false, "exit with 0 even if there are differences")
	addOffline(cmd, o.app)
	return cmd
}

// catalogDiffView is what `catalog diff` prints.
type catalogDiffView struct {
	Before  string           `json:"before"`
	After   string           `json:"after"`
	Changes []catalog.Change `json:"changes"`
}

func (o *catalogDiffOptions) run(ctx context.Context, before, after string) error {
	p, here, err := o.here()
	if err != nil {
		return err
	}
	var cats [2]*catalog.Catalog
	for i, text := range []string{before, after} {
		got, err := p.CheckCatalog(ctx, here, text)
		if err != nil {
			return fmt.Errorf("catalog %q: %w", text, err)
		}
		o.talk.Warn(got.Warnings)
		cats[i] = got.Catalog
	}
	changes := []catalog.Change{}
	for _, c := range catalog.Diff(cats[0], cats[1]) {
		if o.pkg == "" || c.Package == o.pkg {
			changes = append(changes, c)
		}
	}
	if err := o.print(catalogDiffView{before, after, changes}, func(w io.Writer) { o.text(w, changes) }); err != nil {
		return err
	}
	if len(changes) == 0 {
		o.talk.Note("no differences")
		return nil
	}
	found := diag.Count(len(changes), "difference")
	if !o.exitZero {
		return &project.DiffersError{Msg: found}
	}
	o.talk.Note("%s", found)
	return nil
}

func (o *catalogDiffOptions) text(w io.Writer, changes []catalog.Change) {
	last := ""
	for _, c := range changes {
		if c.Part == catalog.PartPackage {
			fmt.Fprintf(w, "%s %s%s\n", o.sign(c), inert.Line(c.Package), inert.Line(at(" ", c)))
			continue
		}
		if c.Package != last {
			fmt.Fprintf(w, "%s %s\n", o.out.Sign("~"), inert.Line(c.Package))
			last = c.Package
		}
		fmt.Fprintf(w, "  %s %s\n", o.sign(c), inert.Line(inWords(c)))
	}
}

func (o *catalogDiffOptions) sign(c catalog.Change) string {
	return o.out.Sign(map[catalog.ChangeKind]string{catalog.Added: "+", catalog.Removed: "-", catalog.Changed: "~"}[c.Kind])
}

// inWords tells a change within a package.
func inWords(c catalog.Change) string {
	where := ""
	switch {
	case c.Channel != "" && c.Part != catalog.PartChannel:
		where = "channel " + c.Channel + ": "
	case c.Bundle != "" && c.Part != catalog.PartBundle:
		where = "bundle " + c.Bundle + ": "
	}
	change := cmp.Or(c.From, "nothing") + " → " + cmp.Or(c.To, "nothing")
	switch c.Part {
	case catalog.PartChannel:
		return "channel " + c.Channel + at(", head ", c)
	case catalog.PartBundle:
		return "bundle " + c.Bundle + at(" ", c)
	case catalog.PartEdges:
		if c.Kind == catalog.Changed {
			return where + c.Bundle + ": " + change
		}
		return where + c.Bundle + at(" ", c)
	case catalog.PartDefault:
		return "default channel: " + change
	case catalog.PartLifecycle:
		return "support of " + c.Version + ": " + change
	case catalog.PartImages:
		return where + "related images: " + change
	default:
		return where + string(c.Part) + ": " + change
	}
}

// at returns what is known of a part that one side alone has.
func at(before string, c catalog.Change) string {
	if c.From+c.To == "" {
		return ""
	}
	return before + c.From + c.To
}
