package resolve

import (
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
)

// Namespaced returns decl with an install namespace for every ClusterExtension
// that names none: that of its pin in prev, for a bundle that wants to be elsewhere
// moves nothing that is installed; else what the bundle suggests that OLM v1 would
// install anew, which is the first that is offered. Where nothing is offered it is
// the package's name, and Resolve says what is wrong. The error
// is a diag.List of bundles whose suggestion is no namespace or is not known, and
// of what is then declared twice. decl is not modified, and returned as it is where
// every namespace is said.
func Namespaced(x *catalog.Index, decl *subscription.Set, prev *lockfile.File, opt Options) (*subscription.Set, error) {
	if !slices.ContainsFunc(decl.Subscriptions, managed) {
		return decl, nil
	}
	w := newWorld(x, decl, opt)
	w.quiet = true
	out := *decl
	out.Subscriptions = slices.Clone(decl.Subscriptions)
	var faults diag.List
	for i := range out.Subscriptions {
		s := &out.Subscriptions[i]
		if !managed(*s) {
			continue
		}
		if pin, ok := PinOf(prev, *s); ok {
			s.Namespace = pin.Namespace
			continue
		}
		var err error
		if s.Namespace, err = w.suggested(&decl.Subscriptions[i]); err != nil {
			faults.Add(diag.Pos{}, err)
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return subscription.Merge(&out)
}

// managed reports whether the catalog's bundle says where s is installed.
func managed(s subscription.Subscription) bool {
	return s.Namespace == "" && s.Bundle == "" && s.Dialect == subscription.V1
}

// PinOf returns the pin that answers a declaration without a namespace.
func PinOf(lock *lockfile.File, s subscription.Subscription) (lockfile.Pin, bool) {
	if lock == nil {
		return lockfile.Pin{}, false
	}
	i := slices.IndexFunc(lock.Pins, func(p lockfile.Pin) bool {
		return !p.Generated() && p.Subscription() == s.Name && p.Package == s.Package
	})
	if i < 0 {
		return lockfile.Pin{}, false
	}
	return lock.Pins[i], true
}

// suggested returns where the bundle wants to be that a fresh install of d takes.
func (w *world) suggested(d *subscription.Subscription) (string, error) {
	s := &want{name: d.Name, pkg: d.Package, channels: d.Channels, cat: d.Catalog, decl: d, approval: d.Approval}
	offered := w.options(s)
	if len(offered.of) == 0 {
		return d.Package, nil
	}
	b := offered.of[0].entry.Bundle()
	if !b.Metadata().Known {
		return "", diag.Errorf(d.At(subscription.FieldNamespace), "catalog %s does not tell which namespace bundle %q suggests: name one in spec.namespace", b.Package().Catalog().ID(), b.Name())
	}
	ns, err := olm.ManagedNamespace(d.Package, b.Metadata().Annotations)
	if err != nil {
		return "", diag.Errorf(d.At(subscription.FieldNamespace), "bundle %q suggests no namespace that can be: %w; name one in spec.namespace", b.Name(), err)
	}
	return ns, nil
}
