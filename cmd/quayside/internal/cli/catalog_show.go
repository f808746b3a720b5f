package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/terminal"
)

func newCatalogShow(a *app) *cobra.Command {
	o := &catalogOptions{app: a}
	cmd := &cobra.Command{
		Use:   "show <package>",
		Short: "Show a package",
		Long: Doc(`
			Show a package: its description, the APIs that its newest bundle provides and requires,
			its install modes, and every version in every channel. If the catalog has support dates
			and platforms, they are shown, too.`),
		Example: Examples(`
			quayside catalog show memcached-operator
			quayside catalog show vault -o json`),
		Args:              WantArgs("a package"),
		ValidArgsFunction: completeFirst(o.packageCompletions),
		RunE: o.runWithPackage(func(pkgs []*catalog.Package) error {
			shown := inventory.DescribePackages(pkgs, o.today.text())
			return o.print(shown, func(io.Writer) { printPackages(o.out, shown) })
		}),
	}
	o.addFlags(cmd, inventory.PackageDescriptions{})
	addToday(cmd, &o.today, "support")
	return cmd
}

// printPackages prints the details as text.
func printPackages(w *terminal.Terminal, s inventory.PackageDescriptions) {
	for i, v := range s.Packages {
		if i > 0 {
			fmt.Fprintln(w)
		}
		printPackage(w, &v)
	}
}

func printPackage(w *terminal.Terminal, v *inventory.PackageDetails) {
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-15s %s\n", name+":", sanitize.Line(value))
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
	if v.LifecycleError != "" {
		field("support", "not known: "+v.LifecycleError)
	} else {
		field("support", formatSupport(v.Support))
	}
	if v.Head != nil {
		field("phases", formatPhases(v.Head))
		field("platforms", formatPlatforms(v.Head))
	}
	for _, c := range v.Channels {
		note := c.Note()
		if note != "" {
			note = " (" + note + ")"
		}
		fmt.Fprintf(w, "\nchannel %s%s\n", w.Paint(terminal.Bold, sanitize.Line(c.Channel.Channel)), sanitize.Line(note))
		for _, e := range c.Versions {
			fmt.Fprintln(w, "  "+sanitize.Line(formatEntry(e)))
		}
	}
}

// formatEntry formats a channel entry in one line, such as "0.9.4 etcdoperator.v0.9.4, replaces …".
func formatEntry(e inventory.ChannelEntry) string {
	line := fmt.Sprintf("%-10s %s", catalog.VersionText(e.Version, e.Release), e.Bundle)
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
		line += ", support " + formatSupport(e.Support)
	}
	return line
}

// formatSupport formats the end of support, such as "until 2026-12-31 (Maintenance support)".
func formatSupport(s *catalog.Support) string {
	if s == nil || s.State == catalog.Ended {
		return s.String()
	}
	return "until " + s.String()
}

// formatPhases lists the support phases of a version with their first and last days.
func formatPhases(v *catalog.SupportedVersion) string {
	var out []string
	for _, p := range v.Phases {
		out = append(out, fmt.Sprintf("%s %s to %s", p.Name, p.Start, p.End))
	}
	return strings.Join(out, ", ")
}

// formatPlatforms lists the supported platforms of a version.
func formatPlatforms(v *catalog.SupportedVersion) string {
	var out []string
	for _, p := range v.Platforms {
		out = append(out, p.Name+" "+p.Version)
	}
	return strings.Join(out, ", ")
}
