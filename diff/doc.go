// Package diff reports the changes that an upgrade makes.
//
// It compares two rendered states of a workspace, object by object, and reports findings
// by operator and by risk: CRDs that break stored objects, custom resources that the new
// CRD would reject, permissions gained, images, webhooks, API versions that the target no
// longer serves, Pod Security, deletions that lose data, fields that the API server
// refuses to change, and skipped upgrade steps. The reports are text, Markdown, JSON,
// SARIF and HTML; [Judge] evaluates a policy on a report.
//
// The package is a function of its arguments: it reads no file, clock, network, cluster or
// Git repository. A state compared with itself gives an empty report.
//
// The API is not stable yet: exported names may change in any release.
//
// Start from [State], [Compare] and [Report].
package diff
