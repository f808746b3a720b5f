// Package bundledir builds a catalog from a directory of bundle directories. The result is the
// same as that of opm for the images of these bundles.
//
// A directory with metadata/annotations.yaml is a bundle; bundles may be nested at any depth.
// Names, versions and upgrade edges come from the ClusterServiceVersions, channels from the
// annotations. If replaced bundles are missing and the others do not form a single upgrade
// graph, the channel is sorted by version instead, with a warning.
//
// Start from [LoadFS], [Find] and [Dirs].
//
// There is no compatibility promise yet: exported names may change in any release.
package bundledir
