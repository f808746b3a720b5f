// Package v1alpha1 is the Installation: what a pin of the lock should be in a
// cluster, and what the reporter found there.
//
// quayside renders one Installation for each pin and writes its spec; the
// reporter writes only its status. The package holds the types, their CRD and
// what passes between those who read a cluster and those who judge it. It
// judges nothing and reads nothing.
//
// The package is public: docs/library.md has the promise.
//
// Start from [Installation], [Observed] and [CRD].
package v1alpha1
