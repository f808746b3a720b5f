// Package diff compares two rendered states of a workspace and reports the risks of the change.
//
// It compares the states object by object. A finding has a rule, a severity and an operator.
// Examples: a CRD that breaks stored objects, a custom resource that the new CRD rejects, added
// permissions, changed images, added webhooks, an API version that the target Kubernetes no longer
// serves, a lower Pod Security level, a deletion that loses data, a changed immutable field, a
// skipped upgrade step. Report formats are text, Markdown, JSON, SARIF and HTML. [Judge] applies a
// policy to a report.
//
// The results depend only on the arguments. The package does not use files, the clock, the network, clusters
// or Git. Comparing a state with itself gives an empty report.
//
// The API is not stable: exported names may change in any release.
//
// Start from [State], [Compare] and [Report].
package diff
