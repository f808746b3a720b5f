package resolve

import (
	"github.com/quayside/quayside/internal/declare"
	"github.com/quayside/quayside/internal/model"
	"github.com/quayside/quayside/lockfile"
)

// Misfit is a pin that does not run on a version of a cluster.
type Misfit struct {
	Pin  lockfile.Pin
	Rule string // "minKubeVersion" or "olm.maxOpenShiftVersion"
	Text string // "needs Kubernetes 1.38"
}

// Unfit returns the pins of a lock that do not run on the given versions of Kubernetes and
// OpenShift, in the order of the lock, by rule 7. An empty version is not checked. The limits come
// from the catalogs. If a catalog no longer has the bundle, they come from the properties in the
// lock, which do not include minKubeVersion: unknown lists the keys of such pins.
func Unfit(x *model.Index, lock *lockfile.File, kubernetes, openshift string) (found []Misfit, unknown []string) {
	for _, p := range lock.Pins {
		least, most := "", model.Read(p.Properties).MaxVersion
		b := bundleOf(x, p)
		if b != nil {
			least, most = b.Metadata().MinKubeVersion, b.MaxOpenShiftVersion()
		} else if kubernetes != "" {
			unknown = append(unknown, p.Key())
		}
		if text := platformMismatch(least, "", kubernetes, ""); text != "" {
			found = append(found, Misfit{p, "minKubeVersion", text})
		}
		if text := platformMismatch("", most, "", openshift); text != "" {
			found = append(found, Misfit{p, model.TypeMaxVersion, text})
		}
	}
	return found, unknown
}

// bundleOf returns the bundle of a pin, or nil if its catalog does not have it.
func bundleOf(x *model.Index, p lockfile.Pin) *model.Bundle {
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
func packageOf(x *model.Index, id model.ID, name string) *model.Package {
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

// platformMismatch explains why a bundle with a minimum version of Kubernetes (least) and a
// maximum minor of OpenShift (most) does not run on the given versions. It returns "" if the
// bundle runs, or if a limit or its version is empty.
func platformMismatch(least, most, kubernetes, openshift string) string {
	switch {
	case isBelow(kubernetes, least):
		return "needs Kubernetes " + least
	case aboveMinor(openshift, most):
		return "supports OpenShift up to " + most
	}
	return ""
}

// LifecycleOf returns the support data of a pin's version from its catalog, or nil if there is
// none. The catalog may have dropped the bundle.
func LifecycleOf(x *model.Index, p lockfile.Pin) *model.SupportedVersion {
	pkg := packageOf(x, p.Catalog.ID, p.Package)
	if pkg == nil {
		return nil
	}
	return model.FindSupport(pkg.Lifecycle(), p.Version)
}

// Hops returns the bundles that upgrades of a pin of the lock can reach, nearest first, without
// regard to dependencies. It returns nil if the pin has no subscription.
func Hops(x *model.Index, decl *declare.Set, lock *lockfile.File, pin lockfile.Pin, opt Options) []string {
	w := newWorld(x, decl, upgradeOptions(opt))
	for _, s := range w.stateBefore(lock).wants {
		if s.current != nil && s.current.pin != nil && s.current.pin.Key() == pin.Key() {
			return w.remaining(s.current, s, maxRounds)
		}
	}
	return nil
}
