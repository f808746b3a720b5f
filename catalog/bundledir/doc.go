// Package bundledir builds a catalog from a directory of bundle directories. The catalog is the
// same as the one that opm builds from the images of these bundles.
//
// A directory with metadata/annotations.yaml is a bundle. Bundles may be at any depth. Package names,
// versions and upgrade edges come from the ClusterServiceVersions, channels from the annotations. If replaced
// bundles are missing, the upgrade edges of a channel may not form one graph. Then the package links the
// bundles of the channel in version order and adds a warning.
//
// Start from [LoadFS], [Find] and [Dirs].
//
// There is no compatibility promise yet: exported names may change in any release.
package bundledir
