package profile

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// ApplyPosition is the position of an object in the order of application. The zero value is that of
// an object that belongs to no operator.
type ApplyPosition struct {
	InPiece  bool        // the object belongs to a piece, which does not wait for other pieces
	Issuer   bool        // the operator issues certificates, so others need it
	Level    int         // length of the longest chain of operators that this operator requires
	Provider APIProvider // provider of the object's API

	Stopped    bool // the object belongs to a replaced operator, whose workloads stop before the successor starts
	MovesLater bool // the object will move to a later position and must not be deleted then
}

// Earlier returns the earlier of two positions, for an object that has both.
func (p ApplyPosition) Earlier(other ApplyPosition) ApplyPosition {
	return ApplyPosition{Issuer: p.Issuer || other.Issuer, Level: min(p.Level, other.Level), Provider: max(p.Provider, other.Provider)}
}

// APIProvider is the provider of the API of a custom resource.
type APIProvider int

// The providers.
const (
	SameOperator    APIProvider = iota // the operator of the custom resource
	NoOperator                         // not part of the tree; the API must already exist
	EarlierOperator                    // an operator at an earlier position
	OtherOperator                      // an operator at the same or a later position
)

// isCustomResource reports whether o is of an API that is neither built-in nor listed in
// syncPhases.
func isCustomResource(o k8s.Object) bool {
	return !BuiltinGroup(o.Group()) && Phase(o) > workloadPhase
}

// syncPhases returns kinds in the order of application. Kinds of one phase can be applied together
// after all earlier phases. Other built-in kinds are in the phase of Deployments. Custom resources
// come last.
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

// Phase returns the index of the kind of o in the order of application.
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

// BuiltinGroup reports whether the API server serves the group without extensions.
func BuiltinGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && slices.Contains([]string{
		"rbac.authorization.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "admissionregistration.k8s.io", "scheduling.k8s.io",
		"storage.k8s.io", "networking.k8s.io", "node.k8s.io", "certificates.k8s.io", "flowcontrol.apiserver.k8s.io", "coordination.k8s.io",
		"discovery.k8s.io", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "resource.k8s.io",
	}, group)
}

// isKnownGroup reports whether syncPhases applies to the kinds of a group.
func isKnownGroup(group string) bool {
	return BuiltinGroup(group) || slices.Contains([]string{
		"cert-manager.io", "monitoring.coreos.com", "console.openshift.io", "operators.coreos.com", "autoscaling.k8s.io",
	}, group)
}
