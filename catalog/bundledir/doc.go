// Package bundledir builds a catalog from a directory of bundle directories,
// with the same result as opm for the images of these bundles.
//
// A directory with metadata/annotations.yaml is a bundle; bundles may be
// nested at any depth. Names, versions and edges come from the
// ClusterServiceVersions, channels from the annotations. If replaced bundles
// are missing and the rest is not a single upgrade graph, the channel is
// sorted by version instead, with a warning.
//
// Start from [LoadFS], [Find] and [Dirs].
package bundledir
