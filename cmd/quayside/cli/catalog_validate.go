package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

func newCatalogValidate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate {<directory> | <source>}",
		Short: "Report everything that is wrong with a catalog",
		Long: doc(`
			Report everything that is wrong with a catalog: what cannot be read, packages
			without their default channel, channels without a head or with several, entries
			that name no bundle, bundles without an image or a version, and the like. It is
			as strict as 'opm validate' and reports all faults at once. Bundles whose
			requirements cannot be read affect only themselves, and are warnings.

			A catalog is given as in quayside.yaml ("oci:catalog", "bundles:src"), as a
			directory, as an image, or by its name in the workspace.

			Exit codes: 0 no faults; 1 faults; 2 the catalog could not be opened.`),
		Example: examples(`
			quayside catalog validate catalog-src
			quayside catalog validate oci:catalog -o json`),
		Args: wantArgs("a directory or a source"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.catalogValidate(cmd.Context(), args[0]) },
	}
	addOutput(cmd, a, nil, validateReport{})
	addOffline(cmd, a)
	return cmd
}

func (a *app) catalogValidate(ctx context.Context, text string) error {
	p, here, err := a.here()
	if err != nil {
		return err
	}
	r := &validateReport{Subject: text}
	got, err := p.CheckCatalog(ctx, here, text)
	var faults diag.List
	if err != nil && !errors.As(err, &faults) {
		return err
	}
	for _, pkg := range got.Content.Packages {
		r.Packages++
		r.Bundles += len(pkg.Bundles)
	}
	warnings := got.Warnings
	if got.Catalog != nil {
		warnings = append(warnings, unusable(got.Catalog)...)
	}
	r.Warnings = append([]diag.Warning{}, p.Acknowledge(diag.SortWarnings(warnings))...)
	return a.validated(r, err)
}

// unusable warns of the bundles that no resolution can choose.
func unusable(cat *catalog.Catalog) []diag.Warning {
	var ws []diag.Warning
	for _, p := range cat.Packages() {
		for _, b := range p.Bundles() {
			if why := b.Unusable(); why != "" {
				ws = append(ws, diag.Warning{Code: "bundle-unusable", Subject: p.Name(), Msg: "bundle " + b.Name() + " of package " + p.Name() + " can never be chosen: " + why})
			}
		}
	}
	return ws
}
