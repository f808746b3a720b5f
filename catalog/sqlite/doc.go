// Package sqlite reads catalogs in the form before file-based ones: an SQLite
// database, as opm wrote it into index images.
//
// Every state of its schema is read, from the first, in which a bundle's edges
// and APIs stand in tables of their own, to the last. What the form cannot
// express (descriptions of packages, messages of deprecations, names of related
// images) is not there. A database is never written to, its triggers and views
// are not used, and what it can make the reader do is bounded.
//
// Start from [LoadFS] and [Objects].
package sqlite
