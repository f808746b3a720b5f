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
			Show a package: its description, the APIs that its newest bundle provides and requires,
			its install modes, and every version in every channel. If the catalog has support dates
			and platforms, they are shown, too.`),
		Example: Examples(`
			quayside catalog show memcached-operator
			quayside catalog show vault -o json`),
		Args:              WantArgs("a package"),
		ValidArgsFunction: completeFirst(o.packageCompletions),
		RunE: o.runWithPackage(func(pkgs []*model.Package) error {
			shown := inventory.DescribePackages(pkgs, o.today.text())
			return o.print(shown, func(io.Writer) { shown.Write(o.out) })
		}),
	}
	o.addFlags(cmd, inventory.PackageDescriptions{})
	addToday(cmd, &o.today, "support")
	return cmd
}
