package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/terminal"
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
		RunE:              o.finding(o.printChannels),
	}
	o.addFlags(cmd, channelsView{})
	return cmd
}

// channelsView is what `catalog channels` prints.
type channelsView struct {
	Package  string       `json:"package"`
	Channels []channelRow `json:"channels"`
}

// channelRow is one channel as `catalog channels` prints it.
type channelRow struct {
	Channel     string `json:"channel"`
	Default     bool   `json:"default"`
	Head        string `json:"head"` // the bundle's name
	Version     string `json:"version"`
	Entries     int    `json:"entries"`
	Catalog     string `json:"catalog"`
	Deprecation string `json:"deprecation,omitempty"`
}

func channelRows(p *catalog.Package) []channelRow {
	var rows []channelRow
	for _, c := range p.Channels() {
		rows = append(rows, channelRow{
			Channel:     c.Name(),
			Default:     c.Name() == p.DefaultChannel(),
			Head:        c.Head().Name(),
			Version:     headVersion(c),
			Entries:     len(c.Entries()),
			Catalog:     p.Catalog().ID().String(),
			Deprecation: c.Deprecation(),
		})
	}
	return rows
}

func (o *catalogOptions) printChannels(pkgs []*catalog.Package) error {
	rows := []channelRow{}
	for _, p := range pkgs {
		rows = append(rows, channelRows(p)...)
	}
	t := &terminal.Table{Head: []string{"channel", "version", "head", "entries", "catalog", "note"}}
	for _, r := range rows {
		t.Add(r.Channel, r.Version, r.Head, strconv.Itoa(r.Entries), r.Catalog, channelNote(r))
	}
	return o.printTable(channelsView{pkgs[0].Name(), rows}, t)
}

func channelNote(r channelRow) string {
	switch {
	case r.Deprecation != "":
		return "deprecated: " + r.Deprecation
	case r.Default:
		return "default"
	default:
		return ""
	}
}
