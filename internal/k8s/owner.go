package k8s

import "strings"

// Labels of rendered objects that identify the operator that they belong to. Deployments and CRDs
// also have an annotation with the exact version.
const (
	LabelPackage   = "quayside.dev/package"
	LabelNamespace = "quayside.dev/install-namespace"
	LabelVersion   = "quayside.dev/version"
	LabelManagedBy = "app.kubernetes.io/managed-by"
)

// Domain is the domain of the labels and annotations that quayside writes.
const Domain = "quayside.dev"

// IsOwnKey reports whether a label or annotation key has the domain of quayside, or a subdomain.
func IsOwnKey(key string) bool {
	domain, _, ok := strings.Cut(strings.ToLower(key), "/")
	return ok && (domain == Domain || strings.HasSuffix(domain, "."+Domain))
}

// Manager is the default value of [LabelManagedBy].
const Manager = "quayside"

// LabelValue converts s, such as a version, to a valid value of a label.
func LabelValue(s string) string {
	s = strings.ReplaceAll(s, "+", "_")
	if len(s) > MaxLabel {
		s = s[:MaxLabel]
	}
	return strings.TrimRight(s, "-._")
}
