package cli

import (
	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/listing"
)

func newCatalogChannels(a *app) *cobra.Command {
	o := &catalogOptions{app: a}
	cmd := &cobra.Command{
		Use:   "channels <package>",
		Short: "List the channels of a package",
		Long:  "List the channels of a package, the default one first, with the version at the head of each.",
		Example: examples(`
			quayside catalog channels etcd
			quayside catalog channels etcd -o yaml`),
		Args:              wantArgs("a package"),
		ValidArgsFunction: first(o.offered),
		RunE: o.finding(func(pkgs []*catalog.Package) error {
			l := listing.ChannelsOf(pkgs)
			return o.printTable(l, l.Table())
		}),
	}
	o.addFlags(cmd, listing.Channels{})
	return cmd
}
