package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/lifecycle"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/terminal"
)

func newCatalogShow(a *app) *cobra.Command {
	o := &catalogOptions{app: a}
	cmd := &cobra.Command{
		Use:   "show <package>",
		Short: "Show a package",
		Long: doc(`
			Show what a package is, what its newest bundle provides and requires, where it
			can be installed, and every version in every channel; where the catalog says it,
			until when each is supported, and on which platforms.`),
		Example: examples(`
			quayside catalog show memcached-operator
			quayside catalog show vault -o json`),
		Args:              wantArgs("a package"),
		ValidArgsFunction: first(o.offered),
		RunE:              o.finding(o.printShow),
	}
	o.addFlags(cmd, showView{})
	addToday(cmd, &o.today, "support")
	return cmd
}

// showView is what `catalog show` prints: the package in every catalog.
type showView struct {
	Packages []packageView `json:"packages"`
}

// packageView is one package as `catalog show` prints it.
type packageView struct {
	packageRow
	Provider     string        `json:"provider,omitempty"`
	InstallModes []string      `json:"installModes,omitempty"` // of the head; empty where the catalog does not tell
	MinKube      string        `json:"minKubeVersion,omitempty"`
	Provides     []string      `json:"provides,omitempty"`
	Requires     []string      `json:"requires,omitempty"`
	Channels     []channelView `json:"channels"`

	Support   *lifecycle.Support  `json:"support,omitempty"`   // of the head, today; absent where the catalog does not tell
	Lifecycle []lifecycle.Version `json:"lifecycle,omitempty"` // what the catalog says of all versions
	Unclear   string              `json:"unclear,omitempty"`   // what is wrong with what it says

	head *lifecycle.Version // what is said of the head
}

type channelView struct {
	channelRow
	Versions []entryView `json:"versions"` // head first
}

type entryView struct {
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

func newPackageView(p *catalog.Package, today string) packageView {
	v := packageView{packageRow: newPackageRow(p.Summary(), p.Catalog().ID()), Lifecycle: p.Lifecycle()}
	if c, ok := p.Channel(p.DefaultChannel()); ok {
		if b := c.Head().Bundle(); b != nil {
			v.describe(b)
			v.head, v.Support = b.Lifecycle(), b.Lifecycle().On(today)
		}
	}
	if err := p.LifecycleFaults(); err != nil {
		v.Unclear = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	rows := channelRows(p)
	for i, c := range p.Channels() {
		v.Channels = append(v.Channels, channelView{rows[i], entryViews(c, today)})
	}
	return v
}

func (v *packageView) describe(b *catalog.Bundle) {
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

func entryViews(c *catalog.Channel, today string) []entryView {
	var views []entryView
	for _, e := range c.Entries() {
		v := entryView{Bundle: e.Name(), Replaces: e.Replaces(), Skips: e.Skips()}
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

func (o *catalogOptions) printShow(pkgs []*catalog.Package) error {
	views := make([]packageView, len(pkgs))
	for i, p := range pkgs {
		views[i] = newPackageView(p, o.today.text())
	}
	return o.print(showView{views}, func(w io.Writer) {
		for i, v := range views {
			if i > 0 {
				fmt.Fprintln(w)
			}
			o.showPackage(w, v)
		}
	})
}

func (o *catalogOptions) showPackage(w io.Writer, v packageView) {
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-15s %s\n", name+":", inert.Line(value))
		}
	}
	field("package", v.Package)
	field("catalog", v.Catalog)
	field("name", v.DisplayName)
	field("description", v.Description)
	field("provider", v.Provider)
	field("deprecated", v.Deprecation)
	field("install modes", strings.Join(v.InstallModes, ", "))
	field("Kubernetes", atLeast(v.MinKube))
	field("provides", strings.Join(v.Provides, ", "))
	field("requires", strings.Join(v.Requires, ", "))
	field("support", cmp.Or(v.unclear(), supported(v.Support)))
	if v.head != nil {
		field("phases", phases(v.head))
		field("platforms", platforms(v.head))
	}
	for _, c := range v.Channels {
		note := channelNote(c.channelRow)
		if note != "" {
			note = " (" + note + ")"
		}
		fmt.Fprintf(w, "\nchannel %s%s\n", o.out.Paint(terminal.Bold, inert.Line(c.Channel)), note)
		for _, e := range c.Versions {
			fmt.Fprintln(w, "  "+inert.Line(e.line()))
		}
	}
}

// line returns the entry in one line: "0.9.4  etcdoperator.v0.9.4, replaces …".
func (e entryView) line() string {
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

// unclear says that what the catalog says cannot be told.
func (v packageView) unclear() string {
	if v.Unclear == "" {
		return ""
	}
	return "not known: " + v.Unclear
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

func atLeast(version string) string {
	if version == "" {
		return ""
	}
	return version + " or newer"
}
