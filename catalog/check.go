package catalog

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quayside/quayside/internal/diag"
)

// newPackage validates data and returns it as a Package. It adds problems to faults. After a fault, the result
// may be incomplete. siblings are the names of all packages in the catalog, for suggestions. known is a cache
// of decoded properties.
func newPackage(cat *Catalog, data *PackageData, siblings []string, known *Reader, faults *diag.List) *Package {
	p := &Package{
		cat: cat, data: data,
		byChannel: make(map[string]*Channel, len(data.Channels)),
		byBundle:  make(map[string]*Bundle, len(data.Bundles)),
	}
	if data.Undeclared {
		checkUndeclared(data, siblings, faults)
		return p
	}
	if len(validation.IsDNS1123Label(data.Name)) > 0 {
		faults.Addf(data.Pos, "package name %q: must be a DNS-1123 label (lower case letters, digits and \"-\", at most 63)", data.Name)
	}
	p.addBundles(known, faults)
	p.addChannels(faults)
	p.checkDefault(faults)
	p.checkMembership(faults)
	p.checkVersions(faults)
	p.applyDeprecations(faults)
	p.applyLifecycles()
	slices.SortFunc(p.bundles, compareNewest)
	slices.SortFunc(p.channels, func(a, b *Channel) int {
		if d := compareBool(b.IsDefault(), a.IsDefault()); d != 0 {
			return d
		}
		return strings.Compare(a.Name(), b.Name())
	})
	for _, c := range p.channels {
		for _, e := range c.entries {
			if e.bundle != nil {
				e.bundle.entries = append(e.bundle.entries, e)
			}
		}
	}
	return p
}

// addOthers records a fault for each schema that is probably a mistake: a misspelt schema, or a schema of OLM
// that catalogs cannot contain, such as the schema of a catalog template.
func (c *Catalog) addOthers(others []OtherSchema) {
	known := []string{"olm.package", "olm.channel", "olm.bundle", "olm.deprecations", LifecycleSchema}
	for _, o := range others {
		hint := diag.DidYouMean(o.Schema, known)
		switch {
		case o.Schema == "olm.semver", strings.HasPrefix(o.Schema, "olm.template."), o.Schema == "olm.composite", strings.HasPrefix(o.Schema, "olm.composite."):
			c.strayFaults.Addf(o.Pos, "schema %q belongs to a catalog template: expand the template first, for example with opm alpha render-template", o.Schema)
		case hint != "" || strings.HasPrefix(o.Schema, "olm."):
			c.strayFaults.Addf(o.Pos, "unknown schema %q: the object is not part of the catalog%s", o.Schema, hint)
		}
	}
}

// checkUndeclared adds faults for channels, bundles and deprecations of a package that has no
// olm.package.
func checkUndeclared(data *PackageData, siblings []string, faults *diag.List) {
	hint := diag.DidYouMean(data.Name, siblings)
	for i := range data.Channels {
		faults.Addf(data.Channels[i].Pos, "channel %q is for package %q, which has no olm.package%s", data.Channels[i].Name, data.Name, hint)
	}
	for i := range data.Bundles {
		faults.Addf(data.Bundles[i].Pos, "bundle %q is for package %q, which has no olm.package%s", data.Bundles[i].Name, data.Name, hint)
	}
	for i := range data.Deprecations {
		faults.Addf(data.Deprecations[i].Pos, "deprecation is for package %q, which has no olm.package%s", data.Name, hint)
	}
}

func (p *Package) addBundles(known *Reader, faults *diag.List) {
	for i := range p.data.Bundles {
		data := &p.data.Bundles[i]
		b := newBundle(p, data, known, faults)
		if first, ok := p.byBundle[data.Name]; ok {
			faults.Addf(data.Pos, "duplicate bundle %q in package %q%s", data.Name, p.Name(), otherPosition(first.data.Pos))
			continue
		}
		p.byBundle[data.Name] = b
		p.bundles = append(p.bundles, b)
	}
}

