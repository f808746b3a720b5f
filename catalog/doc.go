// Package catalog holds the types of operator catalogs: package, channel, entry and bundle, and the immutable
// [Catalog] and [Index] that resolution uses. It also interprets OLM's properties, versions and version
// ranges. It interprets lifecycle documents, which declare support periods (schema
// io.openshift.operators.lifecycles.v1alpha1, see openshift/enhancements,
// enhancements/olm/lifecycle-and-compatibility.md).
//
// The decoder of each catalog format returns a [Content]. [New] validates it as strictly as `opm validate`
// and reports all faults at once. The package does not read files, YAML or images. It does not choose between
// bundles. It does not read the clock: days are arguments such as "2027-01-31". A nil [SupportedVersion]
// means that support is unknown. It does not mean that support has ended.
//
// Start from [Content], [New] and [Index]. For properties, start from [Property], [Facts] and [Requirement].
// For support periods, start from [FindSupport]. Callers may modify the slices that accessors return unless
// their documentation forbids it.
package catalog
