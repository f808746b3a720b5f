// Package model holds the nouns of catalogs: package, channel, entry, bundle, and the
// immutable [Catalog] and [Index] that resolution uses. It defines the meaning of OLM's
// properties, versions and ranges, and of lifecycle documents (schema
// io.openshift.operators.lifecycles.v1alpha1; openshift/enhancements,
// enhancements/olm/lifecycle-and-compatibility.md).
//
// Parsers of every format produce a [Content]; [New] validates it as strictly as
// `opm validate` does and reports every fault at once. The package does not read files,
// YAML or images, and does not choose between bundles. It has no clock: a day is an
// argument such as "2027-01-31". Unknown support is a nil [SupportedVersion], which
// differs from support that has ended.
//
// Start from [Content], [New] and [Index]; for properties from [Property], [Facts] and
// [Requirement]; for support from [FindSupport]. Slices that accessors return belong to
// the caller unless stated otherwise.
package model
