// Package catalog holds the nouns of the field: package, channel, entry,
// bundle, and the immutable [Catalog] and [Index] that resolution reads.
//
// Readers of every format produce a [Content]; [New] checks it as strictly as
// `opm validate` does and reports every fault at once. The package refuses to
// read files, YAML or images, and to choose between bundles.
//
// It promises nothing yet: its exported names may change in any release.
//
// Start from [Content], [New] and [Index]. Slices that accessors return belong
// to the caller unless said otherwise.
package catalog
