package cli

import (
	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/app/build"
)

func newCatalogValidate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate {<directory> | <source>}",
		Short: "Report all faults of a catalog",
		Long: Doc(`
			Report all faults of a catalog: what cannot be read, packages
			without their default channel, channels without a head or with several, entries
			that name no bundle, bundles without an image or a version, and the like. It is
			as strict as 'opm validate' and reports all faults at once. Bundles whose
			requirements cannot be read affect only themselves, and are warnings.

			A catalog is given as in quayside.yaml ("oci:catalog", "bundles:src"), as a
			directory, as an image, or by its name in the workspace.

			Exit codes: 0 no faults; 1 faults; 2 the catalog could not be opened.`),
		Example: Examples(`
			quayside catalog validate catalog-src
			quayside catalog validate oci:catalog -o json`),
		Args: WantArgs("a directory or a source"),
		RunE: a.validating(build.ValidateCatalog),
	}
	addOutput(cmd, a, nil, build.Validation{})
	addOffline(cmd, a)
	return cmd
}
