// Package fbc reads and writes file-based catalogs: JSON or YAML objects of the
// schemas olm.package, olm.channel, olm.bundle and olm.deprecations, in files of
// any name and layout. Of the schemas that others have added it reads that of
// lifecycles, which says nothing about what can be installed: what is wrong with
// such a document is kept with it, and the catalog stays valid.
//
// It decodes in one pass and keeps what resolution and search need. Manifests
// and ClusterServiceVersions that a catalog embeds are looked at and let go;
// [Objects] fetches them again. It decides nothing about upgrade graphs: that
// is catalog.New's.
//
// Start from [LoadFS], [Objects] and [Encode].
package fbc
