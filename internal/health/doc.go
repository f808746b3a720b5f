// Package health judges the objects of a cluster by the rendered lock.
//
// It is pure: objects are passed in as maps and the time as an argument, and
// equal input gives equal results. It reads neither clusters nor the clock.
// Drift of single fields is out of scope, because the GitOps tool detects it.
//
// It promises nothing yet: its exported names may change in any release.
//
// Start from [Compute], which judges one object, [Judge], which judges an
// installation, and [Summarize], which compares a lock with judged
// installations.
package health
