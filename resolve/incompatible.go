package resolve

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
)

// Incompatibility is a pin that does not run on a version of a cluster.
type Incompatibility struct {
	Pin  lockfile.Pin
	Rule string // "minKubeVersion" or "olm.maxOpenShiftVersion"
	Text string // "needs Kubernetes 1.38"
}

// FindIncompatible returns the pins of a lock that do not run on the given versions of Kubernetes
// and OpenShift (rule 7), in the order of the lock. If a version is empty, it is not checked. The
// limits come from the catalogs. If a catalog no longer has the bundle, the limit for OpenShift
// comes from the properties in the lock, and the limit for Kubernetes is unknown: unknown lists the
// keys of these pins if a version of Kubernetes is given.
func FindIncompatible(x *catalog.Index, lock *lockfile.File, kubernetes, openshift string) (found []Incompatibility, unknown []string) {
	for _, p := range lock.Pins {
		minKube, maxOpenShift := "", catalog.Read(p.Properties).MaxVersion
		b := bundleOf(x, p)
		if b != nil {
			minKube, maxOpenShift = b.Metadata().MinKubeVersion, b.MaxOpenShiftVersion()
		} else if kubernetes != "" {
			unknown = append(unknown, p.Key())
		}
		if text := platformMismatch(minKube, "", kubernetes, ""); text != "" {
			found = append(found, Incompatibility{p, "minKubeVersion", text})
		}
		if text := platformMismatch("", maxOpenShift, "", openshift); text != "" {
			found = append(found, Incompatibility{p, catalog.TypeMaxVersion, text})
		}
	}
	return found, unknown
}

// bundleOf returns the bundle of a pin, or nil if its catalog does not have it.
func bundleOf(x *catalog.Index, p lockfile.Pin) *catalog.Bundle {
	pkg := packageOf(x, p.Catalog.ID, p.Package)
	if pkg == nil {
		return nil
	}
	b, ok := pkg.Bundle(p.Bundle)
	if !ok {
		return nil
	}
	return b
}

// packageOf returns a package of a catalog, or nil.
func packageOf(x *catalog.Index, id catalog.ID, name string) *catalog.Package {
	c, read := x.Catalog(id)
	if !read {
		return nil
	}
	p, ok := c.Package(name)
	if !ok {
		return nil
	}
	return p
}

// platformMismatch explains why a bundle with a minimum version of Kubernetes and a maximum minor
// version of OpenShift does not run on the given versions. It returns "" if the bundle runs. An
// empty limit or version is not checked.
func platformMismatch(minKube, maxOpenShift, kubernetes, openshift string) string {
	switch {
	case isBelow(kubernetes, minKube):
		return "needs Kubernetes " + minKube
	case isAboveMinor(openshift, maxOpenShift):
		return "supports OpenShift up to " + maxOpenShift
	}
	return ""
}

// LifecycleOf returns the catalog's support data for the version of a pin, or nil if the catalog
// has none. It does not require that the catalog still has the bundle.
func LifecycleOf(x *catalog.Index, p lockfile.Pin) *catalog.SupportedVersion {
	pkg := packageOf(x, p.Catalog.ID, p.Package)
	if pkg == nil {
		return nil
	}
	return catalog.FindSupport(pkg.Lifecycle(), p.Version)
}

// UpgradePath returns the bundles that a pin of the lock can be upgraded to, nearest first. It
// ignores dependencies. It returns nil if no subscription of the lock or the declarations has this
// pin.
func UpgradePath(x *catalog.Index, decl *declare.Set, lock *lockfile.File, pin lockfile.Pin, opt Options) []string {
	w := newWorld(x, decl, upgradeOptions(opt))
	for _, s := range w.stateBefore(lock).wants {
		if s.current != nil && s.current.pin != nil && s.current.pin.Key() == pin.Key() {
			return w.remaining(s.current, s, maxRounds)
		}
	}
	return nil
}
