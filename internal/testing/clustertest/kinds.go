package clustertest

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// Kind describes a kind that the server serves.
type Kind struct {
	APIVersion, Kind, Plural string
	Namespaced               bool
}

// builtinKinds returns the built-in kinds that operators use.
func builtinKinds() []Kind {
	return []Kind{
		{"v1", "ConfigMap", "configmaps", true},
		{"v1", "Namespace", "namespaces", false},
		{"v1", "Pod", "pods", true},
		{"v1", "Secret", "secrets", true},
		{"v1", "Service", "services", true},
		{"v1", "ServiceAccount", "serviceaccounts", true},
		{"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", false},
		{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false},
		{"apiregistration.k8s.io/v1", "APIService", "apiservices", false},
		{"apps/v1", "Deployment", "deployments", true},
		{"policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", true},
		{"rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false},
		{"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", false},
		{"rbac.authorization.k8s.io/v1", "Role", "roles", true},
		{"rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", true},
		{"scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", false},
		{"storagemigration.k8s.io/v1", "StorageVersionMigration", "storageversionmigrations", false},
	}
}

// kinds returns the kinds of one group and version: built-in kinds, and kinds of CustomResourceDefinitions.
func (s *Server) kinds(apiVersion string) []Kind {
	var out []Kind
	for _, k := range builtinKinds() {
		if k.APIVersion == apiVersion {
			out = append(out, k)
		}
	}
	for _, o := range s.objects {
		if o["kind"] != "CustomResourceDefinition" {
			continue
		}
		for _, v := range k8s.Items(o, "spec", "versions") {
			if k8s.Text(o, "spec", "group")+"/"+k8s.Text(v, "name") == apiVersion {
				out = append(out, Kind{apiVersion, k8s.Text(o, "spec", "names", "kind"), k8s.Text(o, "spec", "names", "plural"), k8s.Text(o, "spec", "scope") == "Namespaced"})
			}
		}
	}
	slices.SortFunc(out, func(a, b Kind) int { return strings.Compare(a.Plural, b.Plural) })
	return out
}
