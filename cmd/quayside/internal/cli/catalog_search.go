package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/internal/sanitize"
)

func newCatalogSearch(a *app) *cobra.Command {
	o := &catalogOptions{app: a}
	cmd := &cobra.Command{
		Use:   "search <word>...",
		Short: "Search the packages",
		Long: Doc(`
			Search the catalogs for packages that contain every word in their name, display name,
			description, provider, keywords, or in the APIs of a channel's newest version. Case does
			not matter. The best matches are listed first: equal names, names that begin with the
			words, other matches in the name, in the display name, and in the other fields.`),
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
				o.log.Note("no package mentions %s", sanitize.Line(strings.Join(words, " and ")))
			}
			return o.printTable(l, packageTable(l))
		},
	}
	o.addFlags(cmd, inventory.PackageList{})
	return cmd
}
