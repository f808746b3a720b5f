package k8s

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quayside/quayside/internal/diag"
)

// quaysideGroup is the API group of the objects that quayside itself defines.
const quaysideGroup = "quayside.dev"

// builtinGroups has the namespaced and the cluster-scoped kinds of the built-in API groups, separated by
// spaces.
var builtinGroups = sync.OnceValue(func() map[string][2]string { //nolint:gochecknoglobals // built once
	return map[string][2]string{
		"":                             {"ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount", "ComponentStatus Namespace Node PersistentVolume"},
		"apps":                         {"ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet", ""},
		"batch":                        {"CronJob Job", ""},
		"autoscaling":                  {"HorizontalPodAutoscaler", ""},
		"policy":                       {"PodDisruptionBudget", "PodSecurityPolicy"},
		"extensions":                   {"DaemonSet Deployment Ingress NetworkPolicy ReplicaSet", "PodSecurityPolicy"},
		"rbac.authorization.k8s.io":    {"Role RoleBinding", "ClusterRole ClusterRoleBinding"},
		"networking.k8s.io":            {"Ingress NetworkPolicy", "IPAddress IngressClass ServiceCIDR"},
		"storage.k8s.io":               {"CSIStorageCapacity", "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass"},
		"admissionregistration.k8s.io": {"", "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"},
		"certificates.k8s.io":          {"PodCertificateRequest", "CertificateSigningRequest ClusterTrustBundle"},
		"coordination.k8s.io":          {"Lease LeaseCandidate", ""},
		"resource.k8s.io":              {"ResourceClaim ResourceClaimTemplate", "DeviceClass DeviceTaintRule ResourcePoolStatusRequest ResourceSlice"},
		"scheduling.k8s.io":            {"CompositePodGroup PodGroup Workload", "PriorityClass"},
		"discovery.k8s.io":             {"EndpointSlice", ""},
		"events.k8s.io":                {"Event", ""},
		"flowcontrol.apiserver.k8s.io": {"", "FlowSchema PriorityLevelConfiguration"},
		"node.k8s.io":                  {"", "RuntimeClass"},
		"apiextensions.k8s.io":         {"", "CustomResourceDefinition"},
		"apiregistration.k8s.io":       {"", "APIService"},
		"storagemigration.k8s.io":      {"", "StorageVersionMigration"},
		"internal.apiserver.k8s.io":    {"", "StorageVersion"},
		"lifecycle.k8s.io":             {"Eviction EvictionRequest", ""},
		"authentication.k8s.io":        {},
		"authorization.k8s.io":         {},
		"imagepolicy.k8s.io":           {},
	}
})

// builtinKinds returns the kinds of a built-in API group that clients can read, including kinds
// that are no longer served. ok is false if the group is not built in.
func builtinKinds(group string) (namespaced, cluster []string, ok bool) {
	kinds, ok := builtinGroups()[group]
	return strings.Fields(kinds[0]), strings.Fields(kinds[1]), ok
}

// IsBuiltinGroup reports whether a group is built into every API server.
func IsBuiltinGroup(group string) bool {
	_, builtin := builtinGroups()[group]
	return builtin
}

// commonClusterKinds returns the cluster-scoped kinds of common API groups that are not built in.
func commonClusterKinds(group string) []string {
	return strings.Fields(map[string]string{
		"snapshot.storage.k8s.io":           "VolumeSnapshotClass VolumeSnapshotContent",
		"gateway.networking.k8s.io":         "GatewayClass",
		"cert-manager.io":                   "ClusterIssuer",
		"console.openshift.io":              "ConsoleYAMLSample ConsoleQuickStart ConsoleCLIDownload ConsoleLink ConsolePlugin ConsoleNotification ConsoleExternalLogLink ConsoleSample",
		"security.openshift.io":             "SecurityContextConstraints",
		"project.openshift.io":              "Project ProjectRequest",
		"user.openshift.io":                 "User Group Identity",
		"oauth.openshift.io":                "OAuthClient",
		"image.openshift.io":                "Image",
		"machineconfiguration.openshift.io": "MachineConfig MachineConfigPool KubeletConfig ContainerRuntimeConfig",
		"config.openshift.io":               "APIServer Authentication ClusterOperator ClusterVersion Console DNS FeatureGate Image ImageDigestMirrorSet ImageTagMirrorSet Infrastructure Ingress Network Node OAuth OperatorHub Project Proxy Scheduler",
		"operators.coreos.com":              "Operator OLMConfig",
		"olm.operatorframework.io":          "ClusterExtension ClusterExtensionRevision ClusterObjectSet ClusterCatalog",
		"external-secrets.io":               "ClusterSecretStore ClusterExternalSecret",
		"kyverno.io":                        "ClusterPolicy",
		"apiserver.openshift.io":            "APIRequestCount",
		"security.internal.openshift.io":    "RangeAllocation",
	}[group])
}

