package resolve

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
)

// Scope returns what Resolve, Check, Outdated and WhyNot can look at of the
// catalogs, given the same arguments: the packages that are declared, pinned or
// named, and what installed bundles require. An index that holds no more than
// this, and all that it needs in turn, gives the same result as a full one.
func Scope(decl *subscription.Set, prev *lockfile.File, opt Options) catalog.Needs {
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

// addProperties adds what an installed bundle requires. A requirement that
// cannot be read is one that nothing can meet.
func addProperties(n *catalog.Needs, ps []catalog.Property) {
	for _, r := range olm.Read(ps).Requires {
		n.Add(r)
	}
}
