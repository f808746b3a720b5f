package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
)

func newCatalogSearch(a *app) *cobra.Command {
	o := &catalogOptions{app: a}
	cmd := &cobra.Command{
		Use:   "search <word>...",
		Short: "Search the packages",
		Long: doc(`
			Search the catalogs for packages that mention every word: in the name, the
			display name, the description, the provider, the keywords or the APIs that the
			head of a channel owns. Case does not matter.`),
		Example: examples(`
			quayside catalog search database
			quayside catalog search etcdcluster -o json`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef(cmd, "missing argument: a word to search for")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			pkgs, err := o.packages(cmd)
			if err != nil {
				return err
			}
			found := slices.DeleteFunc(slices.Clone(pkgs), func(p *catalog.Package) bool { return !mentions(p, words) })
			return o.printPackages(found)
		},
	}
	o.addFlags(cmd)
	return cmd
}

// mentions reports whether p mentions every word.
func mentions(p *catalog.Package, words []string) bool {
	texts := []string{p.Name(), p.Description()}
	for _, c := range p.Channels() {
		b := c.Head().Bundle()
		if b == nil {
			continue
		}
		m := b.Metadata()
		texts = append(texts, m.DisplayName, m.Description, m.Provider)
		texts = append(texts, m.Keywords...)
		for _, gvk := range b.Provides() {
			texts = append(texts, gvk.String())
		}
	}
	all := strings.ToLower(strings.Join(texts, "\n"))
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(all, strings.ToLower(w)) })
}
