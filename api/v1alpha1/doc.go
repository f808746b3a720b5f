// Package v1alpha1 defines the resource Installation. An Installation stands for one pin: an operator version
// that quayside.lock records. The spec is the desired state of the operator in the cluster. The status is the
// state that the reporter observes.
//
// quayside renders one Installation for each pin, and sets the spec. The reporter writes only the status. The
// package contains the types, the CRD, and [Observed], the input of health checks. It does not access clusters
// and does not assess health.
//
// The package is public: docs/library.md describes its stability.
//
// Start from [Installation], [Observed] and [CRD].
package v1alpha1
