// Package catalog holds the types of catalogs: package, channel, entry, bundle, and the immutable
// [Catalog] and [Index] for resolution. It defines the meaning of OLM's properties, versions and
// ranges, and of lifecycle documents (schema io.openshift.operators.lifecycles.v1alpha1;
// openshift/enhancements, enhancements/olm/lifecycle-and-compatibility.md).
//
// Parsers of every catalog format produce a [Content]. [New] validates it as strictly as `opm
// validate` and reports all faults at once. The package does not read files, YAML or images, and
// does not choose between bundles. It does not read the clock: days are arguments such as
// "2027-01-31". A nil [SupportedVersion] means that support is unknown, not that it has ended.
//
// Start from [Content], [New] and [Index]; for properties from [Property], [Facts] and
// [Requirement]; for support from [FindSupport]. Callers may modify the slices that accessors
// return unless stated otherwise.
package catalog
