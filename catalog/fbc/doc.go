// Package fbc decodes and encodes file-based catalogs: JSON or YAML objects of the schemas olm.package,
// olm.channel, olm.bundle and olm.deprecations, in files with any names. It also decodes lifecycle documents,
// a third-party schema. OLM ignores lifecycle documents. So a fault in a lifecycle document is recorded, but
// does not make the catalog invalid.
//
// The decoder reads each file once and keeps only the data for resolution and search. From embedded
// manifests it keeps the metadata of the ClusterServiceVersion; [Objects] reads the manifests
// again. The upgrade graph is validated by catalog.New.
//
// Start from [LoadFS], [Objects] and [Encode].
//
// There is no compatibility promise yet: exported names may change in any release.
package fbc
