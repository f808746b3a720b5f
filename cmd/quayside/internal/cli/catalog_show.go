package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/internal/yamlnode"
)

func newCatalogShow(a *app) *cobra.Command {
	o, samples, sizes := &catalogOptions{app: a}, "", false
	cmd := &cobra.Command{
		Use:   "show <package>",
		Short: "Show a package",
		Long: Doc(`
			Show a package: its description, the APIs that its newest bundle provides and requires,
			with the packages that meet the requirements, its install modes, and every version in
			every channel. If the catalog has support dates and platforms, they are shown, too.

			From the content of the newest bundle in the default channel, it shows the maintainers,
			links, images and sample custom resources; the most severe finding about its permissions,
			as 'quayside diff' rates them; and the APIs that its objects use, but that neither
			spec.provides nor an operator in the lock has. -o html also shows its icon.

			--samples writes the sample custom resources to a directory, one a file, and names those
			that the API server would reject.`),
		Example: Examples(`
			quayside catalog show memcached-operator
			quayside catalog show vault -o json
			quayside catalog show etcd --samples samples
			quayside catalog show etcd -o html --image-sizes`),
		Args:              WantArgs("a package"),
		ValidArgsFunction: completeFirst(o.packageCompletions),
		RunE: func(cmd *cobra.Command, args []string) error {
			if sizes && o.offline {
				return Usagef(cmd, "--image-sizes cannot be used together with --offline")
			}
			shown, err := o.describe(cmd, args[0], sizes)
			if err != nil {
				return err
			}
			if samples != "" {
				return o.writeSamples(shown, samples)
			}
			var page []byte
			if o.output == "html" {
				if page, err = inventory.PackagePage(shown.Packages, packageFields); err != nil {
					return err
				}
			}
			return o.print(shown, func(w io.Writer) {
				if page != nil {
					_, _ = w.Write(page)
					return
				}
				printPackages(o.out, shown)
			})
		},
	}
	o.addFlags(cmd, inventory.PackageDescriptions{}, "html")
	addNow(cmd, a, "support")
	cmd.Flags().BoolVar(&sizes, "image-sizes", false, "also show the size of each image by platform, from the registries")
	cmd.Flags().StringVar(&samples, "samples", "", "write the sample custom resources to `DIR`, and print their names")
	return cmd
}

