package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/listing"
)

func newCatalogShow(a *app) *cobra.Command {
	o := &catalogOptions{app: a}
	cmd := &cobra.Command{
		Use:   "show <package>",
		Short: "Show a package",
		Long: doc(`
			Show what a package is, what its newest bundle provides and requires, where it
			can be installed, and every version in every channel; where the catalog says it,
			until when each is supported, and on which platforms.`),
		Example: examples(`
			quayside catalog show memcached-operator
			quayside catalog show vault -o json`),
		Args:              wantArgs("a package"),
		ValidArgsFunction: first(o.offered),
		RunE: o.finding(func(pkgs []*catalog.Package) error {
			shown := listing.Show(pkgs, o.today.text())
			return o.print(shown, func(io.Writer) { shown.Write(o.out) })
		}),
	}
	o.addFlags(cmd, listing.Shown{})
	addToday(cmd, &o.today, "support")
	return cmd
}
