package catalog

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quayside/quayside/internal/diag"
)

// Bundle is one version of a package.
type Bundle struct {
	pkg       *Package
	data      *BundleData
	version   Version
	versioned bool // version is valid
	release   Release
	facts     Facts
	entries   []*Entry
	message   string // the bundle's message in olm.deprecations, or ""
}

// Name returns the bundle's name, unique in its package.
func (b *Bundle) Name() string { return b.data.Name }

// Version returns the version of the bundle's olm.package property.
func (b *Bundle) Version() Version { return b.version }

// Release returns the release of the bundle's olm.package property as written, or "" if there is
// none.
func (b *Bundle) Release() string {
	if b.facts.Release == nil {
		return ""
	}
	return *b.facts.Release
}

// VersionText returns the version for display: the version, and the release if there is one.
func (b *Bundle) VersionText() string { return VersionText(b.version.String(), b.Release()) }

// CompareReleases compares the releases of two bundles of the same version. A bundle without an
// explicit release sorts first.
func (b *Bundle) CompareReleases(other *Bundle) int { return b.release.Compare(other.release) }

// CompareEffectiveReleases compares two bundles of the same version as OLM v1 does: by the explicit
// release, or if there is none, by the build metadata of the version.
func (b *Bundle) CompareEffectiveReleases(other *Bundle) int {
	return b.effectiveRelease().Compare(other.effectiveRelease())
}

// effectiveRelease returns the explicit release or, if there is none, the build metadata of the
// version as a release.
func (b *Bundle) effectiveRelease() Release {
	if b.facts.Release == nil {
		return LegacyRelease(b.version)
	}
	return b.release
}

// Image returns the reference of the bundle's image, or "" if the catalog embeds the manifests.
func (b *Bundle) Image() string { return b.data.Image }

// Format returns the format of the bundle's content, such as "helm", or "" for registry+v1.
func (b *Bundle) Format() string { return b.data.Format }

// Commit returns the commit of the bundle's content, or "" if it is not in a Git repository.
func (b *Bundle) Commit() string { return b.data.Commit }

// Templated reports whether the content is a template. Rendering fills it with the values of the declaration.
func (b *Bundle) Templated() bool { return b.data.Templated }

// Package returns the package that the bundle belongs to.
func (b *Bundle) Package() *Package { return b.pkg }

// Pos returns the position of the bundle's olm.bundle in the catalog.
func (b *Bundle) Pos() diag.Pos { return b.data.Pos }

// Span returns the byte range in the file of Pos that contains the bundle, if the catalog embeds the bundle's
// manifests. If the range is unknown, it returns the zero Span.
func (b *Bundle) Span() Span { return b.data.Span }

// Entries returns the bundle's channel entries in the order of Package.Channels. There is at least
// one.
func (b *Bundle) Entries() []*Entry { return slices.Clone(b.entries) }

// Properties returns the properties in file order. Their values are shared and
// must not be modified.
func (b *Bundle) Properties() []Property { return slices.Clone(b.data.Properties) }

// Provides returns the APIs that the bundle provides according to its olm.gvk properties, sorted
// and without duplicates.
func (b *Bundle) Provides() []GVK { return slices.Clone(b.facts.Provides) }

// Labels returns the values of the bundle's olm.label properties, sorted and without duplicates.
func (b *Bundle) Labels() []string { return slices.Clone(b.facts.Labels) }

// Requires returns the requirements of the bundle in the order of its
// properties. It is nil for an unusable bundle.
func (b *Bundle) Requires() []Requirement { return slices.Clone(b.facts.Requires) }

// Unusable returns the reason why resolution ignores the bundle: an invalid requirement or an
// invalid name. It returns "" for a usable bundle. See rule 4 of package resolve.
func (b *Bundle) Unusable() string { return b.facts.Unusable }

// RelatedImages returns the images that the bundle needs at run time, in file
// order.
func (b *Bundle) RelatedImages() []RelatedImage { return slices.Clone(b.data.RelatedImages) }

// Metadata returns the fields of the bundle's ClusterServiceVersion that the catalog contains. Its
// slices and maps are shared and must not be modified.
func (b *Bundle) Metadata() Metadata { return b.data.Metadata }

// Deprecated reports whether the bundle has an olm.deprecated property, which forbids new
// installations.
func (b *Bundle) Deprecated() bool { return b.facts.Deprecated }

// Deprecation returns the bundle's message in olm.deprecations, or "" if there is none. Such a
// bundle can still be installed, with a warning.
func (b *Bundle) Deprecation() string { return b.message }

// MaxOpenShiftVersion returns the value of olm.maxOpenShiftVersion as written, such as "4.9", or
// "" if there is none.
func (b *Bundle) MaxOpenShiftVersion() string { return b.facts.MaxVersion }

// Annotations of a ClusterServiceVersion that suggest an install namespace. The first contains the name, the
// second a JSON template of the Namespace.
const (
	SuggestedNamespace         = "operatorframework.io/suggested-namespace"
	SuggestedNamespaceTemplate = "operatorframework.io/suggested-namespace-template"
)

// ClusterMonitoring is the annotation of a ClusterServiceVersion that requests OpenShift's monitoring of the
// install namespace. During an installation, OpenShift's console offers to set ClusterMonitoringLabel.
const (
	ClusterMonitoring      = "operatorframework.io/cluster-monitoring"
	ClusterMonitoringLabel = "openshift.io/cluster-monitoring"
)

// ManagedNamespace returns the default install namespace of a ClusterExtension. It is the name in
// the Namespace template, or else the suggested name, or else the package name with the suffix
// "-system" (operator-controller, docs/draft/concepts/managed-namespaces.md). As in
// operator-controller, an invalid template or namespace name is an error.
func ManagedNamespace(pkg string, annotations map[string]string) (string, error) {
	ns, by := pkg+"-system", "its package"
	if name := annotations[SuggestedNamespace]; name != "" {
		ns, by = name, SuggestedNamespace
	}
	if text := annotations[SuggestedNamespaceTemplate]; text != "" {
		var template struct {
			Metadata struct{ Name string }
		}
		if err := json.Unmarshal([]byte(text), &template); err != nil {
			return "", fmt.Errorf("annotation %s is not a Namespace in JSON: %w", SuggestedNamespaceTemplate, err)
		}
		if template.Metadata.Name != "" {
			ns, by = template.Metadata.Name, SuggestedNamespaceTemplate
		}
	}
	if len(validation.IsDNS1123Label(ns)) > 0 {
		return "", fmt.Errorf("%q, from %s, is not a valid namespace name", ns, by)
	}
	return ns, nil
}
