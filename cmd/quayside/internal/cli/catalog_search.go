package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/internal/sanitize"
)

func newCatalogSearch(a *app) *cobra.Command {
	o, provides := &catalogOptions{app: a}, ""
	cmd := &cobra.Command{
		Use:   "search [<word>...]",
		Short: "Search the packages",
		Long: Doc(`
			Search the catalogs for packages that contain every word in their name, display name,
			description, provider, keywords, or in the APIs of a channel's newest version. Case does
			not matter. The best matches are listed first: equal names, packages that provide an API
			with this name, names that begin with the words, other matches in the name, in the
			display name, in the keywords, and in the other fields.

			--provides lists only the packages that provide an API, named by its kind, its group or
			both.`),
		Example: Examples(`
			quayside catalog search database
			quayside catalog search --provides EtcdCluster
			quayside catalog search --provides cert-manager.io/Certificate -o json`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && provides == "" {
				return Usagef(cmd, "missing argument: a search term, or --provides")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, words []string) error {
			found, err := o.search(cmd, inventory.MatchWords(words))
			if err != nil {
				return err
			}
			if provides != "" {
				found = slices.DeleteFunc(found, func(s cache.Summary) bool { return !s.Provides(provides) })
			}
			l := inventory.RankPackages(found, words)
			switch {
			case len(l.Packages) > 0:
			case provides != "":
				o.log.Note("no package provides %s", sanitize.Line(provides))
			default:
				o.log.Note("no package mentions %s", sanitize.Line(strings.Join(words, " and ")))
			}
			return o.printTable(l, packageTable(l))
		},
	}
	o.addFlags(cmd, inventory.PackageList{})
	cmd.Flags().StringVar(&provides, "provides", "", "list only packages that provide this `API`, such as Kafka or kafka.strimzi.io/Kafka")
	return cmd
}
