// Package fbc decodes and encodes file-based catalogs: JSON or YAML objects of the schemas
// olm.package, olm.channel, olm.bundle and olm.deprecations, in files with any names. It also
// supports the third-party schema of lifecycles. Lifecycles do not affect installation: their
// faults are stored in the document, and the catalog remains valid.
//
// The decoder needs one pass and keeps the data for resolution and search. It discards embedded
// manifests and ClusterServiceVersions after extracting their metadata; [Objects] loads them
// again. The rules of upgrade graphs are in catalog.New.
//
// Start from [LoadFS], [Objects] and [Encode].
//
// There is no compatibility promise yet: exported names may change in any release.
package fbc
