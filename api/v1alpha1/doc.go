// Package v1alpha1 defines the Installation resource. Its spec is the desired state of one pin, an
// operator version recorded in quayside.lock. Its status is the state of that operator in the
// cluster, as observed by the reporter.
//
// quayside renders one Installation for each pin and writes its spec. The reporter writes only its
// status. The package contains the types, their CRD, and [Observed], the input of health checks. It
// does not access clusters and does not assess health.
//
// The package is public: docs/library.md describes its stability.
//
// Start from [Installation], [Observed] and [CRD].
package v1alpha1
