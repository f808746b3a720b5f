// Package v1alpha1 defines the Installation: the desired state of a pin of the
// lock in a cluster, and its state as observed by the reporter.
//
// quayside renders one Installation for each pin and writes its spec; the
// reporter writes only its status. The package holds the types, their CRD, and
// the observations that are passed from cluster readers to health checks. It
// neither reads nor judges.
//
// The package is public: docs/contributing/library.md has the promise.
//
// Start from [Installation], [Observed] and [CRD].
package v1alpha1
