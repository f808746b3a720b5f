// Package health evaluates the health of the objects in a cluster and compares them with the lock.
//
// The functions depend only on their arguments: objects are maps, and the time is an argument. The package
// does not access clusters or the clock. It does not detect changes of single fields, because the GitOps tool
// detects them.
//
// The API is not stable: exported names may change in any release.
//
// Start from [Compute] to evaluate one object, from [Judge] to evaluate an installation, and from [Summarize]
// to compare installations with a lock.
package health
