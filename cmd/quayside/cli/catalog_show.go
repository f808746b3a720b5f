package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/app/inventory"
	"github.com/quayside/quayside/internal/model"
)

func newCatalogShow(a *app) *cobra.Command {
	o := &catalogOptions{app: a}
	cmd := &cobra.Command{
		Use:   "show <package>",
		Short: "Show a package",
		Long: Doc(`
			Show what a package is, what its newest bundle provides and requires, where it
			can be installed, and every version in every channel; where the catalog says it,
			until when each is supported, and on which platforms.`),
		Example: Examples(`
			quayside catalog show memcached-operator
			quayside catalog show vault -o json`),
		Args:              WantArgs("a package"),
		ValidArgsFunction: completeFirst(o.offered),
		RunE: o.finding(func(pkgs []*model.Package) error {
			shown := inventory.DescribePackages(pkgs, o.today.text())
			return o.print(shown, func(io.Writer) { shown.Write(o.out) })
		}),
	}
	o.addFlags(cmd, inventory.PackageDescriptions{})
	addToday(cmd, &o.today, "support")
	return cmd
}
