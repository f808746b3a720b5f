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
	switch group {
	case "":
		namespaced = []string{
			"ConfigMap", "Endpoints", "Event", "LimitRange", "PersistentVolumeClaim", "Pod", "PodTemplate",
			"ReplicationController", "ResourceQuota", "Secret", "Service", "ServiceAccount",
		}
		cluster = []string{"ComponentStatus", "Namespace", "Node", "PersistentVolume"}
	case "apps":
		namespaced = []string{"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"}
	case "batch":
		namespaced = []string{"CronJob", "Job"}
	case "autoscaling":
		namespaced = []string{"HorizontalPodAutoscaler"}
	case "policy":
		namespaced, cluster = []string{"PodDisruptionBudget"}, []string{"PodSecurityPolicy"}
	case "extensions":
		namespaced = []string{"DaemonSet", "Deployment", "Ingress", "NetworkPolicy", "ReplicaSet"}
		cluster = []string{"PodSecurityPolicy"}
	case "rbac.authorization.k8s.io":
		namespaced, cluster = []string{"Role", "RoleBinding"}, []string{"ClusterRole", "ClusterRoleBinding"}
	case "networking.k8s.io":
		namespaced, cluster = []string{"Ingress", "NetworkPolicy"}, []string{"IPAddress", "IngressClass", "ServiceCIDR"}
	case "storage.k8s.io":
		namespaced = []string{"CSIStorageCapacity"}
		cluster = []string{"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"}
	case "admissionregistration.k8s.io":
		cluster = []string{
			"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
			"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
		}
	case "certificates.k8s.io":
		namespaced, cluster = []string{"PodCertificateRequest"}, []string{"CertificateSigningRequest", "ClusterTrustBundle"}
	case "coordination.k8s.io":
		namespaced = []string{"Lease", "LeaseCandidate"}
	case "resource.k8s.io":
		namespaced = []string{"ResourceClaim", "ResourceClaimTemplate"}
		cluster = []string{"DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest", "ResourceSlice"}
	case "scheduling.k8s.io":
		namespaced, cluster = []string{"CompositePodGroup", "PodGroup", "Workload"}, []string{"PriorityClass"}
	case "discovery.k8s.io":
		namespaced = []string{"EndpointSlice"}
	case "events.k8s.io":
		namespaced = []string{"Event"}
	case "flowcontrol.apiserver.k8s.io":
		cluster = []string{"FlowSchema", "PriorityLevelConfiguration"}
	case "node.k8s.io":
		cluster = []string{"RuntimeClass"}
	case "apiextensions.k8s.io":
		cluster = []string{"CustomResourceDefinition"}
	case "apiregistration.k8s.io":
		cluster = []string{"APIService"}
	case "storagemigration.k8s.io":
		cluster = []string{"StorageVersionMigration"}
	case "internal.apiserver.k8s.io":
		cluster = []string{"StorageVersion"}
	case "lifecycle.k8s.io":
		namespaced = []string{"Eviction", "EvictionRequest"}
	case "authentication.k8s.io", "authorization.k8s.io", "imagepolicy.k8s.io":
	default:
		return nil, nil, false
	}
	return namespaced, cluster, true
}

// common lists the kinds without a namespace of groups that many clusters have
// beside their own.
func common(group string) []string {
	switch group {
	case "snapshot.storage.k8s.io":
		return []string{"VolumeSnapshotClass", "VolumeSnapshotContent"}
	case "gateway.networking.k8s.io":
		return []string{"GatewayClass"}
	case "cert-manager.io":
		return []string{"ClusterIssuer"}
	case "console.openshift.io":
		return []string{"ConsoleYAMLSample", "ConsoleQuickStart", "ConsoleCLIDownload", "ConsoleLink", "ConsolePlugin", "ConsoleNotification", "ConsoleExternalLogLink", "ConsoleSample"}
	case "security.openshift.io":
		return []string{"SecurityContextConstraints"}
	case "project.openshift.io":
		return []string{"Project", "ProjectRequest"}
	case "user.openshift.io":
		return []string{"User", "Group", "Identity"}
	case "oauth.openshift.io":
		return []string{"OAuthClient"}
	case "image.openshift.io":
		return []string{"Image"}
	case "machineconfiguration.openshift.io":
		return []string{"MachineConfig", "MachineConfigPool", "KubeletConfig", "ContainerRuntimeConfig"}
	case "config.openshift.io":
		return []string{
			"APIServer", "Authentication", "ClusterOperator", "ClusterVersion", "Console", "DNS", "FeatureGate", "Image", "ImageDigestMirrorSet",
			"ImageTagMirrorSet", "Infrastructure", "Ingress", "Network", "Node", "OAuth", "OperatorHub", "Project", "Proxy", "Scheduler",
		}
	case "operators.coreos.com":
		return []string{"Operator", "OLMConfig"}
	case "olm.operatorframework.io":
		return []string{"ClusterExtension", "ClusterCatalog"}
	case "external-secrets.io":
		return []string{"ClusterSecretStore", "ClusterExternalSecret"}
	case "kyverno.io":
		return []string{"ClusterPolicy"}
	case "apiserver.openshift.io":
		return []string{"APIRequestCount"}
	case "security.internal.openshift.io":
		return []string{"RangeAllocation"}
	}
	return nil
}

// Namespaced reports whether objects of a kind lie in a namespace. Those of a
// kind that nobody knows do.
func Namespaced(group, kind string) bool {
	_, cluster, _ := builtin(group)
	return !slices.Contains(cluster, kind) && !slices.Contains(common(group), kind)
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
