package catalog

import (
	"slices"

	"github.com/quayside/quayside/internal/diag"
)

// Lifecycle returns the support periods of the package's versions, in file order. It returns nil if
// the catalog has none, or if they are invalid (see LifecycleFaults). The result is shared and must
// not be modified.
func (p *Package) Lifecycle() []SupportedVersion { return p.lifecycle }

// LifecycleFaults returns a diag.List of the faults that make Lifecycle return nil, or nil if there
// are none.
func (p *Package) LifecycleFaults() error {
	faults := slices.Clone(p.lifecycleFaults)
	return faults.Err()
}

// Lifecycle returns the support periods of the bundle's version, or nil if the catalog has none.
// The result is shared and must not be modified.
func (b *Bundle) Lifecycle() *SupportedVersion {
	return FindSupport(b.pkg.lifecycle, b.version.String())
}

// applyLifecycles sets the support periods of the package from its lifecycle document. If there are faults, or
// several documents, it only records the faults. Such faults do not invalidate the catalog, because OLM ignores
// lifecycles.
func (p *Package) applyLifecycles() {
	docs := p.data.Lifecycles
	for i, doc := range docs {
		if i > 0 {
			p.lifecycleFaults.Addf(doc.Pos, "%s of package %q: duplicate document%s", LifecycleSchema, p.Name(), otherPosition(docs[0].Pos))
		}
		for _, f := range doc.Faults {
			p.lifecycleFaults.Addf(f.Pos, "%s of package %q: %s", LifecycleSchema, p.Name(), f.Msg)
		}
	}
	if len(docs) == 1 && len(p.lifecycleFaults) == 0 {
		p.lifecycle = docs[0].Versions
	}
}

// isStray reports whether p consists only of lifecycle documents, without any other object of the
// package.
func (p *PackageData) isStray() bool {
	return p.Undeclared && len(p.Lifecycles) > 0 && len(p.Channels)+len(p.Bundles)+len(p.Deprecations) == 0
}

// addStray records a fault for each lifecycle document in data. The package of data does not exist.
// names are the names of all packages, for suggestions.
func (c *Catalog) addStray(data *PackageData, names []string) {
	for _, doc := range data.Lifecycles {
		switch {
		case data.Name == "" && len(doc.Faults) == 0:
			c.strayFaults.Addf(doc.Pos, "%s has no package", LifecycleSchema)
		case data.Name != "":
			c.strayFaults.Addf(doc.Pos, "%s is for package %q, which has no olm.package%s", LifecycleSchema, data.Name, diag.DidYouMean(data.Name, names))
		}
		for _, f := range doc.Faults {
			c.strayFaults.Addf(f.Pos, "%s: %s", LifecycleSchema, f.Msg)
		}
	}
}
