package resolve

import (
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
)

// Namespaced returns decl with an install namespace for every ClusterExtension that has none. If prev pins the
// operator, it keeps the namespace of the pin, because a new suggestion must not move an installed bundle.
// Otherwise, it uses the namespace suggested by the bundle that OLM v1 would install. If there is no such
// bundle, it uses the name of the package, and Resolve reports the missing bundle.
//
// The error is a diag.List of bundles whose suggestion is invalid or unknown, and of declarations that become
// duplicates. decl is not modified. If every namespace is set, decl itself is returned.
func Namespaced(x *catalog.Index, decl *declare.Set, prev *lockfile.File, opt Options) (*declare.Set, error) {
	if !slices.ContainsFunc(decl.Subscriptions, needsNamespace) {
		return decl, nil
	}
	w := newWorld(x, decl, opt)
	w.quiet = true
	out := *decl
	out.Subscriptions = slices.Clone(decl.Subscriptions)
	var faults diag.List
	for i := range out.Subscriptions {
		s := &out.Subscriptions[i]
		if !needsNamespace(*s) {
			continue
		}
		if pin, ok := PinOf(prev, *s); ok {
			s.Namespace = pin.Namespace
			continue
		}
		var err error
		if s.Namespace, err = w.suggestedNamespace(&decl.Subscriptions[i]); err != nil {
			faults.Add(diag.Pos{}, err)
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return declare.Merge(&out)
}

// needsNamespace reports whether s is a ClusterExtension without an install namespace.
func needsNamespace(s declare.Subscription) bool {
	return s.Namespace == "" && s.Bundle == "" && s.Dialect == declare.V1
}

// PinOf returns the pin of a declaration. The second result is false if there is none. PinOf compares the names of
// the declaration and of the package, and the namespace if the declaration has one.
func PinOf(lock *lockfile.File, s declare.Subscription) (lockfile.Pin, bool) {
	if lock == nil {
		return lockfile.Pin{}, false
	}
	i := slices.IndexFunc(lock.Pins, func(p lockfile.Pin) bool {
		return !p.Generated() && p.Subscription() == s.Name && p.Package == s.Package && (s.Namespace == "" || s.Namespace == p.Namespace)
	})
	if i < 0 {
		return lockfile.Pin{}, false
	}
	return lock.Pins[i], true
}

// suggestedNamespace returns the namespace that the first candidate for a new installation of d
// suggests. If there is no candidate, it returns the name of the package.
func (w *chooser) suggestedNamespace(d *declare.Subscription) (string, error) {
	s := &want{name: d.Name, pkg: d.Package, channels: d.Channels, cat: d.Catalog, decl: d, approval: d.Approval}
	offered := w.options(s)
	if len(offered.list) == 0 {
		return d.Package, nil
	}
	b := offered.list[0].entry.Bundle()
	if !b.Metadata().Known {
		return "", diag.Errorf(d.At(declare.FieldNamespace), "catalog %s does not contain the namespace that bundle %q suggests: set spec.namespace", b.Package().Catalog().ID(), b.Name())
	}
	ns, err := catalog.ManagedNamespace(d.Package, b.Metadata().Annotations)
	if err != nil {
		return "", diag.Errorf(d.At(declare.FieldNamespace), "bundle %q suggests an invalid namespace: %w; set spec.namespace", b.Name(), err)
	}
	return ns, nil
}
