// Package fbc decodes and encodes file-based catalogs: JSON or YAML objects
// of the schemas olm.package, olm.channel, olm.bundle and olm.deprecations,
// in files of any name and layout. It also supports the third-party schema of
// lifecycles. Lifecycles do not affect installation: their faults are kept in
// the document, and the catalog stays valid.
//
// The decoder takes one pass and keeps the data that resolution and search
// need. It discards embedded manifests and ClusterServiceVersions after
// extracting their metadata; [Objects] loads them again. The rules of upgrade
// graphs are in model.New.
//
// Start from [LoadFS], [Objects] and [Encode].
package fbc
