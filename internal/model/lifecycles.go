package model

import (
	"slices"

	"github.com/quayside/quayside/internal/base/diag"
)

// Lifecycle returns what the catalog says of how long versions of the package
// are supported, in file order; nil where it says nothing, or nothing that is
// right. It is shared and must not be modified.
func (p *Package) Lifecycle() []SupportedVersion { return p.lifecycle }

// LifecycleFaults returns why Lifecycle is nil although the catalog says
// something, nil where it does not. The error is a diag.List.
func (p *Package) LifecycleFaults() error {
	faults := slices.Clone(p.unclear)
	return faults.Err()
}

// Lifecycle returns what the catalog says of the bundle's version, nil where
// that is nothing. It is shared and must not be modified.
func (b *Bundle) Lifecycle() *SupportedVersion {
	return FindSupport(b.pkg.lifecycle, b.version.String())
}

// applyLifecycles takes what is said of the package. Of several documents, and
// of one with a fault, nothing holds. Neither is a fault of the catalog, of which
// OLM reads nothing here.
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

// stray reports whether there is nothing of the package but its lifecycles.
func (p *PackageData) stray() bool {
	return p.Undeclared && len(p.Lifecycles) > 0 && len(p.Channels)+len(p.Bundles)+len(p.Deprecations) == 0
}

// addStray notes lifecycles of a package that there is not. names are those of
// all packages.
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
