package listing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/lifecycle"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/terminal"
)

// Shown is a package in every catalog that has it.
type Shown struct {
	Packages []Details `json:"packages"`
}

// Details is all that one catalog says of a package.
type Details struct {
	Package
	Provider     string           `json:"provider,omitempty"`
	InstallModes []string         `json:"installModes,omitempty"` // of the head; empty where the catalog does not tell
	MinKube      string           `json:"minKubeVersion,omitempty"`
	Provides     []string         `json:"provides,omitempty"`
	Requires     []string         `json:"requires,omitempty"`
	Channels     []ChannelDetails `json:"channels"`

	Support   *lifecycle.Support  `json:"support,omitempty"`   // of the head, today; absent where the catalog does not tell
	Lifecycle []lifecycle.Version `json:"lifecycle,omitempty"` // what the catalog says of all versions
	Unclear   string              `json:"unclear,omitempty"`   // what is wrong with what it says

	head *lifecycle.Version // what is said of the head
}

// ChannelDetails is a channel with its versions.
type ChannelDetails struct {
	Channel
	Versions []Entry `json:"versions"` // head first
}

// Entry is a version in a channel.
type Entry struct {
	Version     string   `json:"version,omitempty"`
	Release     string   `json:"release,omitempty"`
	Bundle      string   `json:"bundle"`
	Replaces    string   `json:"replaces,omitempty"`
	Skips       []string `json:"skips,omitempty"`
	SkipRange   string   `json:"skipRange,omitempty"`
	Image       string   `json:"image,omitempty"`
	Deprecation string   `json:"deprecation,omitempty"`
	Unusable    string   `json:"unusable,omitempty"`

	Support *lifecycle.Support `json:"support,omitempty"` // today; absent where the catalog does not tell
}

