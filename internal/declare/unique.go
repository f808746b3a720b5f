package declare

import (
	"bytes"
	"slices"

	"github.com/quayside/quayside/internal/base/diag"
)

// contradictions finds subscriptions to one package in one namespace that cannot both be satisfied
// by any catalog. Channels, versions and starting points are left to the resolver, because two
// channels may share a bundle. So are catalogs and approvals among OLM's own Subscriptions, which
// OLM accepts: two catalogs are unsatisfiable there, and one Manual approval applies to the whole
// plan. A declaration without a namespace is checked later, when the namespace is known. The set
// must be sorted.
func (s *Set) contradictions(errs *diag.List) {
	for i, b := range s.Subscriptions {
		for j := i - 1; j >= 0 && s.Subscriptions[j].Namespace == b.Namespace; j-- {
			a := s.Subscriptions[j]
			if a.Package != b.Package || b.Package == "" || b.Namespace == "" || a.Key() == b.Key() {
				continue
			}
			if what := findContradiction(a, b); what != nil {
				errs.Addf(b.At(what.field), "package %q in namespace %q is requested with a different %s at %s", b.Package, b.Namespace, what.name, a.At(what.field))
			}
		}
	}
}

// aspect is a property in which two subscriptions must agree.
type aspect struct {
	name    string
	field   Field
	differs func(a, b Subscription) bool
}

func findContradiction(a, b Subscription) *aspect {
	for _, x := range subscriptionAspects() {
		if x.differs(a, b) {
			return &x
		}
	}
	return nil
}

// isMixed reports whether OLM v0 does not read at least one of the two.
func isMixed(a, b Subscription) bool { return a.Dialect != V0 || b.Dialect != V0 }

func subscriptionAspects() []aspect {
	return []aspect{
		{"catalog", FieldCatalog, func(a, b Subscription) bool {
			return isMixed(a, b) && a.Catalog != nil && b.Catalog != nil && *a.Catalog != *b.Catalog
		}},
		{"set of watch namespaces", FieldWatch, func(a, b Subscription) bool {
			said := func(s Subscription) bool { return s.WatchAll || s.Watch != nil }
			return said(a) && said(b) && (a.WatchAll != b.WatchAll || !slices.Equal(a.Watch, b.Watch))
		}},
		{"approval", FieldApproval, func(a, b Subscription) bool {
			return a.Dialect == Quayside && b.Dialect == Quayside && a.Approval != b.Approval
		}},
		{"hold", FieldHold, func(a, b Subscription) bool { return a.Hold != b.Hold && a.Dialect == b.Dialect }},
		{"config", FieldConfig, func(a, b Subscription) bool {
			return a.Config != nil && b.Config != nil && !bytes.Equal(a.Config, b.Config)
		}},
		{"upgradeConstraintPolicy", FieldPolicy, func(a, b Subscription) bool { return a.Policy != b.Policy && a.Dialect == b.Dialect }},
	}
}
