package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/app/inventory"
	"github.com/quayside/quayside/internal/base/inert"
)

func newCatalogSearch(a *app) *cobra.Command {
	o := &catalogOptions{app: a}
	cmd := &cobra.Command{
		Use:   "search <word>...",
		Short: "Search the packages",
		Long: Doc(`
			Search the catalogs for packages that mention every word: in the name, the
			display name, the description, the provider, the keywords or the APIs that the
			head of a channel owns. Case does not matter. What is called so comes first, then
			what begins with the words, then what has them in its name, in its display name,
			and elsewhere.`),
		Example: Examples(`
			quayside catalog search database
			quayside catalog search etcdcluster -o json`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return Usagef(cmd, "missing argument: a search term")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, words []string) error {
			found, err := o.search(cmd, inventory.MatchWords(words))
			if err != nil {
				return err
			}
			l := inventory.RankPackages(found, words)
			if len(l.Packages) == 0 {
				o.log.Note("no package mentions %s", inert.Line(strings.Join(words, " and ")))
			}
			return o.printTable(l, l.Table())
		},
	}
	o.addFlags(cmd, inventory.PackageList{})
	return cmd
}
