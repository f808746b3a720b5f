// Package reporter implements the reporter, which runs in a cluster: it watches
// Installations and their expected objects, judges them and writes their status.
// The caller provides the function that judges.
//
// # Reads
//
// The reporter runs one watch for each expected kind, limited to objects with
// the label quayside.dev/package. The watch starts with the first Installation
// that expects the kind and ends with the last. If only names and labels of a
// kind are judged, only metadata is requested; unused fields of other kinds are
// dropped before objects are cached. When a workload with expected images
// changes, its pods are listed by its selector. Without changes, the only
// requests are those that keep the watches open.
//
// A kind that is forbidden or missing does not affect others: its objects count
// as unreadable, and its watch is retried with increasing delays. While the API
// server is unreachable, the latest status is kept.
//
// # Writes
//
// The reporter writes the status of Installations, by server-side apply with the
// field manager "quayside-reporter" and only if it has changed; Events when a
// condition changes; and, with leader election, its Lease. It judges an
// Installation only after all expected objects have been read, so a restart
// does not change the status.
//
// # Metrics
//
// The reporter exports the metrics of controller-runtime and, for each existing
// Installation:
//
//	quayside_installation_ready{namespace,package,version}         1 if Ready is True, else 0
//	quayside_installation_objects{namespace,package,version,status} number of objects in that state
//	quayside_installation_upgradeable{namespace,package,version}   1 or 0; absent if not reported
//	quayside_installation_images_match{namespace,package,version}  1 or 0; absent if unknown
//	quayside_reporter_kinds{state}                                 number of kinds by state: Watched, Starting, Forbidden, NoKind, Error
//	quayside_reporter_build_info{version,goversion}                1
//
// Start from [Run] and [Config].
package reporter
