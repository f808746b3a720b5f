package workspace

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// WithNamespace returns t with a namespace. If t has none, WithNamespace adds the only namespace in
// which the package is pinned or declared. If there is no such namespace, it adds the name of the
// package. If there are several, it returns an error.
func WithNamespace(t resolve.Target, lock *lockfile.File, set *declare.Set) (resolve.Target, error) {
	if t.Namespace != "" {
		return t, nil
	}
	var namespaces []string
	if lock != nil {
		for _, p := range lock.Pins {
			if p.Package == t.Package {
				namespaces = append(namespaces, p.Namespace)
			}
		}
	}
	for _, s := range set.Subscriptions {
		if s.Package == t.Package && s.Namespace != "" {
			namespaces = append(namespaces, s.Namespace)
		}
	}
	slices.Sort(namespaces)
	namespaces = slices.Compact(namespaces)
	switch len(namespaces) {
	case 0:
		t.Namespace = t.Package
	case 1:
		t.Namespace = namespaces[0]
	default:
		var full []string
		for _, ns := range namespaces {
			full = append(full, ns+"/"+t.Package)
		}
		return t, diag.Errorf(t.At, "package %q is in several namespaces: choose one of %s", t.Package, strings.Join(full, ", "))
	}
	return t, nil
}

// withNamespaces applies [WithNamespace] to all targets.
func withNamespaces(ts []resolve.Target, lock *lockfile.File, set *declare.Set) ([]resolve.Target, error) {
	var out []resolve.Target
	for _, t := range ts {
		t, err := WithNamespace(t, lock, set)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}
