package declare

import (
	"bytes"
	"slices"

	"github.com/quayside/quayside/internal/diag"
)

// dropContradictions drops subscriptions that request the same package in the same namespace in contradictory
// ways. These subscriptions become unread. The set must be sorted.
//
// Some differences are not contradictions here. Different channels, versions and starting bundles are left to
// the resolver, because two channels can contain the same bundle. Different catalogs and approvals of two OLM
// v0 Subscriptions are also left to the resolver, because OLM accepts them. Declarations without a namespace
// are checked later, when the bundle has determined the namespace.
func (s *Set) dropContradictions() {
	dropped := map[string]bool{}
	for i, b := range s.Subscriptions {
		for j := i - 1; j >= 0 && s.Subscriptions[j].Namespace == b.Namespace; j-- {
			a := s.Subscriptions[j]
			if a.Package != b.Package || b.Package == "" || b.Namespace == "" || a.Key() == b.Key() {
				continue
			}
			if conflict := findContradiction(a, b); conflict != nil {
				e := diag.Errorf(b.At(conflict.field), "package %q in namespace %q is requested with a different %s at %s", b.Package, b.Namespace, conflict.name, a.At(conflict.field))
				s.Unread = append(s.Unread, unreadSubscription(e, b))
				dropped[a.Key()], dropped[b.Key()] = true, true
			}
		}
	}
	s.Subscriptions = slices.DeleteFunc(s.Subscriptions, func(d Subscription) bool { return dropped[d.Key()] })
}

// unreadSubscription returns the Unread for a subscription with a fault.
func unreadSubscription(e *diag.Error, d Subscription) Unread {
	u := unreadObject(e, d.identity())
	u.Package = d.Package
	return u
}

// aspect is a field that must be equal in two subscriptions to one package.
type aspect struct {
	name    string
	field   Field
	differs func(a, b Subscription) bool
}

// findContradiction returns the first aspect in which two subscriptions differ, or nil.
func findContradiction(a, b Subscription) *aspect {
	for _, x := range subscriptionAspects() {
		if x.differs(a, b) {
			return &x
		}
	}
	return nil
}

// isMixed reports whether one of the subscriptions is not an OLM v0 Subscription.
func isMixed(a, b Subscription) bool { return a.Dialect != V0 || b.Dialect != V0 }

// subscriptionAspects returns the aspects that findContradiction compares.
func subscriptionAspects() []aspect {
	return []aspect{
		{"catalog", FieldCatalog, func(a, b Subscription) bool {
			return isMixed(a, b) && a.Catalog != nil && b.Catalog != nil && *a.Catalog != *b.Catalog
		}},
		{"set of watch namespaces", FieldWatch, func(a, b Subscription) bool {
			declaresWatch := func(s Subscription) bool { return s.WatchAll || s.Watch != nil }
			return declaresWatch(a) && declaresWatch(b) && (a.WatchAll != b.WatchAll || !slices.Equal(a.Watch, b.Watch))
		}},
		{"approval", FieldApproval, func(a, b Subscription) bool {
			return a.Dialect == Quayside && b.Dialect == Quayside && a.Approval != b.Approval
		}},
		{"hold", FieldHold, func(a, b Subscription) bool { return a.Hold != b.Hold && a.Dialect == b.Dialect }},
		{"config", FieldConfig, func(a, b Subscription) bool {
			return a.Config != nil && b.Config != nil && !bytes.Equal(a.Config, b.Config)
		}},
		{"set of values", FieldValues, func(a, b Subscription) bool {
			return a.ChartValues != nil && b.ChartValues != nil && !bytes.Equal(a.ChartValues, b.ChartValues)
		}},
		{"upgradeConstraintPolicy", FieldPolicy, func(a, b Subscription) bool { return a.Policy != b.Policy && a.Dialect == b.Dialect }},
	}
}
