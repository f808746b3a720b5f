package cli

import (
	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/build"
)

func newCatalogValidate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate {<directory> | <source>}",
		Short: "Report all faults of a catalog",
		Long: Doc(`
			Report all faults of a catalog, such as unreadable files, packages without their default
			channel, channels without a head or with several, entries without a bundle, and bundles
			without an image or a version. The rules are as strict as those of 'opm validate'. A
			bundle with unreadable requirements is a warning.

			Name a catalog by its source as in quayside.yaml ("oci:catalog", "bundles:src"), by a
			directory, by an image, or by its name in the workspace.

			Exit codes: 0 no faults; 1 faults; 2 the catalog cannot be opened.`),
		Example: Examples(`
			quayside catalog validate catalog-src
			quayside catalog validate oci:catalog -o json`),
		Args: WantArgs("a directory or a source"),
		RunE: a.runValidate(build.ValidateCatalog),
	}
	addOutput(cmd, a, nil, build.Validation{})
	addOffline(cmd, a)
	return cmd
}
