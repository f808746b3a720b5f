package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
)

func newCatalog(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "Explore the catalogs",
		Long: Doc(`
			Explore the catalogs of the workspace: those in quayside.yaml, and the declared
			CatalogSource and ClusterCatalog objects.`),
		Example: Examples(`quayside catalog list`),
		RunE:    Group,
	}
	cmd.AddCommand(newCatalogList(a), newCatalogShow(a), newCatalogSearch(a), newCatalogGraph(a))
	cmd.AddCommand(newCatalogValidate(a), newCatalogDiff(a))
	return cmd
}

// catalogOptions holds the common options of commands that read catalogs.
type catalogOptions struct {
	*app
	catalog string // value of --catalog; empty: all catalogs of the workspace
}

// addFlags adds the common flags to cmd. document is a zero value of the JSON output, and formats
// are further values of -o.
func (o *catalogOptions) addFlags(cmd *cobra.Command, document any, formats ...string) {
	addOutput(cmd, o.app, formats, document)
	cmd.Flags().StringVar(&o.catalog, "catalog", "", "search only this `CATALOG`: a configured one, a well-known one (operatorhubio, community@4.20), or a source (image:…, oci:…, dir:…)")
	o.offer(cmd, "catalog", o.anyCatalogCompletions)
	addOffline(cmd, o.app)
}

// pick opens the requested catalogs, and returns them with an index of the named packages. It logs
// a warning for each unreadable catalog, and returns an error if none is readable.
func (o *catalogOptions) pick(cmd *cobra.Command, names ...string) (*cache.CatalogSet, *catalog.Index, error) {
	_, sh, x, err := o.openCatalogs(cmd, names...)
	return sh, x, err
}

// openCatalogs is like pick, but also returns the project that reads the catalogs.
func (o *catalogOptions) openCatalogs(cmd *cobra.Command, names ...string) (*workspace.Project, *cache.CatalogSet, *catalog.Index, error) {
	p, err := o.open()
	if err != nil {
		return nil, nil, nil, err
	}
	set, err := p.DeclarationsIfAny()
	if err != nil {
		return nil, nil, nil, err
	}
	p, catalogs, err := p.ChooseCatalogs(o.catalog, p.Catalogs(set), o.root())
	if err != nil {
		return nil, nil, nil, Usagef(cmd, "%w", err)
	}
	sh, err := p.OpenCatalogs(cmd.Context(), catalogs, workspace.CatalogOptions{})
	if err != nil {
		return nil, nil, nil, err
	}
	x, err := sh.Pick(cmd.Context(), cache.PickNames(names...))
	if err == nil {
		err = o.warnBroken(p, x)
	}
	if err != nil {
		sh.Close()
		return nil, nil, nil, err
	}
	return p, sh, x, nil
}

// search returns the packages whose text matches, sorted by name, then by catalog.
// If match is nil, it returns all packages.
func (o *catalogOptions) search(cmd *cobra.Command, match func(text string) bool) ([]cache.Summary, error) {
	sh, _, err := o.pick(cmd)
	if err != nil {
		return nil, err
	}
	defer sh.Close()
	return sh.Search(cmd.Context(), match)
}

// warnBroken logs a warning for each unreadable catalog. It returns an error if none is readable.
func (a *app) warnBroken(p *workspace.Project, x *catalog.Index) error {
	warnings, err := p.BrokenCatalogs(x)
	a.log.Warn(warnings)
	return err
}

// packageCompletions returns the packages of the selected catalogs as completions.
func (o *catalogOptions) packageCompletions(ctx context.Context, prefix string) []string {
	return o.workspaceCompletions(ctx, o.catalog, prefix, edit.Completer.Packages)
}

// find returns the package called name from each selected catalog that has it.
func (o *catalogOptions) find(cmd *cobra.Command, name string) ([]*catalog.Package, error) {
	sh, x, err := o.pick(cmd, name)
	if err != nil {
		return nil, err
	}
	defer sh.Close()
	return findPackages(x, name)
}

// findPackages returns the package called name from each catalog that has it.
func findPackages(x *catalog.Index, name string) ([]*catalog.Package, error) {
	var names []string
	var found []*catalog.Package
	for _, c := range x.Catalogs() {
		names = append(names, c.Names()...)
		if p, ok := c.Package(name); ok {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		slices.Sort(names)
		return nil, notFound("package", name, slices.Compact(names))
	}
	return found, nil
}
