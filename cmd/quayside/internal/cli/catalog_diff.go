package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/terminal"
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
		Short: "Show the changes between two catalogs",
		Long: Doc(`
			Show the changes between two catalogs, or between two versions of one: packages, default
			channels, channels and their heads, upgrade edges, bundles with their images and
			properties, deprecations and support dates.

			Name a catalog by its source as in quayside.yaml ("image:quay.io/org/catalog@sha256:…"),
			by a directory, by an image, or by its name in the workspace.

			Exit codes: 0 no differences; 1 differences; 2 an error.`),
		Example: Examples(`
			quayside catalog diff olm/quickstart catalog-src --exit-zero
			quayside catalog diff oci:catalog bundles:catalog-src -o json`),
		Args: WantArgs("two catalogs", "the second catalog"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1]) },
	}
	addOutput(cmd, a, nil, inventory.CatalogChanges{})
	cmd.Flags().StringVar(&o.pkg, "package", "", "compare only the package `NAME`")
	cmd.Flags().BoolVar(&o.exitZero, "exit-zero", false, "exit with 0 even if there are differences")
	addOffline(cmd, o.app)
	return cmd
}

func (o *catalogDiffOptions) run(ctx context.Context, before, after string) error {
	p, here, err := o.openForArgs()
	if err != nil {
		return err
	}
	var cats [2]*catalog.Catalog
	for i, text := range []string{before, after} {
		got, err := workspace.CheckCatalog(ctx, p, here, text)
		if err != nil {
			return fmt.Errorf("catalog %q: %w", text, err)
		}
		o.log.Warn(got.Warnings)
		cats[i] = got.Catalog
	}
	changed := inventory.CatalogChanges{Before: before, After: after, Changes: []catalog.Change{}}
	for _, c := range catalog.Diff(cats[0], cats[1]) {
		if o.pkg == "" || c.Package == o.pkg {
			changed.Changes = append(changed.Changes, c)
		}
	}
	if err := o.print(changed, func(io.Writer) { printCatalogChanges(o.out, changed) }); err != nil {
		return err
	}
	if len(changed.Changes) == 0 {
		o.log.Note("no differences")
		return nil
	}
	found := diag.Count(len(changed.Changes), "difference")
	if !o.exitZero {
		return &workspace.DiffersError{Msg: found}
	}
	o.log.Note("%s", found)
	return nil
}

func printCatalogChanges(w *terminal.Terminal, d inventory.CatalogChanges) {
	last := ""
	for _, c := range d.Changes {
		if c.Part == catalog.PartPackage {
			fmt.Fprintf(w, "%s %s%s\n", changeSign(w, c), sanitize.Line(c.Package), sanitize.Line(withPrefix(" ", c)))
			continue
		}
		if c.Package != last {
			fmt.Fprintf(w, "%s %s\n", w.Sign("~"), sanitize.Line(c.Package))
			last = c.Package
		}
		fmt.Fprintf(w, "  %s %s\n", changeSign(w, c), sanitize.Line(describeChange(c)))
	}
}

func changeSign(w *terminal.Terminal, c catalog.Change) string {
	return w.Sign(map[catalog.ChangeKind]string{catalog.Added: "+", catalog.Removed: "-", catalog.Changed: "~"}[c.Kind])
}

// describeChange describes a change within a package.
func describeChange(c catalog.Change) string {
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
		return "channel " + c.Channel + withPrefix(", head ", c)
	case catalog.PartBundle:
		return "bundle " + c.Bundle + withPrefix(" ", c)
	case catalog.PartEdges:
		if c.Kind == catalog.Changed {
			return where + c.Bundle + ": " + change
		}
		return where + c.Bundle + withPrefix(" ", c)
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

// withPrefix returns the text before, followed by the old or new value of an added or removed part.
// It returns "" if the change has no value.
func withPrefix(before string, c catalog.Change) string {
	if c.From+c.To == "" {
		return ""
	}
	return before + c.From + c.To
}
