// Package reporter implements the reporter, which runs in a cluster. It watches Installations and
// the objects that they list, determines the status of each Installation, and writes it. The caller
// provides the function that determines the status.
//
// # Reads
//
// The reporter runs one watch for each listed kind, limited to objects with the label quayside.dev/package. The
// watch starts with the first Installation that lists the kind and ends when no Installation lists it. For
// kinds without health, the reporter requests only metadata. For other kinds, it removes unused fields before
// it caches the objects. When a workload with expected images changes, it lists the pods of the workload.
// Without changes, it only keeps the watches open.
//
// A kind that is forbidden or missing does not affect other kinds. Its objects count as unreadable, and the
// reporter retries the watch with increasing delays. While the API server is unreachable, the latest status
// remains.
//
// # Writes
//
// The reporter writes the status of Installations by server-side apply, with the field manager
// "quayside-reporter", and only if it has changed. It writes Events when a condition changes and,
// with leader election, its Lease. It determines a status only after it has read all listed
// objects, so a restart does not change the status.
//
// # Metrics
//
// The reporter exports the metrics of controller-runtime and, for each existing Installation:
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
