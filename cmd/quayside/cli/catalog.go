package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/suggest"
)

func newCatalog(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "Explore what the catalogs offer",
		Long: doc(`
			Read the catalogs of the workspace (those of quayside.yaml and the declared
			CatalogSource and ClusterCatalog objects) to find what to subscribe to.`),
		Example: examples(`quayside catalog list`),
		RunE:    group,
	}
	cmd.AddCommand(newCatalogList(a), newCatalogShow(a), newCatalogSearch(a), newCatalogGraph(a))
	cmd.AddCommand(newCatalogValidate(a), newCatalogDiff(a))
	return cmd
}

// catalogOptions is what the commands that read catalogs have in common.
type catalogOptions struct {
	*app
	catalog string // "namespace/name" or "name"; empty means all
	today   dayFlag
}

// addFlags gives cmd the flags that they share; document is what it prints, and
// formats are those that -o takes beside the usual ones.
func (o *catalogOptions) addFlags(cmd *cobra.Command, document any, formats ...string) {
	addOutput(cmd, o.app, formats, document)
	cmd.Flags().StringVar(&o.catalog, "catalog", "", "look only in the `CATALOG` of this name, in a well-known one (operatorhubio, community@4.20), or in the one that is there (image:…, oci:…, dir:…)")
	o.offer(cmd, "catalog", o.anyCatalog)
	addOffline(cmd, o.app)
}

// pick opens the catalogs that were asked for, and reads the packages of these
// names. Catalogs that cannot be read are warned of, unless there is no other to
// look at: then they are the error.
func (o *catalogOptions) pick(cmd *cobra.Command, names ...string) (*cache.Shelf, *catalog.Index, error) {
	p, err := o.open()
	if err != nil {
		return nil, nil, err
	}
	set, err := p.DeclarationsIfAny()
	if err != nil {
		return nil, nil, err
	}
	p, catalogs, err := p.Choose(o.catalog, p.Catalogs(set), o.root())
	if err != nil {
		return nil, nil, usagef(cmd, "%w", err)
	}
	sh, err := p.Shelf(cmd.Context(), catalogs, nil, false)
	if err != nil {
		return nil, nil, err
	}
	x, err := sh.Pick(cmd.Context(), cache.Only(names...))
	if err == nil {
		err = o.warnBroken(p, x)
	}
	if err != nil {
		sh.Close()
		return nil, nil, err
	}
	return sh, x, nil
}

// search returns the packages whose search text passes match (nil: all), by name,
// then by catalog.
func (o *catalogOptions) search(cmd *cobra.Command, match func(text string) bool) ([]cache.Summary, error) {
	sh, _, err := o.pick(cmd)
	if err != nil {
		return nil, err
	}
	defer sh.Close()
	return sh.Search(cmd.Context(), match)
}

// warnBroken warns of the catalogs that could not be read, which are an error
// where there is no other to look at.
func (a *app) warnBroken(p *project.Project, x *catalog.Index) error {
	warnings, err := p.Broken(x)
	a.talk.Warn(warnings)
	return err
}

// offered offers the packages of the catalogs that are looked in.
func (o *catalogOptions) offered(ctx context.Context, prefix string) []string {
	return o.asked(ctx, o.catalog, prefix, suggest.Place.Packages)
}

// finding is what a command does that prints the package that its argument names.
func (o *catalogOptions) finding(print func([]*catalog.Package) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		pkgs, err := o.find(cmd, args[0])
		if err != nil {
			return err
		}
		return print(pkgs)
	}
}

// find returns the packages called name, one for each catalog that has it.
func (o *catalogOptions) find(cmd *cobra.Command, name string) ([]*catalog.Package, error) {
	sh, x, err := o.pick(cmd, name)
	if err != nil {
		return nil, err
	}
	defer sh.Close()
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
