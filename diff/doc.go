// Package diff says what an upgrade really changes.
//
// It compares two rendered states of a workspace, object by object, and
// reports findings by operator and by risk: custom resource definitions that
// break what is stored, custom resources that the new definition would reject,
// permissions gained, images, webhooks, API versions that the target no longer
// serves, Pod Security, deletions that lose data, fields that the API server
// refuses to change, and upgrade steps passed over. The reports are text,
// Markdown, JSON, SARIF and HTML; [Judge] holds a report against a policy.
//
// The package is a function of its arguments: it reads no file, clock,
// network, cluster or Git repository. A state compared with itself gives an
// empty report.
//
// It promises nothing yet: its exported names may change in any release.
//
// Start from [State], [Compare] and [Report].
package diff
