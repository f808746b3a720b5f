package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// PackageDescriptions contains the details of one package in each catalog that has it.
type PackageDescriptions struct {
	Packages []PackageDetails `json:"packages"`
}

// PackageDetails is the information about a package in one catalog.
type PackageDetails struct {
	Package
	Provider     string           `json:"provider,omitempty"`
	Capabilities string           `json:"capabilities,omitempty" doc:"capability level, such as Basic Install or Deep Insights"`
	Categories   []string         `json:"categories,omitempty"`
	Keywords     []string         `json:"keywords,omitempty"`
	InstallModes []string         `json:"installModes,omitempty"` // install modes of the default channel's head; empty if unknown
	MinKube      string           `json:"minKubeVersion,omitempty"`
	Provides     []string         `json:"provides,omitempty"`
	Requires     []string         `json:"requires,omitempty"`
	MetBy        []Supplier       `json:"metBy,omitempty" doc:"packages of the catalogs that meet the requirements"`
	Channels     []ChannelDetails `json:"channels"`

	Support        *catalog.Support           `json:"support,omitempty"`        // support of the default channel's head today; nil if unknown
	Lifecycle      []catalog.SupportedVersion `json:"lifecycle,omitempty"`      // support dates of all versions
	LifecycleError string                     `json:"lifecycleError,omitempty"` // error in the lifecycle data of the catalog

	Content      *Content `json:"content,omitempty" doc:"content of the bundle"`
	ContentError string   `json:"contentError,omitempty" doc:"why the content of the bundle was not read"`

	Head *catalog.SupportedVersion `json:"-"` // lifecycle of the default channel's head; nil if unknown
}

// ChannelDetails is a channel with its versions.
type ChannelDetails struct {
	Channel
	Versions []ChannelEntry `json:"versions"` // head first
}

// ChannelEntry is a version in a channel.
type ChannelEntry struct {
	Version     string   `json:"version,omitempty"`
	Release     string   `json:"release,omitempty"`
	Bundle      string   `json:"bundle"`
	Replaces    string   `json:"replaces,omitempty"`
	Skips       []string `json:"skips,omitempty"`
	SkipRange   string   `json:"skipRange,omitempty"`
	Image       string   `json:"image,omitempty"`
	Deprecation string   `json:"deprecation,omitempty"`
	Unusable    string   `json:"unusable,omitempty"`

	Support *catalog.Support `json:"support,omitempty"` // phase of support today; nil if unknown
}

func newPackageDetails(p *catalog.Package, today string) PackageDetails {
	v := PackageDetails{Package: newPackage(p.Summary(), p.Catalog().ID()), Lifecycle: p.Lifecycle()}
	if c, ok := p.Channel(p.DefaultChannel()); ok {
		if b := c.Head().Bundle(); b != nil {
			v.addBundle(b)
			v.Head, v.Support = b.Lifecycle(), b.Lifecycle().SupportOn(today)
		}
	}
	if err := p.LifecycleFaults(); err != nil {
		v.LifecycleError = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	for _, c := range p.Channels() {
		v.Channels = append(v.Channels, ChannelDetails{newChannel(p, c), newChannelEntries(c, today)})
	}
	return v
}

func (v *PackageDetails) addBundle(b *catalog.Bundle) {
	m := b.Metadata()
	v.Provider, v.MinKube, v.Keywords = m.Provider, m.MinKubeVersion, m.Keywords
	v.Capabilities = m.Annotations["capabilities"]
	for _, c := range strings.Split(m.Annotations["categories"], ",") {
		if c = strings.TrimSpace(c); c != "" {
			v.Categories = append(v.Categories, c)
		}
	}
	for _, mode := range m.InstallModes {
		v.InstallModes = append(v.InstallModes, string(mode))
	}
	for _, gvk := range b.Provides() {
		v.Provides = append(v.Provides, gvk.String())
	}
	for _, r := range b.Requires() {
		v.Requires = append(v.Requires, formatRequirement(r))
	}
	slices.Sort(v.Requires)
	v.Requires = slices.Compact(v.Requires)
}

// formatRequirement describes a requirement in words.
func formatRequirement(r catalog.Requirement) string {
	parts := make([]string, len(r.Of))
	for i, part := range r.Of {
		parts[i] = formatRequirement(part)
	}
	list := "(" + strings.Join(parts, "; ") + ")"
	switch r.Kind {
	case catalog.RequireGVK:
		return r.GVK.String()
	case catalog.RequirePackage:
		return fmt.Sprintf("package %s %s", r.Package, r.Range)
	case catalog.RequireLabel:
		return "label " + r.Label
	case catalog.RequireAll:
		return "all of " + list
	case catalog.RequireAny:
		return "any of " + list
	case catalog.RequireNot:
		return "none of " + list
	case catalog.RequireCEL:
		return cmp.Or(r.Message, r.Rule)
	default:
		return ""
	}
}

func newChannelEntries(c *catalog.Channel, today string) []ChannelEntry {
	var views []ChannelEntry
	for _, e := range c.Entries() {
		v := ChannelEntry{Bundle: e.Name(), Replaces: e.Replaces(), Skips: e.Skips()}
		if r, ok := e.SkipRange(); ok {
			v.SkipRange = r.String()
		}
		if b := e.Bundle(); b != nil {
			v.Version, v.Release, v.Image = b.Version().String(), b.Release(), b.Image()
			v.Deprecation, v.Unusable = b.Deprecation(), b.Unusable()
			v.Support = b.Lifecycle().SupportOn(today)
		}
		views = append(views, v)
	}
	return views
}

// DescribePackages returns the details of packages. today, such as "2026-11-21", is the day that determines the
// phase of support.
func DescribePackages(pkgs []*catalog.Package, today string) PackageDescriptions {
	s := PackageDescriptions{make([]PackageDetails, len(pkgs))}
	for i, p := range pkgs {
		s.Packages[i] = newPackageDetails(p, today)
	}
	return s
}

// GraphSize returns the size of the upgrade graph, such as "14 versions in 3 channels".
func (v *PackageDetails) GraphSize() string {
	names := map[string]bool{}
	for _, c := range v.Channels {
		for _, e := range c.Versions {
			names[e.Bundle] = true
		}
	}
	return diag.Count(len(names), "version") + " in " + diag.Count(len(v.Channels), "channel")
}

// Channel is a channel of a package in one catalog.
type Channel struct {
	Channel     string `json:"channel"`
	Default     bool   `json:"default"`
	Head        string `json:"head"`    // name of the bundle
	Version     string `json:"version"` // version of the head
	Entries     int    `json:"entries"`
	Catalog     string `json:"catalog"`
	Deprecation string `json:"deprecation,omitempty"`
	ByVersion   bool   `json:"byVersion,omitempty" doc:"true if the author published no upgrade graph, so that upgrades follow the order of versions"`
}

func newChannel(p *catalog.Package, c *catalog.Channel) Channel {
	out := Channel{
		Channel: c.Name(), Default: c.Name() == p.DefaultChannel(), Head: c.Head().Name(), Entries: len(c.Entries()),
		Catalog: p.Catalog().ID().String(), Deprecation: c.Deprecation(), ByVersion: c.ByVersion(),
	}
	if b := c.Head().Bundle(); b != nil {
		out.Version = b.VersionText()
	}
	return out
}

// Note returns the deprecation message of the channel, or "default" for the default channel. It adds "by
// version order" if the channel has no upgrade graph.
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
