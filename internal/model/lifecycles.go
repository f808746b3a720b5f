package model

import (
	"slices"

	"github.com/quayside/quayside/internal/base/diag"
)

// Lifecycle returns the support periods of the package's versions from the catalog, in file order,
// or nil if there are none or if they are invalid. The result is shared and must not be modified.
func (p *Package) Lifecycle() []SupportedVersion { return p.lifecycle }

// LifecycleFaults returns the faults that make Lifecycle nil, or nil if there are none. The error
// is a diag.List.
func (p *Package) LifecycleFaults() error {
	faults := slices.Clone(p.unclear)
	return faults.Err()
}

// Lifecycle returns the support periods of the bundle's version from the catalog, or nil if there
// are none. The result is shared and must not be modified.
func (b *Bundle) Lifecycle() *SupportedVersion {
	return FindSupport(b.pkg.lifecycle, b.version.String())
}

// applyLifecycles sets the support periods of the package. It ignores a document with a fault, and
// all documents if there are several. These faults do not invalidate the catalog, because OLM does
// not read lifecycles.
func (p *Package) applyLifecycles() {
	docs := p.data.Lifecycles
	for i, doc := range docs {
		if i > 0 {
			p.unclear.Addf(doc.Pos, "%s of package %q: second document%s", LifecycleSchema, p.Name(), otherPosition(docs[0].Pos))
		}
		for _, f := range doc.Faults {
			p.unclear.Addf(f.Pos, "%s of package %q: %s", LifecycleSchema, p.Name(), f.Msg)
		}
	}
	if len(docs) == 1 && len(p.unclear) == 0 {
		p.lifecycle = docs[0].Versions
	}
}

// isStray reports whether the data consists of lifecycles only.
func (p *PackageData) isStray() bool {
	return p.Undeclared && len(p.Lifecycles) > 0 && len(p.Channels)+len(p.Bundles)+len(p.Deprecations) == 0
}

// addStray records lifecycles of a missing package. names has the names of all packages.
func (c *Catalog) addStray(data *PackageData, names []string) {
	for _, doc := range data.Lifecycles {
		switch {
		case data.Name == "" && len(doc.Faults) == 0:
			c.strays.Addf(doc.Pos, "%s has no package", LifecycleSchema)
		case data.Name != "":
			c.strays.Addf(doc.Pos, "%s is for package %q, which has no olm.package%s", LifecycleSchema, data.Name, diag.DidYouMean(data.Name, names))
		}
		for _, f := range doc.Faults {
			c.strays.Addf(f.Pos, "%s: %s", LifecycleSchema, f.Msg)
		}
	}
}
