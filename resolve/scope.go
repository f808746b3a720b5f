package resolve

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
)

// Scope returns the parts of the catalogs that Resolve, Check, Outdated and WhyNot may use with
// the same arguments: declared, pinned and named packages, and the requirements of installed
// bundles. An index limited to these parts and their transitive requirements gives the same
// result as a full one.
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

// addProperties adds the requirements of an installed bundle. A malformed requirement cannot be
// met by any bundle.
func addProperties(n *catalog.Needs, ps []catalog.Property) {
	for _, r := range catalog.Read(ps).Requires {
		n.Add(r)
	}
}
