package resolve

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/lockfile"
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
	cat, ok := x.Catalog(p.Catalog)
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
