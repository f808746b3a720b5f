// Package charts reads catalogs of Helm charts: the index of a chart repository, and directories of
// charts. A chart is a package, and each of its versions a bundle of the format [Format].
//
// Charts have no upgrade graph. The package adds edges by version order: to each newer patch of the
// same minor version, and to the newest patch of the next minor version.
//
// Start from [ReadIndex] and [ReadDir].
//
// There is no compatibility promise yet: exported names may change in any release.
package charts

// Format is the format of the bundles.
const Format = "helm"
