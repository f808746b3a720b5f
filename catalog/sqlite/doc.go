// Package sqlite reads catalogs in the format before file-based catalogs: an SQLite database, as
// opm writes it into index images.
//
// All versions of the schema are supported, including the first one, with separate tables for edges
// and APIs. The format has no package descriptions, no deprecation messages and no names of related
// images. Databases are opened read-only, triggers and views are not used, and resources are
// limited.
//
// Start from [LoadFS] and [Objects].
//
// There is no compatibility promise yet: exported names may change in any release.
package sqlite
