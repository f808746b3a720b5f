package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
)

// Package is one package of a catalog.
type Package struct {
	cat             *Catalog
	data            *PackageData
	channels        []*Channel // default channel first, then by name
	byChannel       map[string]*Channel
	bundles         []*Bundle // newest first
	byBundle        map[string]*Bundle
	deprecated      string
	lifecycle       []SupportedVersion
	lifecycleFaults diag.List // see LifecycleFaults
}

// Name returns the package's name.
func (p *Package) Name() string { return p.data.Name }

// Data returns the content of the package as passed to New. It is shared and must not be modified.
func (p *Package) Data() PackageData { return *p.data }

// Catalog returns the catalog that the package belongs to.
func (p *Package) Catalog() *Catalog { return p.cat }

// Description returns the package's description, which may be empty.
func (p *Package) Description() string { return p.data.Description }

// DefaultChannel returns the name of the default channel.
func (p *Package) DefaultChannel() string { return p.data.DefaultChannel }

// Channels returns the channels: first the default channel, then the other channels by name.
func (p *Package) Channels() []*Channel { return slices.Clone(p.channels) }

// ChannelNames returns the names of Channels, in the same order.
func (p *Package) ChannelNames() []string {
	names := make([]string, len(p.channels))
	for i, c := range p.channels {
		names[i] = c.Name()
	}
	return names
}

// Channel returns the channel with this name, and whether it exists.
func (p *Package) Channel(name string) (*Channel, bool) {
	c, ok := p.byChannel[name]
	return c, ok
}

// Bundles returns the bundles, newest first: by version, then by release, then by build metadata.
func (p *Package) Bundles() []*Bundle { return slices.Clone(p.bundles) }

// Bundle returns the bundle with this name, and whether it exists.
func (p *Package) Bundle(name string) (*Bundle, bool) {
	b, ok := p.byBundle[name]
	return b, ok
}

// Deprecation returns the deprecation message of the package, or "".
func (p *Package) Deprecation() string { return p.deprecated }

// Channel is one channel of a package: an upgrade graph with one head.
type Channel struct {
	pkg        *Package
	data       *ChannelData
	entries    []*Entry // the entries of walk first, then the others
	walk       []*Entry // see Walk
	byName     map[string]*Entry
	deprecated string
}

// Name returns the channel's name.
func (c *Channel) Name() string { return c.data.Name }

// ByVersion reports whether the author publishes no upgrade graph. The edges then follow the order of versions.
func (c *Channel) ByVersion() bool { return c.data.ByVersion }

// Package returns the package that the channel belongs to.
func (c *Channel) Package() *Package { return c.pkg }

// IsDefault reports whether c is its package's default channel.
func (c *Channel) IsDefault() bool { return c.data.Name == c.pkg.data.DefaultChannel }

// Entries returns every entry: first the entries of Walk in the same order, then all other entries, newest
// version first.
func (c *Channel) Entries() []*Entry { return slices.Clone(c.entries) }

// Walk returns the entries that resolution can choose from this channel, most preferred first. They
// are the replaces chain from the head, without entries that another entry of the channel skips.
func (c *Channel) Walk() []*Entry { return slices.Clone(c.walk) }

// Head returns the entry that no other entry replaces or skips.
func (c *Channel) Head() *Entry { return c.walk[0] }

// Entry returns the entry for the bundle with this name, and whether it exists.
func (c *Channel) Entry(name string) (*Entry, bool) {
	e, ok := c.byName[name]
	return e, ok
}

// Deprecation returns the deprecation message of the channel, or "".
func (c *Channel) Deprecation() string { return c.deprecated }

// Entry is one node of a channel's upgrade graph.
type Entry struct {
	channel   *Channel
	data      *EntryData
	bundle    *Bundle
	skipRange Range
	badRange  error // parse error of skipRange, or nil
	walked    bool  // whether channel.walk contains the entry
}

// Name returns the name of the entry's bundle.
func (e *Entry) Name() string { return e.data.Name }

// Channel returns the channel that the entry belongs to.
func (e *Entry) Channel() *Channel { return e.channel }

// Bundle returns the bundle of the entry.
func (e *Entry) Bundle() *Bundle { return e.bundle }

// Replaces returns the name of the bundle that the entry replaces, or "" if there is none. The replaced bundle
// is not necessarily in the channel.
func (e *Entry) Replaces() string { return e.data.Replaces }

// Skips returns the names of the bundles that the entry skips, in file order.
func (e *Entry) Skips() []string { return slices.Clone(e.data.Skips) }

// SkipRange returns the range of versions that can be upgraded directly to this entry. The second
// result is false if there is no valid range.
func (e *Entry) SkipRange() (Range, bool) {
	return e.skipRange, e.data.SkipRange != "" && e.badRange == nil
}

// BadRange returns the parse error of the entry's skipRange, or nil. With an invalid skipRange,
// replaces and skips still apply.
func (e *Entry) BadRange() error { return e.badRange }

// Edge is the kind of an upgrade edge between two bundles of a channel.
type Edge string

// The kinds of edges, in order of precedence.
const (
	NoEdge        Edge = ""
	EdgeReplaces  Edge = "replaces"
	EdgeSkips     Edge = "skips"
	EdgeSkipRange Edge = "skipRange"
)

// EdgeFrom returns the kind of the upgrade edge from a bundle to e, or "" if there is none. The bundle need not
// be in the channel. v is its version, or nil if unknown. EdgeFrom does not check that the version of e is
// higher: a skipRange may include this version, and higher ones.
func (e *Entry) EdgeFrom(bundle string, v *Version) Edge {
	switch {
	case bundle != "" && e.data.Replaces == bundle:
		return EdgeReplaces
	case bundle != "" && slices.Contains(e.data.Skips, bundle):
		return EdgeSkips
	case v != nil && e.skipRange.Contains(*v):
		return EdgeSkipRange
	}
	return NoEdge
}

// Skipped reports whether Walk omits this entry. Resolution chooses such an entry only if the user
// requests it by name.
func (e *Entry) Skipped() bool { return !e.walked }

// compareNewest orders bundles newest first: by version, then by release, then by
// build metadata and name.
func compareNewest(a, b *Bundle) int {
	return cmp.Or(
		b.version.Compare(a.version),
		b.CompareReleases(a),
		-slices.Compare(a.version.Build, b.version.Build),
		strings.Compare(a.Name(), b.Name()),
	)
}
