package catalog

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Annotations of a ClusterServiceVersion that suggest an install namespace: by its name, or by a
// template of the Namespace in JSON.
const (
	SuggestedNamespace         = "operatorframework.io/suggested-namespace"
	SuggestedNamespaceTemplate = "operatorframework.io/suggested-namespace-template"
)

// ClusterMonitoring is the annotation of a ClusterServiceVersion that requests OpenShift's monitoring of the
// install namespace. During an installation, OpenShift's console offers to set the label.
const (
	ClusterMonitoring      = "operatorframework.io/cluster-monitoring"
	ClusterMonitoringLabel = "openshift.io/cluster-monitoring"
)

// ManagedNamespace returns the default install namespace of a ClusterExtension. It is the name in
// the Namespace template, or else the suggested name, or else the package name with the suffix
// "-system" (operator-controller, docs/draft/concepts/managed-namespaces.md). As in
// operator-controller, an invalid template or namespace name is an error.
func ManagedNamespace(pkg string, annotations map[string]string) (string, error) {
	ns, by := pkg+"-system", "its package"
	if name := annotations[SuggestedNamespace]; name != "" {
		ns, by = name, SuggestedNamespace
	}
	if text := annotations[SuggestedNamespaceTemplate]; text != "" {
		var template struct {
			Metadata struct{ Name string }
		}
		if err := json.Unmarshal([]byte(text), &template); err != nil {
			return "", fmt.Errorf("annotation %s is not a Namespace in JSON: %w", SuggestedNamespaceTemplate, err)
		}
		if template.Metadata.Name != "" {
			ns, by = template.Metadata.Name, SuggestedNamespaceTemplate
		}
	}
	if len(validation.IsDNS1123Label(ns)) > 0 {
		return "", fmt.Errorf("%q, from %s, is not a valid namespace name", ns, by)
	}
	return ns, nil
}
