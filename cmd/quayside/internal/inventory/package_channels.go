package inventory

import "github.com/quayside/quayside/catalog"

// Channel is a channel of a package in one catalog.
type Channel struct {
	Channel     string `json:"channel"`
	Default     bool   `json:"default"`
	Head        string `json:"head"`    // name of the bundle
	Version     string `json:"version"` // version of the head
	Entries     int    `json:"entries"`
	Catalog     string `json:"catalog"`
	Deprecation string `json:"deprecation,omitempty"`
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
		})
	}
	return rows
}

// Note returns the deprecation message of the channel, "default" for the default channel, or "".
func (r Channel) Note() string {
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
