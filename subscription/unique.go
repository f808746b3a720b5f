package subscription

import (
	"bytes"
	"slices"

	"github.com/quayside/quayside/internal/diag"
)

// unique finds objects that are declared twice. Subscriptions of all dialects
// share one name space, for the lock names them by namespace and name. It
// wants a sorted set.
func (s *Set) unique(errs *diag.List) {
	repeats(errs, s.Subscriptions, func(d Subscription) (string, diag.Pos) { return "subscription \"" + d.Key() + "\"", d.Pos })
	repeats(errs, s.OperatorGroups, func(d OperatorGroup) (string, diag.Pos) {
		return "OperatorGroup \"" + d.Namespace + "/" + d.Name + "\"", d.Pos
	})
	repeats(errs, s.CatalogSources, func(d CatalogSource) (string, diag.Pos) { return "catalog \"" + d.ID.String() + "\"", d.Pos })
	repeats(errs, s.CSVs, func(d ClusterServiceVersion) (string, diag.Pos) {
		return "ClusterServiceVersion \"" + d.Namespace + "/" + d.Name + "\"", d.Pos
	})
	repeats(errs, s.Namespaces, func(d Namespace) (string, diag.Pos) { return "Namespace \"" + d.Name + "\"", d.Pos })
}

func repeats[T any](errs *diag.List, sorted []T, name func(T) (string, diag.Pos)) {
	for i := 1; i < len(sorted); i++ {
		first, at := name(sorted[i-1])
		if second, pos := name(sorted[i]); second == first {
			errs.Addf(pos, "%s is declared twice, first at %s", second, at)
		}
	}
}

// contradictions finds subscriptions to one package in one namespace that
// cannot both be answered, whatever the catalogs hold. Channels, versions and
// starting points are left to the resolver: two channels may have a bundle in
// common. So are catalogs and approvals among OLM's own Subscriptions, which
// OLM reads without complaint: two catalogs are unsatisfiable there, and one
// Manual makes the whole plan Manual. It wants a sorted set.
func (s *Set) contradictions(errs *diag.List) {
	for i, b := range s.Subscriptions {
		for j := i - 1; j >= 0 && s.Subscriptions[j].Namespace == b.Namespace; j-- {
			a := s.Subscriptions[j]
			if a.Package != b.Package || b.Package == "" || a.Key() == b.Key() {
				continue
			}
			if what := contradiction(a, b); what != nil {
				errs.Addf(b.At(what.field(b.Dialect)), "package %q in namespace %q is asked for with another %s at %s", b.Package, b.Namespace, what.name, a.At(what.field(a.Dialect)))
			}
		}
	}
}

// aspect is something that two subscriptions may not see differently, with the
// field that holds it in each dialect.
type aspect struct {
	name    string
	differs func(a, b Subscription) bool
	fields  map[Dialect]string
}

func (a aspect) field(d Dialect) string { return a.fields[d] }

func contradiction(a, b Subscription) *aspect {
	for _, x := range aspects() {
		if x.differs(a, b) {
			return &x
		}
	}
	return nil
}

// mixed reports whether OLM would never have seen both.
func mixed(a, b Subscription) bool { return a.Dialect != V0 || b.Dialect != V0 }

func aspects() []aspect {
	return []aspect{
		{
			"catalog", func(a, b Subscription) bool {
				return mixed(a, b) && a.Catalog != nil && b.Catalog != nil && *a.Catalog != *b.Catalog
			},
			map[Dialect]string{V0: "spec.source", Quayside: "spec.catalog", V1: "spec.source.catalog"},
		},
		{"set of watch namespaces", func(a, b Subscription) bool {
			said := func(s Subscription) bool { return s.WatchAll || s.Watch != nil }
			return said(a) && said(b) && (a.WatchAll != b.WatchAll || !slices.Equal(a.Watch, b.Watch))
		}, map[Dialect]string{Quayside: "spec.watchNamespaces", V1: "spec.config.inline.watchNamespace"}},
		{
			"approval", func(a, b Subscription) bool {
				return a.Dialect == Quayside && b.Dialect == Quayside && a.Approval != b.Approval
			},
			map[Dialect]string{Quayside: "spec.approval"},
		},
		{"hold", func(a, b Subscription) bool { return a.Hold != b.Hold && a.Dialect == b.Dialect }, map[Dialect]string{Quayside: "spec.hold"}},
		{
			"config", func(a, b Subscription) bool {
				return a.Config != nil && b.Config != nil && !bytes.Equal(a.Config, b.Config)
			},
			map[Dialect]string{V0: "spec.config", Quayside: "spec.config", V1: "spec.config.inline.deploymentConfig"},
		},
		{
			"upgradeConstraintPolicy", func(a, b Subscription) bool { return a.Policy != b.Policy && a.Dialect == b.Dialect },
			map[Dialect]string{V1: "spec.source.catalog.upgradeConstraintPolicy"},
		},
	}
}
