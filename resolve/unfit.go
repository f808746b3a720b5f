package resolve

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/lifecycle"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
)

// Misfit is a pin that does not run on a version of a cluster.
type Misfit struct {
	Pin  lockfile.Pin
	Rule string // "minKubeVersion" or "olm.maxOpenShiftVersion"
	Text string // "needs Kubernetes 1.38"
}

// Unfit returns the pins of a lock that say of themselves that they do not run on
// these versions of Kubernetes and OpenShift, in their order, by rule 7; an empty
// version is not looked at. The catalogs say it, and of a bundle that they no
// longer have its properties in the lock, where minKubeVersion does not stand:
// unknown are the keys of pins of which it is not known.
func Unfit(x *catalog.Index, lock *lockfile.File, kubernetes, openshift string) (found []Misfit, unknown []string) {
	for _, p := range lock.Pins {
		least, most := "", olm.Read(p.Properties).MaxVersion
		b := bundleOf(x, p)
		if b != nil {
			least, most = b.Metadata().MinKubeVersion, b.MaxOpenShiftVersion()
		} else if kubernetes != "" {
			unknown = append(unknown, p.Key())
		}
		if text := unfit(least, "", kubernetes, ""); text != "" {
			found = append(found, Misfit{p, "minKubeVersion", text})
		}
		if text := unfit("", most, "", openshift); text != "" {
			found = append(found, Misfit{p, olm.TypeMaxVersion, text})
		}
	}
	return found, unknown
}

// bundleOf returns the bundle that a pin is of, or nil where its catalog does not have it.
func bundleOf(x *catalog.Index, p lockfile.Pin) *catalog.Bundle {
	cat, ok := x.Catalog(p.Catalog.ID)
	if !ok {
		return nil
	}
	pkg, ok := cat.Package(p.Package)
	if !ok {
		return nil
	}
	b, ok := pkg.Bundle(p.Bundle)
	if !ok {
		return nil
	}
	return b
}

// unfit returns why what needs at least one version of Kubernetes, and at most one
// minor of OpenShift, does not run on these; "" where it does, or where either is
// not given.
func unfit(least, most, kubernetes, openshift string) string {
	switch {
	case below(kubernetes, least):
		return "needs Kubernetes " + least
	case aboveMinor(openshift, most):
		return "runs on OpenShift up to " + most
	}
	return ""
}

// LifecycleOf returns what the catalog of a pin states about the support of its version;
// nil where it states nothing. The catalog may have dropped the bundle.
func LifecycleOf(x *catalog.Index, p lockfile.Pin) *lifecycle.Version {
	c, read := x.Catalog(p.Catalog.ID)
	if !read {
		return nil
	}
	pkg, ok := c.Package(p.Package)
	if !ok {
		return nil
	}
	return lifecycle.Find(pkg.Lifecycle(), p.Version)
}

// Hops returns the bundles that upgrades of a pin of the lock can reach, nearest first,
// dependencies aside; nil where nothing asks for it.
func Hops(x *catalog.Index, decl *subscription.Set, lock *lockfile.File, pin lockfile.Pin, opt Options) []string {
	w := newWorld(x, decl, moving(opt))
	for _, s := range w.stateBefore(lock).wants {
		if s.current != nil && s.current.pin != nil && s.current.pin.Key() == pin.Key() {
			return w.remaining(s.current, s, maxRounds)
		}
	}
	return nil
}