// describe returns the details of a package in each catalog that has it. If sizes is true, it looks
// up the sizes of the images.
func (o *catalogOptions) describe(cmd *cobra.Command, name string, sizes bool) (inventory.PackageDescriptions, error) {
	var out inventory.PackageDescriptions
	p, sh, x, err := o.openCatalogs(cmd, name)
	if err != nil {
		return out, err
	}
	defer sh.Close()
	pkgs, err := findPackages(x, name)
	if err != nil {
		return out, err
	}
	here := inventory.Surroundings{Settings: p.Settings}
	if here.Packages, err = sh.Search(cmd.Context(), nil); err != nil {
		return out, err
	}
	if here.Lock, err = p.LockIfAny(); err != nil {
		return out, err
	}
	out = inventory.DescribePackages(pkgs, o.now.orNow().Format(time.DateOnly))
	for i, pkg := range pkgs {
		c, ok := pkg.Channel(pkg.DefaultChannel())
		if !ok || c.Head().Bundle() == nil {
			continue
		}
		v := &out.Packages[i]
		v.MetBy = here.RequirementSuppliers(c.Head().Bundle())
		o.log.Progress("reading bundle %s", c.Head().Name())
		content, err := p.BundleContent(cmd.Context(), c.Head().Bundle())
		if err == nil {
			v.Content, err = inventory.NewContent(content, here)
		}
		o.log.Done()
		if err != nil {
			v.ContentError = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		if sizes && v.Content != nil {
			client, err := p.Client()
			if err != nil {
				return out, err
			}
			err = v.Content.AddImageSizes(cmd.Context(), client, o.log.Progress)
			if o.log.Done(); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// writeSamples writes the samples of the first package to a directory.
func (o *catalogOptions) writeSamples(shown inventory.PackageDescriptions, dir string) error {
	v := shown.Packages[0]
	switch {
	case v.Content == nil:
		return fmt.Errorf("bundle of package %q not read: %s", v.Package.Package, v.ContentError)
	case len(v.Content.Samples) == 0:
		return fmt.Errorf("bundle %s has no sample custom resources", v.Content.Bundle)
	}
	names := inventory.SampleFiles(v.Content.Samples)
	for i, s := range v.Content.Samples { // check all names before writing the first file
		have, err := filetree.ReadFile(o.argPath(filepath.Join(dir, names[i])))
		switch {
		case err == nil && !bytes.Equal(have, yamlnode.Encode(s.Object)):
			return fmt.Errorf("%s already exists with other content: delete it, or choose another directory", filepath.Join(dir, names[i]))
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	for i, s := range v.Content.Samples {
		if _, err := filetree.WriteFile(o.argPath(filepath.Join(dir, names[i])), yamlnode.Encode(s.Object)); err != nil {
			return err
		}
		if s.Problem != "" {
			o.log.Note("%s: the API server will reject the sample %s: %s", names[i], sanitize.Line(s.String()), sanitize.Line(s.Problem))
		}
	}
	return o.print(v.Content.Samples, func(w io.Writer) {
		for _, name := range names {
			fmt.Fprintln(w, filepath.ToSlash(filepath.Join(dir, name)))
		}
	})
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

// packageFields returns the fields of a package that have a value, in order.
func packageFields(v *inventory.PackageDetails) []inventory.Field {
	var out []inventory.Field
	field := func(name string, values ...string) {
		if strings.Join(values, "") != "" {
			out = append(out, inventory.Field{Name: name, Values: values})
		}
	}
	field("package", v.Package.Package)
	field("catalog", v.Catalog)
	field("name", v.DisplayName)
	field("description", v.Description)
	field("provider", v.Provider)
	field("capabilities", v.Capabilities)
	field("categories", v.Categories...)
	field("deprecated", v.Deprecation)
	field("install modes", v.InstallModes...)
	if v.MinKube != "" {
		field("Kubernetes", v.MinKube+" or newer")
	}
	field("provides", v.Provides...)
	field("requires", requirementTexts(v)...)
	if v.LifecycleError != "" {
		field("support", "not known: "+v.LifecycleError)
	} else {
		field("support", formatSupport(v.Support))
	}
	if v.Head != nil {
		field("phases", formatPhases(v.Head))
		field("platforms", formatPlatforms(v.Head))
	}
	field("upgrade graph", v.GraphSize())
	if c := v.Content; c != nil {
		for _, m := range c.Maintainers {
			field("maintainer", strings.TrimSpace(m.Name+" "+m.Email))
		}
		for _, l := range c.Links {
			field("link", strings.TrimSpace(l.Name+" "+l.URL))
		}
		for _, size := range c.ImageSizes {
			field("image", size.String())
		}
		if len(c.Images) > 0 && c.ImageSizes == nil {
			field("images", diag.Count(len(c.Images), "image"))
		}
		field("permissions", c.Permissions.String())
		field("missing", supplierTexts(c.Missing)...)
		for _, s := range c.Samples {
			if s.Problem == "" {
				field("sample", s.String())
			} else {
				field("sample", s.String()+" (rejected: "+s.Problem+")")
			}
		}
	}
	if v.ContentError != "" {
		field("content", "not read: "+v.ContentError)
	}
	return out
}

func supplierTexts(list []inventory.Supplier) []string {
	var out []string
	for _, s := range list {
		out = append(out, s.String())
	}
	return out
}

// requirementTexts returns the requirements of a package, with the packages that meet them.
func requirementTexts(v *inventory.PackageDetails) []string {
	out := slices.Clone(v.Requires)
	for _, s := range v.MetBy {
		if i := slices.Index(out, s.Need); i >= 0 {
			out[i] = s.String()
		}
	}
	return out
}

func printPackage(w *terminal.Terminal, v *inventory.PackageDetails) {
	for _, f := range packageFields(v) {
		fmt.Fprintf(w, "%-15s %s\n", f.Name+":", sanitize.Line(strings.Join(f.Values, ", ")))
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
