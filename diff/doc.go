// Package diff compares two rendered states of a workspace and reports the risks of the changes.
//
// It compares them object by object and reports findings by operator and severity. Examples are
// CRDs that break stored objects, custom resources that the new CRD rejects, added permissions,
// images, webhooks, API versions that the target no longer serves, Pod Security, deletions that
// lose data, changes of immutable fields, and skipped upgrade steps. Report formats are text,
// Markdown, JSON, SARIF and HTML. [Judge] applies a policy to a report.
//
// The package is a pure function of its arguments: it does not use files, the clock, the network,
// clusters or Git. A comparison of a state with itself results in an empty report.
//
// The API is not stable: exported names may change in any release.
//
// Start from [State], [Compare] and [Report].
package diff
