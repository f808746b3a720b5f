package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/subscription"
)

func newCatalog(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "Find out what the catalogs hold",
		Long: doc(`
			Read the catalogs of the workspace (those of quayside.yaml and the declared
			CatalogSource and ClusterCatalog objects) to find what to subscribe to.`),
		Example: examples(`quayside catalog list`),
		RunE:    group,
	}
	cmd.AddCommand(newCatalogList(a), newCatalogShow(a), newCatalogSearch(a), newCatalogChannels(a), newCatalogGraph(a))
	cmd.AddCommand(newCatalogValidate(a), newCatalogDiff(a), newCatalogBuild(a), newCatalogPush(a))
	return cmd
}

// catalogOptions is what the commands that read catalogs have in common.
type catalogOptions struct {
	*app
	output  format
	catalog string // "namespace/name" or "name"; empty means all
	offline bool
}

// addFlags gives cmd the flags that they share; formats are those that -o
// takes beside the usual ones.
func (o *catalogOptions) addFlags(cmd *cobra.Command, formats ...string) {
	addOutput(cmd, &o.output, formats...)
	cmd.Flags().StringVar(&o.catalog, "catalog", "", "look in the catalog `[NAMESPACE/]NAME` only")
	addOffline(cmd, &o.offline)
}

// shelf opens the catalogs that were asked for.
func (o *catalogOptions) shelf(cmd *cobra.Command) (*shelf, error) {
	s, err := o.open()
	if err != nil {
		return nil, err
	}
	set, err := s.declarations()
	if errors.Is(err, errNoDeclarations) {
		set, err = &subscription.Set{}, nil // the catalogs of quayside.yaml can be looked at before anything is asked for
	}
	if err != nil {
		return nil, err
	}
	sources, err := o.chosen(cmd, s.sources(set))
	if err != nil {
		return nil, err
	}
	return s.shelf(cmd.Context(), sources, nil, o.offline, false)
}

// rows returns the packages whose search text passes match (nil: all), by name,
// then by catalog. Catalogs that cannot be read are warned of, unless there is
// no other to look at: then they are the error.
func (o *catalogOptions) rows(cmd *cobra.Command, match func(text string) bool) ([]packageRow, error) {
	sh, err := o.shelf(cmd)
	if err != nil {
		return nil, err
	}
	defer sh.close()
	rows, x, err := sh.rows(match)
	if err != nil {
		return nil, err
	}
	return rows, brokenOnes(o.app, x)
}

func (o *catalogOptions) chosen(cmd *cobra.Command, all []source) ([]source, error) {
	if len(all) == 0 {
		return nil, usagef(cmd, "no catalog: declare a CatalogSource or a ClusterCatalog, or list one in quayside.yaml under spec.catalogs")
	}
	if o.catalog == "" {
		return all, nil
	}
	var some []source
	var names []string
	for _, s := range all {
		names = append(names, s.id.String())
		if o.catalog == s.id.String() || o.catalog == s.id.Name {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		return nil, usagef(cmd, "no catalog %q (have %s)", o.catalog, strings.Join(names, ", "))
	}
	return some, nil
}

// brokenOnes warns of the catalogs that could not be read, or returns them as
// an error where nothing else is left.
func brokenOnes(a *app, x *catalog.Index) error {
	faults := brokenList(x, func(catalog.ID) bool { return true })
	if len(x.Catalogs()) == 0 {
		return faults.Err()
	}
	for _, f := range faults {
		a.talk.warn([]diag.Warning{{Pos: f.Pos, Msg: (&diag.Error{Msg: f.Msg, Err: f.Err}).Error()}})
	}
	return nil
}

// find returns the packages called name, one for each catalog that has it.
func (o *catalogOptions) find(cmd *cobra.Command, name string) ([]*catalog.Package, error) {
	sh, err := o.shelf(cmd)
	if err != nil {
		return nil, err
	}
	defer sh.close()
	x, err := sh.pick(only(name))
	if err != nil {
		return nil, err
	}
	if err := brokenOnes(o.app, x); err != nil {
		return nil, err
	}
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

// headVersion returns the version of a channel's head, or "".
func headVersion(c *catalog.Channel) string {
	if b := c.Head().Bundle(); b != nil {
		return b.Version().String()
	}
	return ""
}