func detailsOf(p *catalog.Package, today string) Details {
	v := Details{Package: packageOf(p.Summary(), p.Catalog().ID()), Lifecycle: p.Lifecycle()}
	if c, ok := p.Channel(p.DefaultChannel()); ok {
		if b := c.Head().Bundle(); b != nil {
			v.describe(b)
			v.head, v.Support = b.Lifecycle(), b.Lifecycle().On(today)
		}
	}
	if err := p.LifecycleFaults(); err != nil {
		v.Unclear = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	rows := channels(p)
	for i, c := range p.Channels() {
		v.Channels = append(v.Channels, ChannelDetails{rows[i], entries(c, today)})
	}
	return v
}

func (v *Details) describe(b *catalog.Bundle) {
	m := b.Metadata()
	v.Provider, v.MinKube = m.Provider, m.MinKubeVersion
	for _, mode := range m.InstallModes {
		v.InstallModes = append(v.InstallModes, string(mode))
	}
	for _, gvk := range b.Provides() {
		v.Provides = append(v.Provides, gvk.String())
	}
	for _, r := range b.Requires() {
		v.Requires = append(v.Requires, requirement(r))
	}
	slices.Sort(v.Requires)
	v.Requires = slices.Compact(v.Requires)
}

// requirement returns a requirement in words.
func requirement(r catalog.Requirement) string {
	parts := make([]string, len(r.Of))
	for i, part := range r.Of {
		parts[i] = requirement(part)
	}
	list := "(" + strings.Join(parts, "; ") + ")"
	switch r.Kind {
	case olm.RequireGVK:
		return r.GVK.String()
	case olm.RequirePackage:
		return fmt.Sprintf("package %s %s", r.Package, r.Range)
	case olm.RequireLabel:
		return "label " + r.Label
	case olm.RequireAll:
		return "all of " + list
	case olm.RequireAny:
		return "any of " + list
	case olm.RequireNot:
		return "none of " + list
	case olm.RequireCEL:
		return cmp.Or(r.Message, r.Rule)
	default:
		return ""
	}
}

func entries(c *catalog.Channel, today string) []Entry {
	var views []Entry
	for _, e := range c.Entries() {
		v := Entry{Bundle: e.Name(), Replaces: e.Replaces(), Skips: e.Skips()}
		if r, ok := e.SkipRange(); ok {
			v.SkipRange = r.String()
		}
		if b := e.Bundle(); b != nil {
			v.Version, v.Release, v.Image = b.Version().String(), b.Release(), b.Image()
			v.Deprecation, v.Unusable = b.Deprecation(), b.Unusable()
			v.Support = b.Lifecycle().On(today)
		}
		views = append(views, v)
	}
	return views
}

// Show returns a package, of which there is one for each catalog, as it is on a day.
func Show(pkgs []*catalog.Package, today string) Shown {
	s := Shown{make([]Details, len(pkgs))}
	for i, p := range pkgs {
		s.Packages[i] = detailsOf(p, today)
	}
	return s
}

// Write prints s as text.
func (s Shown) Write(w *terminal.Terminal) {
	for i, v := range s.Packages {
		if i > 0 {
			fmt.Fprintln(w)
		}
		v.write(w)
	}
}

func (v *Details) write(w *terminal.Terminal) {
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-15s %s\n", name+":", inert.Line(value))
		}
	}
	field("package", v.Package.Package)
	field("catalog", v.Catalog)
	field("name", v.DisplayName)
	field("description", v.Description)
	field("provider", v.Provider)
	field("deprecated", v.Deprecation)
	field("install modes", strings.Join(v.InstallModes, ", "))
	if v.MinKube != "" {
		field("Kubernetes", v.MinKube+" or newer")
	}
	field("provides", strings.Join(v.Provides, ", "))
	field("requires", strings.Join(v.Requires, ", "))
	if v.Unclear != "" {
		field("support", "not known: "+v.Unclear)
	} else {
		field("support", supported(v.Support))
	}
	if v.head != nil {
		field("phases", phases(v.head))
		field("platforms", platforms(v.head))
	}
	for _, c := range v.Channels {
		note := c.note()
		if note != "" {
			note = " (" + note + ")"
		}
		fmt.Fprintf(w, "\nchannel %s%s\n", w.Paint(terminal.Bold, inert.Line(c.Channel.Channel)), note)
		for _, e := range c.Versions {
			fmt.Fprintln(w, "  "+inert.Line(e.line()))
		}
	}
}

// line returns the entry in one line: "0.9.4  etcdoperator.v0.9.4, replaces …".
func (e Entry) line() string {
	line := fmt.Sprintf("%-10s %s", olm.VersionText(e.Version, e.Release), e.Bundle)
	if e.Replaces != "" {
		line += ", replaces " + e.Replaces
	}
	if len(e.Skips) > 0 {
		line += ", skips " + strings.Join(e.Skips, ", ")
	}
	if e.SkipRange != "" {
		line += ", skips range " + e.SkipRange
	}
	if e.Deprecation != "" {
		line += ", deprecated: " + e.Deprecation
	}
	if e.Unusable != "" {
		line += ", unusable: " + e.Unusable
	}
	if e.Support != nil {
		line += ", support " + supported(e.Support)
	}
	return line
}

// supported says until when: "until 2026-12-31 (Maintenance support)".
func supported(s *lifecycle.Support) string {
	if s == nil || s.State == lifecycle.Ended {
		return s.String()
	}
	return "until " + s.String()
}

// phases lists the phases of a version with their days.
func phases(v *lifecycle.Version) string {
	var out []string
	for _, p := range v.Phases {
		out = append(out, fmt.Sprintf("%s %s to %s", p.Name, p.Start, p.End))
	}
	return strings.Join(out, ", ")
}

// platforms lists what a version is said to run on.
func platforms(v *lifecycle.Version) string {
	var out []string
	for _, p := range v.Platforms {
		out = append(out, p.Name+" "+p.Version)
	}
	return strings.Join(out, ", ")
}
