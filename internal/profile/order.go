package profile

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// Place is the position of an operator's object in the order of application. The zero value is
// the place of an object without an operator.
type Place struct {
	Alone bool        // the object is of a piece, and pieces do not wait for others
	First bool        // the operator issues certificates: others need it, and it waits for none
	Level int         // number of operators that must come before this one, one after the other
	Whose APIProvider // provider of the API, if the object is a custom resource

	Stopped bool // the object is of a replaced operator, and must stop before the successor starts
	Moving  bool // the object is about to move to a later place, and must not be deleted meanwhile
}

// Earlier returns the place of an object that is in both places: the earlier one.
func (p Place) Earlier(other Place) Place {
	return Place{First: p.First || other.First, Level: min(p.Level, other.Level), Whose: max(p.Whose, other.Whose)}
}

// APIProvider is the provider of a custom resource's API, if the tree contains it.
type APIProvider int

// The providers: the operator itself; none in the tree, so the API exists already; an operator
// that comes earlier; an operator that does not come earlier.
const (
	Own APIProvider = iota
	Nobodys
	Required
	Foreign
)

// isCustomResource reports whether o is a custom resource of an unknown API.
func isCustomResource(o k8s.Object) bool {
	return !BuiltinGroup(o.Group()) && Phase(o) > workloadPhase
}

// syncPhases returns the kinds that can be applied together, in order; each line needs the
// lines above. Other kinds are in the phase of Deployments, and custom resources at the end.
func syncPhases() [][]string {
	return [][]string{
		{"Namespace"},
		{"NetworkPolicy", "PodDisruptionBudget", "PriorityClass", "ResourceQuota", "LimitRange"},
		{"ServiceAccount"},
		{"Secret", "ConfigMap"},
		{"PersistentVolume", "PersistentVolumeClaim", "StorageClass"},
		{"CustomResourceDefinition"},
		{"ClusterRole", "Role"},
		{"ClusterRoleBinding", "RoleBinding"},
		{"Service", "Issuer", "ClusterIssuer", "Certificate", "OperatorCondition"},
		{"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod"},
		{"VerticalPodAutoscaler", "HorizontalPodAutoscaler"},
		{"PrometheusRule", "ServiceMonitor", "PodMonitor", "ConsoleYAMLSample", "ConsoleQuickStart", "ConsoleCLIDownload", "ConsoleLink", "ConsolePlugin"},
		{"APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"},
	}
}

const workloadPhase = 9

// Phase returns the position of o in the order of application.
func Phase(o k8s.Object) int {
	for i, kinds := range syncPhases() {
		if slices.Contains(kinds, o.Kind()) && knownGroup(o.Group()) {
			return i
		}
	}
	if BuiltinGroup(o.Group()) {
		return workloadPhase
	}
	return len(syncPhases())
}

// BuiltinGroup reports whether the API server itself serves the group.
func BuiltinGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && slices.Contains([]string{
		"rbac.authorization.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "admissionregistration.k8s.io", "scheduling.k8s.io",
		"storage.k8s.io", "networking.k8s.io", "node.k8s.io", "certificates.k8s.io", "flowcontrol.apiserver.k8s.io", "coordination.k8s.io",
		"discovery.k8s.io", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "resource.k8s.io",
	}, group)
}

// knownGroup reports whether kinds in a group have their usual meaning.
func knownGroup(group string) bool {
	return BuiltinGroup(group) || slices.Contains([]string{
		"cert-manager.io", "monitoring.coreos.com", "console.openshift.io", "operators.coreos.com", "autoscaling.k8s.io",
	}, group)
}
