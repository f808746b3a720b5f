// Package charts reads catalogs without an upgrade graph. A catalog of Helm charts is the index of a chart
// repository, the tags of a chart in a registry, or a directory of charts. A catalog of manifests is a
// directory, a list of tags or a list of releases. A chart is a package, and each of its versions a bundle.
//
// Authors publish no upgrade graph. The package adds edges by version order: to each newer patch of the same
// minor version, and to the newest patch of the next minor version.
//
// Start from [ReadIndex], [ReadTags], [ReadDir] and [ReadReleases].
//
// There is no compatibility promise yet: exported names may change in any release.
package charts

// Helm is the format of charts.
const Helm = "helm"
