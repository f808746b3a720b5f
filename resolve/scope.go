package resolve

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
)

// Scope returns the parts of the catalogs that Resolve, Check, Outdated and WhyNot need for these arguments:
// the declared, pinned and named packages, and the requirements of installed bundles. An index that contains
// only these parts, and everything that they require transitively, gives the same results as the full index.
func Scope(decl *declare.Set, prev *lockfile.File, opt Options) catalog.Needs {
	var n catalog.Needs
	for i := range decl.Subscriptions {
		n.Packages = append(n.Packages, decl.Subscriptions[i].Package)
	}
	for i := range decl.CSVs {
		addProperties(&n, decl.CSVs[i].Properties)
	}
	for _, lock := range []*lockfile.File{prev, opt.From} {
		if lock == nil {
			continue
		}
		for i := range lock.Pins {
			n.Packages = append(n.Packages, lock.Pins[i].Package)
			addProperties(&n, lock.Pins[i].Properties)
		}
	}
	for _, t := range opt.Named {
		n.Packages = append(n.Packages, t.Package)
	}
	return n.Sorted()
}

// addProperties adds to n the requirements in the properties of an installed bundle. It ignores malformed
// requirements: no bundle can meet them, so no package needs to be loaded for them.
func addProperties(n *catalog.Needs, ps []catalog.Property) {
	for _, r := range catalog.Read(ps).Requires {
		n.Add(r)
	}
}
