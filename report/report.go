// Package report judges what is in a cluster by what the lock rendered.
//
// It is pure: objects come in as maps, the time as an argument, and the same
// input gives the same result. It reads no cluster and never asks the clock;
// who does passes what was read to [Judge]. Drift of single fields is not its
// business, for the GitOps tool compares those.
//
// It promises nothing yet: its exported names may change in any release.
//
// Start from [Compute], which judges one object, [Judge], which judges an
// installation, and [Summarize], which holds a lock against what was judged.
package report
