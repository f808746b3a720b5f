package listing

import (
	"strconv"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/terminal"
)

// Channels is the channels of a package, in every catalog that has it.
type Channels struct {
	Package  string    `json:"package"`
	Channels []Channel `json:"channels"`
}

// Channel is one of them.
type Channel struct {
	Channel     string `json:"channel"`
	Default     bool   `json:"default"`
	Head        string `json:"head"` // the bundle's name
	Version     string `json:"version"`
	Entries     int    `json:"entries"`
	Catalog     string `json:"catalog"`
	Deprecation string `json:"deprecation,omitempty"`
}

func channels(p *catalog.Package) []Channel {
	var rows []Channel
	for _, c := range p.Channels() {
		rows = append(rows, Channel{
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

// ChannelsOf returns the channels of a package, of which there is one for each catalog.
func ChannelsOf(pkgs []*catalog.Package) Channels {
	out := Channels{pkgs[0].Name(), []Channel{}}
	for _, p := range pkgs {
		out.Channels = append(out.Channels, channels(p)...)
	}
	return out
}

// Table returns c as text.
func (c Channels) Table() *terminal.Table {
	t := &terminal.Table{Head: []string{"channel", "version", "head", "entries", "catalog", "note"}}
	for _, r := range c.Channels {
		t.Add(r.Channel, r.Version, r.Head, strconv.Itoa(r.Entries), r.Catalog, r.note())
	}
	return t
}

// note is what is worth knowing beside it.
func (r Channel) note() string {
	switch {
	case r.Deprecation != "":
		return "deprecated: " + r.Deprecation
	case r.Default:
		return "default"
	default:
		return ""
	}
}

// headVersion returns the version of a channel's head, or "".
func headVersion(c *catalog.Channel) string {
	if b := c.Head().Bundle(); b != nil {
		return b.VersionText()
	}
	return ""
}
