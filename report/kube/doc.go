// Package kube is the reporter at work in a cluster: it watches Installations
// and what they expect, has each judged, and writes the verdict into its
// status. Of how something is judged it knows nothing; that is a function it
// is given.
//
// # What it reads
//
// For every kind that some Installation expects there is one watch, over the
// objects that bear the label quayside.dev/package. It starts with the first
// Installation that names the kind and ends with the last. Where only names and
// labels are judged, only metadata are asked for; of the rest, what nobody
// judges is dropped before it is kept. Pods are listed, by the selectors of the
// workloads whose images are judged, when such a workload has changed. At rest
// nothing is asked for but what keeps the watches open.
//
// A kind that may not be read, or is not there, takes nothing from the others:
// its objects are judged as what could not be read, and it is asked for again
// after growing waits. An API server that cannot be reached is no verdict; what
// was said last stays said.
//
// # What it writes
//
// The status of Installations, by server-side apply as "quayside-reporter", and
// only when it differs from what is there; Events when a condition turns; and,
// with leader election, its Lease. An Installation is not judged before
// everything that it expects has been read, so that a restart changes nothing.
//
// # Metrics
//
// Beside those of controller-runtime, for each Installation that is there:
//
//	quayside_installation_ready{namespace,package,version}         1, or 0 where Ready is not True
//	quayside_installation_objects{namespace,package,version,status} how many objects are in that state
//	quayside_installation_upgradeable{namespace,package,version}   1 or 0; absent where the operator says nothing
//	quayside_installation_images_match{namespace,package,version}  1 or 0; absent where it is not known
//	quayside_reporter_kinds{state}                                 kinds watched, or why not: Watched, Starting, Forbidden, NoKind, Error
//	quayside_reporter_build_info{version,goversion}                1
//
// Start from [Run] and [Options].
package kube
