package cli

import (
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
			with their images, properties and related images, and deprecations.

			Each is given as in quayside.yaml ("image:quay.io/org/catalog@sha256:…"), as a
			directory, as an image, or by its name in the workspace.

			Exit codes: 0 no differences; 1 differences; 2 an error.`),
		Example: examples(`
			quayside catalog diff olm/quickstart catalog-src --exit-zero
			quayside catalog diff oci:catalog bundles:catalog-src -o json`),
		Args: twoArgs("two catalogs", "the second catalog"),
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
	Before  string          `json:"before"`
	After   string          `json:"after"`
	Changes []catalogChange `json:"changes"`
}

// catalogChange is one difference as it is printed.
type catalogChange struct {
	Change  string `json:"change"` // added, removed, changed
	Part    string `json:"part"`
	Package string `json:"package"`
	Channel string `json:"channel,omitempty"`
	Bundle  string `json:"bundle,omitempty"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
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
	changes := []catalogChange{}
	for _, c := range catalog.Diff(cats[0], cats[1]) {
		if o.pkg == "" || c.Package == o.pkg {
			changes = append(changes, catalogChange{string(c.Kind), string(c.Part), c.Package, c.Channel, c.Bundle, c.From, c.To})
		}
	}
	if err := o.print(catalogDiffView{before, after, changes}, func(w io.Writer) error { return o.text(w, changes) }); err != nil {
		return err
	}
	if len(changes) == 0 {
		o.talk.Note("no differences")
		return nil
	}
	if msg := diag.Count(len(changes), "difference"); !o.exitZero {
		return &project.DiffersError{Msg: msg}
	}
	o.talk.Note("%s", diag.Count(len(changes), "difference"))
	return nil
}

func (o *catalogDiffOptions) text(w io.Writer, changes []catalogChange) error {
	last := ""
	for _, c := range changes {
		if c.Part == string(catalog.PartPackage) {
			fmt.Fprintf(w, "%s %s%s\n", o.sign(c), inert.Line(c.Package), inert.Line(at(" ", c)))
			continue
		}
		if c.Package != last {
			fmt.Fprintf(w, "%s %s\n", o.out.sign("~"), inert.Line(c.Package))
			last = c.Package
		}
		fmt.Fprintf(w, "  %s %s\n", o.sign(c), inert.Line(c.words()))
	}
	return nil
}

func (o *catalogDiffOptions) sign(c catalogChange) string {
	switch catalog.ChangeKind(c.Change) {
	case catalog.Added:
		return o.out.sign("+")
	case catalog.Removed:
		return o.out.sign("-")
	case catalog.Changed:
	}
	return o.out.sign("~")
}

// words tells a change within a package.
func (c catalogChange) words() string {
	where := ""
	switch {
	case c.Channel != "" && c.Part != string(catalog.PartChannel):
		where = "channel " + c.Channel + ": "
	case c.Bundle != "" && c.Part != string(catalog.PartBundle):
		where = "bundle " + c.Bundle + ": "
	}
	switch catalog.Part(c.Part) {
	case catalog.PartChannel:
		return "channel " + c.Channel + at(", head ", c)
	case catalog.PartBundle:
		return "bundle " + c.Bundle + at(" ", c)
	case catalog.PartEdges:
		if c.Change == string(catalog.Changed) {
			return fmt.Sprintf("%s%s: %s → %s", where, c.Bundle, orNothing(c.From), orNothing(c.To))
		}
		return where + c.Bundle + at(" ", c)
	case catalog.PartDefault:
		return fmt.Sprintf("default channel: %s → %s", orNothing(c.From), orNothing(c.To))
	case catalog.PartImages:
		return fmt.Sprintf("%srelated images: %s → %s", where, orNothing(c.From), orNothing(c.To))
	default:
		return fmt.Sprintf("%s%s: %s → %s", where, c.Part, orNothing(c.From), orNothing(c.To))
	}
}

// at returns what is known of a part that one side alone has.
func at(before string, c catalogChange) string {
	if c.From+c.To == "" {
		return ""
	}
	return before + c.From + c.To
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
