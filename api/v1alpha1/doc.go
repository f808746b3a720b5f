// Package v1alpha1 defines the Installation resource. The spec is the desired state of one pin, an operator
// version recorded in quayside.lock. The status is the state of this operator in the cluster, as observed by
// the reporter.
//
// quayside renders one Installation for each pin, with the spec. The reporter writes only the status. The
// package contains the types, their CRD, and [Observed], the input of health checks. It does not access
// clusters and does not assess health.
//
// The package is public: docs/library.md describes its stability.
//
// Start from [Installation], [Observed] and [CRD].
package v1alpha1
