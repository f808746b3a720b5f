package profile

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/kobj"
)

// Place is where an object of an operator stands among those of the others. The
// zero value is that of what belongs to none.
type Place struct {
	Alone bool  // the object is of a piece, which waits for no other
	First bool  // the operator issues certificates, so that others need it and it waits for none
	Level int   // how many operators, one after the other, come before this one
	Whose Whose // API that the object is of, where it is a custom resource

	Stopped bool // the object is of an operator that another one follows, and must not work when that begins to
	Moving  bool // the object is about to come later than it does, and must stay meanwhile
}

// Earlier returns the place of what stands in both, so that nothing waits for it.
func (p Place) Earlier(other Place) Place {
	return Place{First: p.First || other.First, Level: min(p.Level, other.Level), Whose: max(p.Whose, other.Whose)}
}

// Whose says who provides the API of a custom resource, as far as the tree tells.
type Whose int

// The operator itself; nobody in the tree, so that it is there already; one that
// comes before the operator; one that does not.
const (
	Own Whose = iota
	Nobodys
	Required
	Foreign
)

// custom reports whether o is a custom resource that nothing is known of.
func custom(o kobj.Object) bool {
	return !BuiltinGroup(o.Group()) && Phase(o) > workloadPhase
}

// phases lists what can be applied together, in order; each line needs those
// above. What no line names belongs to "workloads", custom resources to the
// end.
func phases() [][]string {
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

// Phase returns the place of o in the order of application.
func Phase(o kobj.Object) int {
	for i, kinds := range phases() {
		if slices.Contains(kinds, o.Kind()) && knownGroup(o.Group()) {
			return i
		}
	}
	if BuiltinGroup(o.Group()) {
		return workloadPhase
	}
	return len(phases())
}

// BuiltinGroup reports whether the API server itself serves the group.
func BuiltinGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && slices.Contains([]string{
		"rbac.authorization.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "admissionregistration.k8s.io", "scheduling.k8s.io",
		"storage.k8s.io", "networking.k8s.io", "node.k8s.io", "certificates.k8s.io", "flowcontrol.apiserver.k8s.io", "coordination.k8s.io",
		"discovery.k8s.io", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "resource.k8s.io",
	}, group)
}

// knownGroup leaves out groups in which a kind of a familiar name means
// something else.
func knownGroup(group string) bool {
	return BuiltinGroup(group) || slices.Contains([]string{
		"cert-manager.io", "monitoring.coreos.com", "console.openshift.io", "operators.coreos.com", "autoscaling.k8s.io",
	}, group)
}
