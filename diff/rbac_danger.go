package diff

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

func rbacRules() []Rule {
	return []Rule{
		{"rbac.cluster-admin", Critical, "full control of the cluster", "control of this account is control of the cluster"},
		{"rbac.escalate", Critical, "escalate or bind roles", "the verbs escalate and bind allow granting permissions that the account lacks: it can make itself cluster-admin"},
		{"rbac.impersonate", Critical, "impersonate users, groups or accounts", "the account can act as any user, including cluster-admin"},
		{"rbac.nodes-proxy", Critical, "access the kubelet API", "nodes/proxy reaches the kubelet without admission and audit: it can run commands in every pod of the node"},
		{"rbac.wildcard", High, "resources or API groups by wildcard", "wildcards include future kinds, and Secrets in the core group"},
		{"rbac.secrets", High, "read or write Secrets", "Secrets hold credentials, including tokens of other accounts; list and watch return their content"},
		{"rbac.rbac-write", High, "write roles or bindings", "the account can grant each of its permissions to any subject"},
		{"rbac.pods-exec", High, "run commands in other pods", "exec, attach and ephemeral containers give access to the pod's identity and data, port-forward to its ports"},
		{"rbac.tokens", High, "create tokens of ServiceAccounts", "the account can act as any ServiceAccount in scope"},
		{"rbac.csr-approve", High, "approve or sign certificates", "a signed client certificate can carry any identity"},
		{"rbac.webhook-write", High, "write admission configuration", "an admission webhook or policy can read, change or block every write in the cluster"},
		{"rbac.engine-write", High, "write objects that install others", "whoever writes Subscriptions, Applications, Kustomizations or MachineConfigs has the permissions of the controller that applies them"},
		{"rbac.constraints-use", High, "use privileged SecurityContextConstraints", "pods of the account may run privileged, or with access to the node"},
		{"rbac.apiservice-write", High, "write APIServices", "an APIService serves a part of the Kubernetes API and receives the credentials of its users"},
		{"rbac.workload-write", High, "run pods in any namespace", "a pod can use any ServiceAccount and mount any Secret of its namespace, including kube-system"},
		{"rbac.volume-write", High, "make PersistentVolumes", "a PersistentVolume of type hostPath reads and writes the node's disk"},
		{"rbac.crd-write", High, "write CRDs", "deleting a CRD deletes every object of it; changing one changes validation"},
		{"rbac.node-write", Medium, "change nodes", "labels and taints decide where other workloads run"},
		{"rbac.namespace-write", Medium, "change namespaces", "the Pod Security level is a label of the Namespace; deleting a Namespace deletes everything in it"},
		{"rbac.urls", Medium, "non-resource URLs", "non-resource URLs reach debugging and metrics endpoints of the API server"},
		{"rbac.unknown-role", Medium, "role outside of the rendered manifests", "the referenced role defines the permissions"},
		{"rbac.aggregated", Low, "permissions added to a built-in role", "every subject bound to that role gets them"},
		{"rbac.gained", Medium, "permission gained", "a compromise of the operator reaches further than before"},
		{"rbac.lost", Info, "permission removed", "the operator can do less; features that depend on it stop"},
		{"rbac.account-renamed", Info, "ServiceAccount renamed", "bindings outside of the rendered manifests still reference the old account"},
	}
}

// danger is a permission with effects beyond its text.
type danger struct {
	rule      string
	group     string
	resources []string
	verbs     []string
	clusterly bool // only for grants without a namespace
}

