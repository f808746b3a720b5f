// Package kinds knows what an API server serves of its own, and what may be
// added to that: its groups and kinds, the names that belong to the cluster, and
// how a definition of a custom resource reads.
//
// It reads values and asks no cluster. A kind that it does not know is one of
// somebody else's, unless its group is one of Kubernetes'.
//
// Start from [Faults], [Define] and [Reserved].
package kinds

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quayside/quayside/internal/diag"
)

// ours is the group of what quayside itself renders.
const ours = "quayside.dev"

// builtin returns the kinds of a group that every API server serves by itself,
// in a namespace and outside, as far as they can be read back; and whether the
// group is one. Versions that are no longer served count too.
func builtin(group string) (namespaced, cluster []string, ok bool) {
	kinds, ok := map[string][2]string{
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
	}[group]
	return strings.Fields(kinds[0]), strings.Fields(kinds[1]), ok
}

// Builtin reports whether every API server serves a group by itself.
func Builtin(group string) bool {
	_, _, own := builtin(group)
	return own
}

// common lists the kinds without a namespace of groups that many clusters have
// beside their own.
func common(group string) []string {
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
		"olm.operatorframework.io":          "ClusterExtension ClusterCatalog",
		"external-secrets.io":               "ClusterSecretStore ClusterExternalSecret",
		"kyverno.io":                        "ClusterPolicy",
		"apiserver.openshift.io":            "APIRequestCount",
		"security.internal.openshift.io":    "RangeAllocation",
	}[group])
}

// Namespaced reports whether objects of a kind lie in a namespace. Those of a
// kind that nobody knows do.
func Namespaced(group, kind string) bool {
	_, cluster, own := builtin(group)
	if !own {
		cluster = common(group)
	}
	return !slices.Contains(cluster, kind)
}

// Faults returns why no API server takes an object of that apiVersion and kind,
// each with its field. The core group and those of Kubernetes have the kinds
// that they have.
func Faults(apiVersion, kind string) []string {
	var out []string
	version, group := apiVersion, ""
	if g, v, found := strings.Cut(apiVersion, "/"); found {
		group, version = g, v
		if bad := validation.IsDNS1123Subdomain(group); len(bad) > 0 {
			out = append(out, fmt.Sprintf("apiVersion: %q is not the name of a group: %s", group, bad[0]))
		}
	}
	if bad := LabelFault(version); bad != "" {
		out = append(out, "apiVersion: version "+bad)
	}
	if bad := LabelFault(strings.ToLower(kind)); bad != "" {
		out = append(out, "kind: in lower case, "+bad)
	}
	namespaced, cluster, own := builtin(group)
	switch known := slices.Concat(namespaced, cluster); {
	case group == ours:
		out = append(out, fmt.Sprintf("apiVersion: group %q is quayside's own, nobody else makes objects of it", group))
	case own && !slices.Contains(known, kind):
		out = append(out, fmt.Sprintf("kind: Kubernetes has no %q in %s%s", kind, named(group), diag.DidYouMean(kind, known)))
	case group == "" && version != "v1":
		out = append(out, fmt.Sprintf("apiVersion: Kubernetes has no version %q of its core group, only v1", version))
	}
	return out
}

func named(group string) string {
	if group == "" {
		return "its core group"
	}
	return "its group " + group
}

// GroupFault returns why nobody may add kinds to a group, "" where one may.
func GroupFault(group string) string {
	_, _, own := builtin(group)
	bad := validation.IsDNS1123Subdomain(group)
	switch {
	case own:
		return fmt.Sprintf("%q is a group of Kubernetes' own, which nobody adds to", group)
	case group == ours:
		return fmt.Sprintf("%q is quayside's own group, which nobody adds to", group)
	case len(bad) > 0:
		return fmt.Sprintf("%q is not the name of a group: %s", group, bad[0])
	case !strings.Contains(group, "."):
		return fmt.Sprintf("%q has no dot: groups without one are Kubernetes' own", group)
	}
	return ""
}

// LabelFault returns why s, a DNS-1035 label as API servers have it, cannot be a
// version, a resource or, in lower case, a kind; "" where it can.
func LabelFault(s string) string {
	if bad := validation.IsDNS1035Label(s); len(bad) > 0 {
		return fmt.Sprintf("%q is not legal: %s", s, bad[0])
	}
	return ""
}

// Resource returns the resource of a kind, as roles name it: "deployments". It
// is "" where Kubernetes has no such kind in that group, and where group or kind
// is not legal. Of a kind of somebody else's it is the name that everybody's
// generators would give it; its definition knows better.
func Resource(group, kind string) string {
	if len(Faults(strings.TrimPrefix(group+"/v1", "/"), kind)) > 0 {
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