func (p *Package) addChannels(faults *diag.List) {
	if len(p.data.Channels) == 0 {
		faults.Addf(p.data.Pos, "package %q has no channel", p.Name())
	}
	for i := range p.data.Channels {
		data := &p.data.Channels[i]
		c := newChannel(p, data, faults)
		if first, ok := p.byChannel[data.Name]; ok {
			faults.Addf(data.Pos, "duplicate channel %q in package %q%s", data.Name, p.Name(), otherPosition(first.data.Pos))
			continue
		}
		p.byChannel[data.Name] = c
		p.channels = append(p.channels, c)
	}
}

func (p *Package) checkDefault(faults *diag.List) {
	name := p.data.DefaultChannel
	if name == "" {
		faults.Addf(p.data.Pos, "package %q has no default channel", p.Name())
		return
	}
	if _, ok := p.byChannel[name]; !ok && len(p.channels) > 0 {
		names := p.ChannelNames()
		slices.Sort(names)
		faults.Addf(p.data.Pos, "default channel %q of package %q does not exist%s", name, p.Name(), suggestNames(name, names))
	}
}

// checkMembership adds a fault for each bundle that is in no channel.
func (p *Package) checkMembership(faults *diag.List) {
	held := make(map[string]bool, len(p.bundles))
	for _, c := range p.channels {
		for name := range c.byName {
			held[name] = true
		}
	}
	for _, b := range p.bundles {
		if !held[b.Name()] {
			faults.Addf(b.data.Pos, "bundle %q of package %q is in no channel", b.Name(), p.Name())
		}
	}
}

// checkVersions adds a fault for each pair of bundles with the same version. Versions that differ only
// in build metadata, and equal versions with different releases, are not a fault.
func (p *Package) checkVersions(faults *diag.List) {
	seen := make(map[string]*Bundle, len(p.bundles))
	for _, b := range p.bundles {
		if !b.versioned {
			continue
		}
		v := b.VersionText()
		if first, ok := seen[v]; ok {
			faults.Addf(b.data.Pos, "bundles %q and %q of package %q have the same version %s", first.Name(), b.Name(), p.Name(), v)
			continue
		}
		seen[v] = b
	}
}

func (p *Package) applyDeprecations(faults *diag.List) {
	type key struct{ schema, name string }
	seen := make(map[key]bool, len(p.data.Deprecations))
	for _, d := range p.data.Deprecations {
		k := key{d.Schema, d.Name}
		if seen[k] {
			faults.Addf(d.Pos, "duplicate deprecation of %s %q in package %q", d.Schema, d.Name, p.Name())
			continue
		}
		seen[k] = true
		if d.Message == "" {
			faults.Addf(d.Pos, "deprecation of %s %q in package %q has no message", d.Schema, d.Name, p.Name())
		}
		if err := p.applyDeprecation(d); err != nil {
			faults.Add(d.Pos, err)
		}
	}
}

func (p *Package) applyDeprecation(d DeprecationData) error {
	switch d.Schema {
	case "olm.package":
		if d.Name != "" && d.Name != p.Name() {
			return fmt.Errorf("deprecation of package %q is in package %q", d.Name, p.Name())
		}
		p.deprecated = d.Message
	case "olm.channel":
		c, ok := p.byChannel[d.Name]
		if !ok {
			names := p.ChannelNames()
			slices.Sort(names)
			return fmt.Errorf("deprecated channel %q is not in package %q%s", d.Name, p.Name(), suggestNames(d.Name, names))
		}
		c.deprecated = d.Message
	case "olm.bundle":
		b, ok := p.byBundle[d.Name]
		if !ok {
			return fmt.Errorf("deprecated bundle %q is not in package %q%s", d.Name, p.Name(), diag.DidYouMean(d.Name, p.bundleNames()))
		}
		b.message = d.Message
	default:
		return fmt.Errorf("deprecation of unknown schema %q in package %q", d.Schema, p.Name())
	}
	return nil
}

func (p *Package) bundleNames() []string {
	names := make([]string, len(p.bundles))
	for i, b := range p.bundles {
		names[i] = b.Name()
	}
	return names
}

// suggestNames returns a message suffix with the available names that are similar to name. If none is similar,
// it lists all available names.
func suggestNames(name string, among []string) string {
	if hint := diag.DidYouMean(name, among); hint != "" {
		return hint
	}
	return " (available: " + strings.Join(among, ", ") + ")"
}