func dangerRules() []danger {
	write := []string{"create", "update", "patch"}
	const authz = "rbac.authorization.k8s.io"
	roles := []string{"roles", "clusterroles"}
	return []danger{
		{"rbac.escalate", authz, roles, []string{"escalate", "bind"}, false},
		{"rbac.impersonate", "", []string{"users", "groups", "serviceaccounts"}, []string{"impersonate"}, false},
		{"rbac.impersonate", "authentication.k8s.io", []string{"uids", "userextras/scopes"}, []string{"impersonate"}, false},
		{"rbac.nodes-proxy", "", []string{"nodes/proxy"}, []string{"get", "create", "update", "patch", "delete"}, false},
		{"rbac.secrets", "", []string{"secrets"}, []string{"get", "list", "watch", "create", "update", "patch"}, false},
		{"rbac.rbac-write", authz, append(roles, "rolebindings", "clusterrolebindings"), write, false},
		{"rbac.pods-exec", "", []string{"pods/exec", "pods/attach", "pods/ephemeralcontainers", "pods/portforward"}, []string{"create", "get", "update", "patch"}, false},
		{"rbac.tokens", "", []string{"serviceaccounts/token"}, []string{"create"}, false},
		{"rbac.csr-approve", "certificates.k8s.io", []string{"certificatesigningrequests/approval", "certificatesigningrequests/status"}, []string{"update", "patch"}, false},
		{"rbac.csr-approve", "certificates.k8s.io", []string{"signers"}, []string{"approve", "sign"}, false},
		{"rbac.webhook-write", "admissionregistration.k8s.io", []string{
			"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies",
			"validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
		}, append(write, "delete", "deletecollection"), false},
		{"rbac.engine-write", "argoproj.io", []string{"applications", "applicationsets", "appprojects"}, write, false},
		{"rbac.engine-write", "kustomize.toolkit.fluxcd.io", []string{"kustomizations"}, write, false},
		{"rbac.engine-write", "helm.toolkit.fluxcd.io", []string{"helmreleases"}, write, false},
		{"rbac.engine-write", "source.toolkit.fluxcd.io", []string{"gitrepositories", "ocirepositories", "buckets"}, write, false},
		{"rbac.engine-write", "operators.coreos.com", []string{"subscriptions", "catalogsources", "installplans", "clusterserviceversions"}, write, false},
		{"rbac.engine-write", "olm.operatorframework.io", []string{"clusterextensions", "clustercatalogs"}, write, false},
		{"rbac.engine-write", "machineconfiguration.openshift.io", []string{"machineconfigs", "machineconfigpools", "kubeletconfigs"}, write, false},
		{"rbac.apiservice-write", "apiregistration.k8s.io", []string{"apiservices"}, write, false},
		{"rbac.workload-write", "", []string{"pods", "replicationcontrollers"}, write, true},
		{"rbac.workload-write", "apps", []string{"deployments", "daemonsets", "statefulsets", "replicasets"}, write, true},
		{"rbac.workload-write", "batch", []string{"jobs", "cronjobs"}, write, true},
		{"rbac.volume-write", "", []string{"persistentvolumes"}, write, false},
		{"rbac.crd-write", "apiextensions.k8s.io", []string{"customresourcedefinitions"}, append(write, "delete", "deletecollection"), false},
		{"rbac.node-write", "", []string{"nodes", "nodes/status"}, append(write, "delete"), false},
		{"rbac.namespace-write", "", []string{"namespaces"}, append(write, "delete"), true},
	}
}

// dangerOf returns the rule for a gained grant: of the worst danger it contains, or
// "rbac.gained".
func dangerOf(g k8s.Grant) string {
	switch {
	case g.Role != "":
		return "rbac.unknown-role"
	case g.URL != "":
		if slices.Contains([]string{"/metrics", "/healthz", "/livez", "/readyz", "/version"}, g.URL) {
			return "rbac.gained"
		}
		return "rbac.urls"
	case g.Group == "*" && g.Resource == "*" && g.Verb == "*" && g.Namespace == "" && g.Name == "":
		return "rbac.cluster-admin"
	case g.Group == "security.openshift.io" && g.Resource == "securitycontextconstraints" && (g.Verb == "use" || g.Verb == "*") && usesPrivileged(g.Name):
		return "rbac.constraints-use"
	case g.Resource == "*" || g.Group == "*":
		return "rbac.wildcard"
	}
	for _, d := range dangerRules() {
		if g.Group == d.group && d.names(g.Resource) && (g.Verb == "*" || slices.Contains(d.verbs, g.Verb)) && (!d.clusterly || g.Namespace == "") {
			return d.rule
		}
	}
	return "rbac.gained"
}

// usesPrivileged reports whether SecurityContextConstraints of that name, "" for all, give
// access to the node.
func usesPrivileged(name string) bool {
	return slices.Contains([]string{"", "*", "privileged", "hostaccess", "hostmount-anyuid", "hostnetwork", "hostnetwork-v2", "node-exporter"}, name)
}

// names reports whether a resource, possibly "*/sub", is among the danger's resources.
func (d danger) names(resource string) bool {
	if slices.Contains(d.resources, resource) {
		return true
	}
	sub, every := strings.CutPrefix(resource, "*/")
	return every && slices.ContainsFunc(d.resources, func(r string) bool { return strings.HasSuffix(r, "/"+sub) })
}
