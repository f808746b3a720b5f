package profile

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// ApplyPosition determines when an object is applied. The zero value is for an object that belongs
// to no operator.
type ApplyPosition struct {
	InPiece  bool        // the object is in a piece, and pieces do not wait for each other
	Issuer   bool        // the operator issues certificates that others need
	Level    int         // length of the longest chain of requirements from this operator
	Provider APIProvider // provider of the API of a custom resource

	Hook *Hook // nil: an ordinary object
	Kept bool  // the object is not deleted with its operator, if it has only data

	Stopped    bool // the object belongs to a replaced operator, whose workloads stop before its successor starts
	Recreated  bool // the object is deleted and created again if an immutable field changes
	MovesLater bool // the object will move to a later position, and must not be deleted in the meantime
}

// Hook describes when an object is applied and deleted in each installation and upgrade.
type Hook struct {
	Before, After bool // before or after the other objects; at least one is set
	Weight        int  // lower weights are applied first
	Succeeded     bool // whether the object is deleted when it has succeeded
	Failed        bool // whether the object is deleted when it has failed
}

// Earlier returns the earlier of p and other, for an object that has both positions.
func (p ApplyPosition) Earlier(other ApplyPosition) ApplyPosition {
	return ApplyPosition{Issuer: p.Issuer || other.Issuer, Level: min(p.Level, other.Level), Provider: max(p.Provider, other.Provider)}
}

// APIProvider is the provider of the API of a custom resource.
type APIProvider int

// The providers.
const (
	SameOperator    APIProvider = iota // the operator that the custom resource belongs to
	NoOperator                         // nothing in the tree: the API must already exist
	EarlierOperator                    // an operator at an earlier position
	OtherOperator                      // an operator at the same or a later position
)

// isCustomResource reports whether o has a kind that is neither built-in nor listed in syncPhases.
func isCustomResource(o k8s.Object) bool {
	return !BuiltinGroup(o.Group()) && Phase(o) > workloadPhase
}

// syncPhases returns kinds in the order in which they are applied. The kinds of one phase can be
// applied together, after all earlier phases. Other built-in kinds are applied with Deployments.
// Custom resources come last.
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

// Phase returns the index of the phase in which o is applied.
func Phase(o k8s.Object) int {
	for i, kinds := range syncPhases() {
		if slices.Contains(kinds, o.Kind()) && isKnownGroup(o.Group()) {
			return i
		}
	}
	if BuiltinGroup(o.Group()) {
		return workloadPhase
	}
	return len(syncPhases())
}

// BuiltinGroup reports whether the API server itself serves an API group, without CRDs and
// APIServices.
func BuiltinGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && slices.Contains([]string{
		"rbac.authorization.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "admissionregistration.k8s.io", "scheduling.k8s.io",
		"storage.k8s.io", "networking.k8s.io", "node.k8s.io", "certificates.k8s.io", "flowcontrol.apiserver.k8s.io", "coordination.k8s.io",
		"discovery.k8s.io", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "resource.k8s.io",
	}, group)
}

// isKnownGroup reports whether the kinds of an API group have phases in syncPhases.
func isKnownGroup(group string) bool {
	return BuiltinGroup(group) || slices.Contains([]string{
		"cert-manager.io", "monitoring.coreos.com", "console.openshift.io", "operators.coreos.com", "autoscaling.k8s.io",
	}, group)
}
