package cli

import (
	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/terminal"
)

func newCatalogList(a *app) *cobra.Command {
	o := &catalogOptions{app: a}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the packages",
		Long:  "List the packages of every catalog, with the default channel and the version at its head.",
		Example: examples(`
			quayside catalog list
			quayside catalog list --catalog olm/quickstart -o json`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := o.rows(cmd, nil)
			if err != nil {
				return err
			}
			return o.printPackages(rows)
		},
	}
	o.addFlags(cmd, packagesView{})
	return cmd
}

// packagesView is what `catalog list` and `catalog search` print.
type packagesView struct {
	Packages []packageRow `json:"packages"`
}

// packageRow is one package as `catalog list` and `catalog search` print it.
type packageRow struct {
	Package        string `json:"package"`
	DefaultChannel string `json:"defaultChannel"`
	Version        string `json:"version"` // at the head of the default channel
	Catalog        string `json:"catalog"`
	DisplayName    string `json:"displayName,omitempty"`
	Description    string `json:"description,omitempty"`
	Deprecation    string `json:"deprecation,omitempty"`

	answers func(words []string) int // see catalog.Summary
}

func newPackageRow(s catalog.Summary, id catalog.ID) packageRow {
	return packageRow{
		Package:        s.Name,
		DefaultChannel: s.DefaultChannel,
		Version:        s.Version,
		Catalog:        id.String(),
		DisplayName:    s.DisplayName,
		Description:    s.Description,
		Deprecation:    s.Deprecation,
		answers:        s.Answers,
	}
}

func (o *catalogOptions) printPackages(rows []packageRow) error {
	t := &terminal.Table{Head: []string{"package", "version", "channel", "catalog", "description"}}
	for _, r := range rows {
		t.Add(r.Package, r.Version, r.DefaultChannel, r.Catalog, r.Description)
	}
	return o.printTable(packagesView{rows}, t)
}