// Namespaced reports whether a kind is namespaced. It returns true for unknown kinds.
func Namespaced(group, kind string) bool {
	_, cluster, builtin := builtinKinds(group)
	if !builtin {
		cluster = commonClusterKinds(group)
	}
	return !slices.Contains(cluster, kind)
}

// KindFaults returns the reasons why the API server rejects an apiVersion and kind. Each reason begins with the
// name of the field. The core group and the groups of Kubernetes have a fixed set of kinds.
func KindFaults(apiVersion, kind string) []string {
	var out []string
	version, group := apiVersion, ""
	if g, v, found := strings.Cut(apiVersion, "/"); found {
		group, version = g, v
		if bad := validation.IsDNS1123Subdomain(group); len(bad) > 0 {
			out = append(out, fmt.Sprintf("apiVersion: %q is not a valid group name: %s", group, bad[0]))
		}
	}
	if bad := LabelFault(version); bad != "" {
		out = append(out, "apiVersion: version "+bad)
	}
	if bad := LabelFault(strings.ToLower(kind)); bad != "" {
		out = append(out, "kind: in lower case, "+bad)
	}
	namespaced, cluster, builtin := builtinKinds(group)
	switch known := slices.Concat(namespaced, cluster); {
	case group == quaysideGroup:
		out = append(out, fmt.Sprintf("apiVersion: group %q is reserved for quayside's own objects", group))
	case builtin && !slices.Contains(known, kind):
		out = append(out, fmt.Sprintf("kind: unknown kind %q in %s%s", kind, describeGroup(group), diag.DidYouMean(kind, known)))
	case group == "" && version != "v1":
		out = append(out, fmt.Sprintf("apiVersion: unknown version %q of the core group: use v1", version))
	}
	return out
}

func describeGroup(group string) string {
	if group == "" {
		return "the core group"
	}
	return "group " + group
}

// GroupFault returns the reason why a CRD must not use an API group, or "" if a CRD may use the group.
func GroupFault(group string) string {
	builtin := IsBuiltinGroup(group)
	bad := validation.IsDNS1123Subdomain(group)
	switch {
	case builtin:
		return fmt.Sprintf("%q is reserved for Kubernetes: custom kinds need another group", group)
	case group == quaysideGroup:
		return fmt.Sprintf("%q is reserved for quayside: custom kinds need another group", group)
	case len(bad) > 0:
		return fmt.Sprintf("%q is not a valid group name: %s", group, bad[0])
	case !strings.Contains(group, "."):
		return fmt.Sprintf("%q has no dot: groups without a dot belong to Kubernetes", group)
	}
	return ""
}

// LabelFault returns the reason why s is not a DNS-1035 label, or "" if s is one. The API server requires
// such labels for the names of versions and resources, and for kinds in lower case.
func LabelFault(s string) string {
	if bad := validation.IsDNS1035Label(s); len(bad) > 0 {
		return fmt.Sprintf("%q is not valid: %s", s, bad[0])
	}
	return ""
}

// Resource returns the resource name of a kind, as used in roles, such as "deployments". It returns "" if the
// group or kind is invalid, or if a built-in group does not have the kind. For a custom kind it returns the
// usual plural. The CRD of the kind may define another plural.
func Resource(group, kind string) string {
	if len(KindFaults(strings.TrimPrefix(group+"/v1", "/"), kind)) > 0 {
		return ""
	}
	switch name := strings.ToLower(kind); {
	case name == "endpoints", name == "securitycontextconstraints":
		return name
	case strings.HasSuffix(name, "s"), strings.HasSuffix(name, "x"), strings.HasSuffix(name, "ch"), strings.HasSuffix(name, "sh"):
		return name + "es"
	case strings.HasSuffix(name, "y") && !strings.ContainsAny(name[max(0, len(name)-2):len(name)-1], "aeiou"):
		return name[:len(name)-1] + "ies"
	default:
		return name + "s"
	}
}

// API groups whose objects are treated specially.
const (
	RBACGroup       = "rbac.authorization.k8s.io"
	AdmissionGroup  = "admissionregistration.k8s.io"
	CRDGroup        = "apiextensions.k8s.io"
	APIServiceGroup = "apiregistration.k8s.io"
	OLMGroup        = "operators.coreos.com"     // OLM v0
	OLMv1Group      = "olm.operatorframework.io" // OLM v1
)

// IsWebhookConfig reports whether an object configures admission webhooks.
func (k Key) IsWebhookConfig() bool {
	return k.Group == AdmissionGroup && (k.Kind == "ValidatingWebhookConfiguration" || k.Kind == "MutatingWebhookConfiguration")
}
