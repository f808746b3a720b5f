package catalog

import (
	"slices"

	"github.com/quayside/quayside/internal/diag"
)

// Bundle is one version of a package.
type Bundle struct {
	pkg       *Package
	data      *BundleData
	version   Version
	versioned bool // whether version is valid
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

// VersionText returns the version for users, followed by the release if there is one.
func (b *Bundle) VersionText() string { return VersionText(b.version.String(), b.Release()) }

// CompareReleases orders the releases of two bundles of one version. Bundles without an explicit
// release come first.
func (b *Bundle) CompareReleases(other *Bundle) int { return b.release.Compare(other.release) }

// CompareEffectiveReleases orders two bundles of one version like OLM v1: by the explicit release, or
// else by the build metadata of the version.
func (b *Bundle) CompareEffectiveReleases(other *Bundle) int {
	return b.effectiveRelease().Compare(other.effectiveRelease())
}

// effectiveRelease returns the explicit release, or else the build metadata of the version as a release.
func (b *Bundle) effectiveRelease() Release {
	if b.facts.Release == nil {
		return LegacyRelease(b.version)
	}
	return b.release
}

// Image returns the reference of the bundle's image, or "" if the catalog embeds the manifests.
func (b *Bundle) Image() string { return b.data.Image }

// Package returns the package that the bundle belongs to.
func (b *Bundle) Package() *Package { return b.pkg }

// Pos returns the position of the bundle's declaration.
func (b *Bundle) Pos() diag.Pos { return b.data.Pos }

// Span returns the byte range of a bundle with embedded manifests in the file of Pos, or the zero
// Span if it is unknown.
func (b *Bundle) Span() Span { return b.data.Span }

// Entries returns the bundle's channel entries in the order of Package.Channels. There is at least
// one.
func (b *Bundle) Entries() []*Entry { return slices.Clone(b.entries) }

// Properties returns the properties in file order. Their values are shared and
// must not be modified.
func (b *Bundle) Properties() []Property { return slices.Clone(b.data.Properties) }

// Provides returns the APIs of the olm.gvk properties, sorted, each once.
func (b *Bundle) Provides() []GVK { return slices.Clone(b.facts.Provides) }

// Labels returns the labels of the olm.label properties, sorted, each once.
func (b *Bundle) Labels() []string { return slices.Clone(b.facts.Labels) }

// Requires returns the requirements of the bundle in the order of its
// properties. It is nil for an unusable bundle.
func (b *Bundle) Requires() []Requirement { return slices.Clone(b.facts.Requires) }

// Unusable returns the fault in the bundle's requirements or name, or "". An
// unusable bundle is never a candidate (rule 4 of package resolve).
func (b *Bundle) Unusable() string { return b.facts.Unusable }

// RelatedImages returns the images that the bundle needs at run time, in file
// order.
func (b *Bundle) RelatedImages() []RelatedImage { return slices.Clone(b.data.RelatedImages) }

// Metadata returns the metadata of the bundle's ClusterServiceVersion in the
// catalog. Its slices and maps are shared and must not be modified.
func (b *Bundle) Metadata() Metadata { return b.data.Metadata }

// Deprecated reports whether the bundle has an olm.deprecated property. New installations of it
// are not allowed.
func (b *Bundle) Deprecated() bool { return b.facts.Deprecated }

// Deprecation returns the message of olm.deprecations for the bundle, or "". It is only a warning.
func (b *Bundle) Deprecation() string { return b.message }

// MaxOpenShiftVersion returns the value of olm.maxOpenShiftVersion as written, such as "4.9", or
// "" if there is none.
func (b *Bundle) MaxOpenShiftVersion() string { return b.facts.MaxVersion }
