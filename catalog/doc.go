// Package catalog holds the types of operator catalogs: package, channel, entry and bundle, and the
// immutable [Catalog] and [Index] that resolution uses. It also interprets OLM's properties,
// versions and version ranges, and lifecycle documents, which declare support periods (schema
// io.openshift.operators.lifecycles.v1alpha1; openshift/enhancements,
// enhancements/olm/lifecycle-and-compatibility.md).
//
// The decoder of each catalog format returns a [Content]. [New] validates it as strictly as `opm
// validate` and reports all faults at once. The package does not read files, YAML or images, does
// not choose between bundles, and does not read the clock: days are arguments such as "2027-01-31".
// A nil [SupportedVersion] means that support is unknown, not that it has ended.
//
// Start from [Content], [New] and [Index]; for properties from [Property], [Facts] and
// [Requirement]; for support periods from [FindSupport]. Callers may modify the slices that
// accessors return unless their documentation forbids it.
package catalog
