// Package health evaluates the health of the objects in a cluster and compares them with the lock.
//
// The package is a pure function of its arguments: objects are maps, and the time is an argument.
// It does not access clusters or the clock. It does not detect changes of single fields, because
// the GitOps tool does.
//
// The API is not stable: exported names may change in any release.
//
// Start from [Compute], which evaluates one object; [Judge], which evaluates an installation; and
// [Summarize], which compares installations with a lock.
package health
