package cli

import (
	"github.com/quayside/quayside/internal/app/inventory"
	"github.com/spf13/cobra"
)

func newCatalogList(a *app) *cobra.Command {
	o := &catalogOptions{app: a}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the packages",
		Long: Doc(`
			List the packages of every catalog, with their default channel and its newest version.`),
		Example: Examples(`
			quayside catalog list
			quayside catalog list --catalog olm/quickstart -o json`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := o.search(cmd, nil)
			if err != nil {
				return err
			}
			l := inventory.ListPackages(found)
			return o.printTable(l, l.Table())
		},
	}
	o.addFlags(cmd, inventory.PackageList{})
	return cmd
}
