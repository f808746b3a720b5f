package diff

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/rbac"
)

func rbacRules() []Rule {
	return []Rule{
		{"rbac.cluster-admin", Critical, "everything, everywhere", "whoever controls this account controls the cluster"},
		{"rbac.escalate", Critical, "escalate or bind roles", "the verbs escalate and bind lift the rule that nobody can grant more than they have: the account can make itself cluster-admin"},
		{"rbac.impersonate", Critical, "impersonate users, groups or accounts", "the account can act as anybody, cluster-admin included"},
		{"rbac.nodes-proxy", Critical, "the kubelet's own API", "nodes/proxy reaches the kubelet past admission and audit: it runs commands in every pod of the node"},
		{"rbac.wildcard", High, "resources or API groups by wildcard", "it covers kinds that do not exist yet, and Secrets where the group is core"},
		{"rbac.secrets", High, "read or write Secrets", "Secrets hold credentials of everything else, tokens of other accounts included; list and watch show their content too"},
		{"rbac.rbac-write", High, "write roles or bindings", "the account can hand out every permission that it has, to anybody"},
		{"rbac.pods-exec", High, "run commands in other pods", "exec, attach and ephemeral containers give the identity and the data of the pod that is entered"},
		{"rbac.tokens", High, "make tokens of ServiceAccounts", "the account can act as any ServiceAccount in scope"},
		{"rbac.csr-approve", High, "approve or sign certificates", "a signed client certificate is an identity of one's choice"},
		{"rbac.webhook-write", High, "write admission configuration", "an admission webhook or policy sees, changes or blocks every write in the cluster"},
		{"rbac.apiservice-write", High, "write APIServices", "an APIService takes over a part of the Kubernetes API and sees the credentials of its users"},
		{"rbac.workload-write", High, "run pods in any namespace", "whoever runs a pod can use any ServiceAccount, and mount any Secret, of its namespace; kube-system included"},
		{"rbac.volume-write", High, "make PersistentVolumes", "a PersistentVolume of type hostPath reads and writes the node's disk"},
		{"rbac.crd-write", High, "write custom resource definitions", "deleting a definition deletes every object of it; changing one changes what is valid"},
		{"rbac.node-write", Medium, "change nodes", "labels and taints steer where other workloads run"},
		{"rbac.namespace-write", Medium, "change namespaces", "the Pod Security level is a label of the Namespace; deleting one deletes what it holds"},
		{"rbac.urls", Medium, "URLs beside the resources", "non-resource URLs reach debugging and metrics endpoints of the API server"},
		{"rbac.unknown-role", Medium, "a role that is not in the rendered state", "what it allows is decided elsewhere"},
		{"rbac.aggregated", Low, "permissions added to a built-in role", "everybody who is bound to that role gets them"},
		{"rbac.gained", Medium, "permission gained", "a compromise of the operator reaches further than before"},
		{"rbac.lost", Info, "permission given up", "the operator can do less; what depends on it stops"},
		{"rbac.account-renamed", Info, "ServiceAccount renamed", "bindings made outside the rendered state still name the old account"},
	}
}

// danger is one way to get at more than the words of a rule say.
type danger struct {
	rule      string
	group     string
	resources []string
	verbs     []string
	clusterly bool // only without a namespace
}

func dangers() []danger {
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
		{"rbac.pods-exec", "", []string{"pods/exec", "pods/attach", "pods/ephemeralcontainers"}, []string{"create", "get", "update", "patch"}, false},
		{"rbac.tokens", "", []string{"serviceaccounts/token"}, []string{"create"}, false},
		{"rbac.csr-approve", "certificates.k8s.io", []string{"certificatesigningrequests/approval", "certificatesigningrequests/status"}, []string{"update", "patch"}, false},
		{"rbac.csr-approve", "certificates.k8s.io", []string{"signers"}, []string{"approve", "sign"}, false},
		{"rbac.webhook-write", "admissionregistration.k8s.io", []string{
			"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies",
			"validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
		}, write, false},
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

// dangerOf returns the rule for a gained grant: the worst danger it holds, or
// "rbac.gained".
func dangerOf(g rbac.Grant) string {
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
	case g.Resource == "*" || g.Group == "*":
		return "rbac.wildcard"
	}
	for _, d := range dangers() {
		if g.Group == d.group && d.names(g.Resource) && (g.Verb == "*" || slices.Contains(d.verbs, g.Verb)) && (!d.clusterly || g.Namespace == "") {
			return d.rule
		}
	}
	return "rbac.gained"
}

// names reports whether a resource, perhaps "*/sub", is one of the danger's.
func (d danger) names(resource string) bool {
	if slices.Contains(d.resources, resource) {
		return true
	}
	sub, every := strings.CutPrefix(resource, "*/")
	return every && slices.ContainsFunc(d.resources, func(r string) bool { return strings.HasSuffix(r, "/"+sub) })
}
