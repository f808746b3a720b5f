// Package sqlite reads catalogs in the format before file-based ones: an
// SQLite database, as written by opm into index images.
//
// It supports all versions of the schema, including the first one with
// separate tables of edges and APIs. The format has no package descriptions,
// deprecation messages and names of related images. Databases are opened
// read-only, their triggers and views are not used, and resources are
// limited.
//
// Start from [LoadFS] and [Objects].
package sqlite
