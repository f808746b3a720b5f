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
