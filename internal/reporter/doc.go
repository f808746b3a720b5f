// Package reporter runs the reporter in a cluster: it watches Installations and
// their expected objects, judges them and writes their status. The judging
// function is passed in.
//
// # Reads
//
// There is one watch for each expected kind, limited to objects with the label
// quayside.dev/package. It starts with the first Installation that names the
// kind and ends with the last. If only names and labels of a kind are judged,
// only metadata is requested; fields of other kinds that are not judged are
// dropped before objects are cached. Pods are listed by the selectors of the
// workloads with expected images, when such a workload has changed. At rest, the
// only requests are those that keep the watches open.
//
// A kind that is forbidden or missing does not affect others: its objects are
// judged as unreadable, and it is retried with growing delays. While the API
// server is unreachable, the latest status remains.
//
// # Writes
//
// The reporter writes the status of Installations, by server-side apply as
// "quayside-reporter" and only if it has changed; Events when a condition
// changes; and, with leader election, its Lease. An Installation is not judged
// before all its expected objects have been read, so a restart changes nothing.
//
// # Metrics
//
// In addition to those of controller-runtime, for each existing Installation:
//
//	quayside_installation_ready{namespace,package,version}         1 if Ready is True, else 0
//	quayside_installation_objects{namespace,package,version,status} number of objects in that state
//	quayside_installation_upgradeable{namespace,package,version}   1 or 0; absent if not reported
//	quayside_installation_images_match{namespace,package,version}  1 or 0; absent if unknown
//	quayside_reporter_kinds{state}                                 number of kinds by state: Watched, Starting, Forbidden, NoKind, Error
//	quayside_reporter_build_info{version,goversion}                1
//
// Start from [Run] and [Options].
package reporter
