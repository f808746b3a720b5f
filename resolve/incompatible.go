package resolve

import (
	"slices"
	"strings"

	masterminds "github.com/Masterminds/semver/v3"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
)

// Incompatibility is a pin that does not support a version of the cluster.
type Incompatibility struct {
	Pin  lockfile.Pin
	Rule string // "minKubeVersion" or "olm.maxOpenShiftVersion"
	Text string // "needs Kubernetes 1.38"
}

// FindIncompatible returns the pins of a lock that do not support the given versions of Kubernetes and
// OpenShift (rule 7), in the order of the lock. An empty version is not checked. The supported versions come
// from the catalogs. If a catalog no longer has the bundle of a pin, the limit for OpenShift comes from the
// properties in the lock, and the limit for Kubernetes is unknown. The result unknown lists such pins, unless
// the version of Kubernetes is empty.
func FindIncompatible(x *catalog.Index, lock *lockfile.File, kubernetes, openshift string) (found []Incompatibility, unknown []string) {
	for _, p := range lock.Pins {
		var m catalog.Metadata
		maxOpenShift := catalog.Read(p.Properties).MaxVersion
		b := bundleOf(x, p)
		if b != nil {
			m, maxOpenShift = b.Metadata(), b.MaxOpenShiftVersion()
		} else if kubernetes != "" {
			unknown = append(unknown, p.Key())
		}
		if text := kubernetesMismatch(m, kubernetes); text != "" {
			found = append(found, Incompatibility{p, "minKubeVersion", text})
		}
		if text := openShiftMismatch(maxOpenShift, openshift); text != "" {
			found = append(found, Incompatibility{p, catalog.TypeMaxVersion, text})
		}
	}
	return found, unknown
}

// bundleOf returns the bundle of a pin in the catalog of the pin, or nil if the catalog does not have this bundle.
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

// packageOf returns a package of catalog id, or nil if the catalog or the package does not exist.
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

// kubernetesMismatch returns the reason why a bundle does not support a version of Kubernetes, or "" if the bundle
// supports the version or the version is empty. A version without a patch number counts as the newest patch.
func kubernetesMismatch(m catalog.Metadata, kubernetes string) string {
	if isBelow(kubernetes, m.MinKubeVersion) {
		return "needs Kubernetes " + m.MinKubeVersion
	}
	if !inRange(kubernetes, m.KubeVersions) {
		return "needs Kubernetes " + m.KubeVersions
	}
	return ""
}

// SupportsKubernetes reports whether a version of Kubernetes is in a range, as Helm evaluates the kubeVersion of a
// chart. An empty version or range excludes nothing.
func SupportsKubernetes(version, versions string) bool { return inRange(version, versions) }

// inRange reports whether a version of Kubernetes is in a range, as Helm evaluates it. A version without a
// patch number is in the range if its first or its newest patch is. If the version or the range is empty or
// malformed, it returns true.
func inRange(version, within string) bool {
	constraint, err := masterminds.NewConstraint(within)
	if err != nil || version == "" || within == "" {
		return true
	}
	patches := []string{version}
	if strings.Count(version, ".") == 1 {
		patches = []string{version + ".0", version + ".99"}
	}
	return slices.ContainsFunc(patches, func(text string) bool {
		v, err := masterminds.NewVersion(text)
		return err != nil || constraint.Check(v)
	})
}

// openShiftMismatch returns the reason why a bundle does not support a version of OpenShift, or "" if it does.
// limit is the highest supported version. An empty limit or version is not checked.
func openShiftMismatch(limit, openshift string) string {
	if isAboveMinor(openshift, limit) {
		return "supports OpenShift up to " + limit
	}
	return ""
}

// LifecycleOf returns the support periods for the version of a pin, or nil if the catalog has none. The catalog
// need not have the bundle of the pin.
func LifecycleOf(x *catalog.Index, p lockfile.Pin) *catalog.SupportedVersion {
	pkg := packageOf(x, p.Catalog.ID, p.Package)
	if pkg == nil {
		return nil
	}
	return catalog.FindSupport(pkg.Lifecycle(), p.Version)
}

// UpgradePath returns the bundles on the upgrade path from a pin, nearest first. It ignores requirements. It
// returns nil if the pin belongs neither to a declaration nor to a dependency.
func UpgradePath(x *catalog.Index, decl *declare.Set, lock *lockfile.File, pin lockfile.Pin, opt Options) []string {
	w := newWorld(x, decl, upgradeOptions(opt))
	for _, s := range w.stateBefore(lock).wants {
		if s.current != nil && s.current.pin != nil && s.current.pin.Key() == pin.Key() {
			return w.remaining(s.current, s, maxRounds)
		}
	}
	return nil
}
