package workspace

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/declare"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// Placed returns t with a namespace. If t has none, it is the only namespace that pins or
// declares the package. A package in no namespace gets its own name; one in several is an
// error that lists them.
func Placed(t resolve.Target, lock *lockfile.File, set *declare.Set) (resolve.Target, error) {
	if t.Namespace != "" {
		return t, nil
	}
	var in []string
	if lock != nil {
		for _, p := range lock.Pins {
			if p.Package == t.Package {
				in = append(in, p.Namespace)
			}
		}
	}
	for _, s := range set.Subscriptions {
		if s.Package == t.Package && s.Namespace != "" {
			in = append(in, s.Namespace)
		}
	}
	slices.Sort(in)
	in = slices.Compact(in)
	switch len(in) {
	case 0:
		t.Namespace = t.Package
	case 1:
		t.Namespace = in[0]
	default:
		var full []string
		for _, ns := range in {
			full = append(full, ns+"/"+t.Package)
		}
		return t, diag.Errorf(t.At, "package %q is in several namespaces: choose one of %s", t.Package, strings.Join(full, ", "))
	}
	return t, nil
}

// allPlaced applies [Placed] to each target, in order.
func allPlaced(ts []resolve.Target, lock *lockfile.File, set *declare.Set) ([]resolve.Target, error) {
	var out []resolve.Target
	for _, t := range ts {
		t, err := Placed(t, lock, set)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}
