package cli

import (
	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/internal/terminal"
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
			return o.printTable(l, packageTable(l))
		},
	}
	o.addFlags(cmd, inventory.PackageList{})
	return cmd
}

func packageTable(l inventory.PackageList) *terminal.Table {
	t := &terminal.Table{Head: []string{"package", "version", "channel", "catalog", "description"}}
	for _, r := range l.Packages {
		t.Add(r.Package, r.Version, r.DefaultChannel, r.Catalog, r.Description)
	}
	return t
}
