// Package v1alpha1 defines the Installation: the desired state of a pin of the lock in a
// cluster, and its state as observed by the reporter.
//
// quayside renders one Installation for each pin and writes its spec; the reporter writes only
// its status. The package contains the types, their CRD, and the observations that cluster
// readers pass to health checks. It does not access clusters or check health.
//
// The package is public: docs/library.md describes its stability.
//
// Start from [Installation], [Observed] and [CRD].
package v1alpha1
