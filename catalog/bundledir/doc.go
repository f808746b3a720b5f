// Package bundledir makes a catalog of a directory of bundle directories, as
// opm would of the bundles' images.
//
// A directory is a bundle when it has metadata/annotations.yaml; bundles may lie
// at any depth. Names, versions and edges come from the ClusterServiceVersions,
// channels from the annotations. Where the bundles at hand do not make one
// upgrade graph of a channel, because some that they replace are absent, the
// channel is put in the order of versions, with a warning.
//
// Start from [LoadFS], [Find] and [Dirs].
package bundledir
