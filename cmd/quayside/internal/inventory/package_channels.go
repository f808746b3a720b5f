package inventory

import (
	"strings"

	"github.com/quayside/quayside/catalog"
)

// Channel is a channel of a package in one catalog.
type Channel struct {
	Channel     string `json:"channel"`
	Default     bool   `json:"default"`
	Head        string `json:"head"`    // name of the bundle
	Version     string `json:"version"` // version of the head
	Entries     int    `json:"entries"`
	Catalog     string `json:"catalog"`
	Deprecation string `json:"deprecation,omitempty"`
	ByVersion   bool   `json:"byVersion,omitempty" doc:"whether the upgrade edges follow the order of versions, because the author has no upgrade graph"`
}

func newChannels(p *catalog.Package) []Channel {
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
			ByVersion:   c.ByVersion(),
		})
	}
	return rows
}

// Note returns the deprecation message of the channel, or else "default" for the default channel, and
// "by version order" if its author has no upgrade graph.
func (r Channel) Note() string {
	var notes []string
	switch {
	case r.Deprecation != "":
		notes = append(notes, "deprecated: "+r.Deprecation)
	case r.Default:
		notes = append(notes, "default")
	}
	if r.ByVersion {
		notes = append(notes, "by version order")
	}
	return strings.Join(notes, ", ")
}

// headVersion returns the version of a channel's head, or "".
func headVersion(c *catalog.Channel) string {
	if b := c.Head().Bundle(); b != nil {
		return b.VersionText()
	}
	return ""
}
