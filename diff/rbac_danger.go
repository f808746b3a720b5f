package diff

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

func rbacRules() []RuleInfo {
	return []RuleInfo{
		{"rbac.cluster-admin", Critical, "full control of the cluster", "control of this account is control of the cluster"},
		{"rbac.escalate", Critical, "escalate or bind roles", "the verbs escalate and bind allow granting permissions that the account lacks: it can make itself cluster-admin"},
		{"rbac.impersonate", Critical, "impersonate users, groups or accounts", "the account can act as any user, including cluster-admin"},
		{"rbac.nodes-proxy", Critical, "access the kubelet API", "nodes/proxy reaches the kubelet without admission and audit: it can run commands in every pod of the node"},
		{"rbac.wildcard", High, "resources or API groups by wildcard", "wildcards include future kinds, and Secrets in the core group"},
		{"rbac.secrets", High, "read or write Secrets", "Secrets hold credentials, including tokens of other accounts; list and watch return their content"},
		{"rbac.rbac-write", High, "write roles or bindings", "the account can grant each of its permissions to any subject"},
		{"rbac.pods-exec", High, "run commands in other pods", "exec, attach and ephemeral containers give access to the pod's identity and data, port-forward to its ports"},
		{"rbac.tokens", Critical, "create tokens of ServiceAccounts", "the account is as strong as the named ServiceAccount, or as any in scope; those of the controllers in kube-system can make themselves cluster-admin"},
		{"rbac.csr-approve", High, "approve or sign certificates", "a signed client certificate can carry any identity"},
		{"rbac.webhook-write", High, "write admission configuration", "an admission webhook or policy can read, change or block every write in the cluster"},
		{"rbac.engine-write", High, "write objects that install others", "an account that writes Subscriptions, Applications, Kustomizations or MachineConfigs has the permissions of the controller that applies them"},
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
		{"rbac.aggregation-cycle", Critical, "ClusterRoles that aggregate each other", "the controller copies rules around the cycle: a rule that was once in one of the roles stays in all of them, although no manifest has it"},
		{"rbac.tool-role", High, "permissions added to a role of another tool", "every subject that is bound to that role in the cluster gets them; the binding is outside of the rendered manifests"},
		{"rbac.gained", Medium, "permission gained", "a compromise of the operator reaches further than before"},
		{"rbac.lost", Info, "permission removed", "the operator can do less; features that depend on it stop"},
		{"rbac.account-renamed", Info, "ServiceAccount renamed", "bindings outside of the rendered manifests still reference the old account"},
	}
}

// danger describes a permission that implies further permissions, or control of other workloads.
type danger struct {
	rule            string
	group           string
	resources       []string
	verbs           []string
	clusterWideOnly bool // a grant in a single namespace is not dangerous

	// rate returns the severity of a grant, or Off if it is not dangerous. If rate is nil, the
	// severity is that of the rule, but at most medium for a single namespace or object.
	rate rateFunc
}

// rateFunc returns the severity of a subject's grant. depth is the number of further subjects that
// may be followed (see maxDepth).
type rateFunc func(r *rater, of k8s.Subject, g k8s.Grant, depth int) Severity

func dangerRules() []danger {
	write := []string{"create", "update", "patch"}
	const authz, authn = "rbac.authorization.k8s.io", "authentication.k8s.io"
	roles := []string{"roles", "clusterroles"}
	return []danger{
		{"rbac.escalate", authz, roles, []string{"escalate"}, false, fixedSeverity(Critical)},
		{"rbac.escalate", authz, roles, []string{"bind"}, false, bindSeverity},
		{"rbac.impersonate", "", []string{"users", "groups"}, []string{"impersonate"}, false, userSeverity},
		{"rbac.impersonate", "", []string{"serviceaccounts"}, []string{"impersonate"}, false, accountSeverity},
		{"rbac.impersonate", authn, []string{"uids", "userextras/scopes"}, []string{"impersonate"}, false, limitedSeverity(Critical, High)},
		{"rbac.impersonate", authn, []string{"users", "groups", "uids", "serviceaccounts", "nodes"}, []string{"impersonate:user-info", "impersonate:serviceaccount", "impersonate:arbitrary-node"}, false, fixedSeverity(High)},
		{"rbac.nodes-proxy", "", []string{"nodes/proxy"}, []string{"get", "create", "update", "patch", "delete"}, false, limitedSeverity(Critical, High)},
		{"rbac.secrets", "", []string{"secrets"}, []string{"get", "list", "watch", "create", "update", "patch"}, false, nil},
		{"rbac.rbac-write", authz, append(roles, "rolebindings", "clusterrolebindings"), write, false, nil},
		{"rbac.pods-exec", "", []string{"pods/exec", "pods/attach", "pods/ephemeralcontainers", "pods/portforward"}, []string{"create", "get", "update", "patch"}, false, nil},
		{"rbac.tokens", "", []string{"serviceaccounts/token"}, []string{"create"}, false, accountSeverity},
		{"rbac.csr-approve", "certificates.k8s.io", []string{"certificatesigningrequests/approval", "certificatesigningrequests/status"}, []string{"update", "patch"}, false, nil},
		{"rbac.csr-approve", "certificates.k8s.io", []string{"signers"}, []string{"approve", "sign"}, false, signerSeverity},
		{"rbac.webhook-write", "admissionregistration.k8s.io", []string{
			"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies",
			"validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
		}, append(write, "delete", "deletecollection"), false, limitedSeverity(High, High)},
		{"rbac.engine-write", "argoproj.io", []string{"applications", "applicationsets", "appprojects"}, write, false, fixedSeverity(High)},
		{"rbac.engine-write", "kustomize.toolkit.fluxcd.io", []string{"kustomizations"}, write, false, fixedSeverity(High)},
		{"rbac.engine-write", "helm.toolkit.fluxcd.io", []string{"helmreleases"}, write, false, fixedSeverity(High)},
		{"rbac.engine-write", "source.toolkit.fluxcd.io", []string{"gitrepositories", "ocirepositories", "buckets"}, write, false, fixedSeverity(High)},
		{"rbac.engine-write", k8s.OLMGroup, []string{"subscriptions", "catalogsources", "installplans", "clusterserviceversions"}, write, false, fixedSeverity(High)},
		{"rbac.engine-write", k8s.OLMv1Group, []string{"clusterextensions", "clustercatalogs"}, write, false, fixedSeverity(High)},
		{"rbac.engine-write", "machineconfiguration.openshift.io", []string{"machineconfigs", "machineconfigpools", "kubeletconfigs"}, write, false, fixedSeverity(High)},
		{"rbac.constraints-use", "security.openshift.io", []string{"securitycontextconstraints"}, []string{"use"}, false, constraintSeverity},
		{"rbac.apiservice-write", "apiregistration.k8s.io", []string{"apiservices"}, write, false, nil},
		{"rbac.workload-write", "", []string{"pods", "replicationcontrollers"}, write, true, nil},
		{"rbac.workload-write", "apps", []string{"deployments", "daemonsets", "statefulsets", "replicasets"}, write, true, nil},
		{"rbac.workload-write", "batch", []string{"jobs", "cronjobs"}, write, true, nil},
		{"rbac.volume-write", "", []string{"persistentvolumes"}, write, false, nil},
		{"rbac.crd-write", k8s.CRDGroup, []string{"customresourcedefinitions"}, append(write, "delete", "deletecollection"), false, nil},
		{"rbac.node-write", "", []string{"nodes", "nodes/status"}, append(write, "delete"), false, nil},
		{"rbac.namespace-write", "", []string{"namespaces"}, append(write, "delete"), true, nil},
	}
}

// fixedSeverity returns a rateFunc that always returns s, even for a single namespace or object.
func fixedSeverity(s Severity) rateFunc {
	return func(*rater, k8s.Subject, k8s.Grant, int) Severity { return s }
}

// limitedSeverity returns a rateFunc that returns all for a grant on all objects, and one for a
// grant on a single cluster-scoped object. In a namespace, the severity is at most medium.
func limitedSeverity(all, one Severity) rateFunc {
	return func(_ *rater, _ k8s.Subject, g k8s.Grant, _ int) Severity {
		switch {
		case g.Namespace != "":
			return min(Medium, all)
		case g.Name != "":
			return one
		}
		return all
	}
}

// signerSeverity rates permissions on certificate signers. It returns High for all signers and for
// the signers of Kubernetes, which sign client certificates, and otherwise Medium.
func signerSeverity(_ *rater, _ k8s.Subject, g k8s.Grant, _ int) Severity {
	if g.Namespace == "" && (g.Name == "" || strings.HasPrefix(g.Name, "kubernetes.io/")) {
		return High
	}
	return Medium
}

// constraintSeverity rates the permission to use SecurityContextConstraints. It returns High for
// all of them and for those that give access to the node, and otherwise Off.
func constraintSeverity(_ *rater, _ k8s.Subject, g k8s.Grant, _ int) Severity {
	if slices.Contains([]string{"", "privileged", "hostaccess", "hostmount-anyuid", "hostnetwork", "hostnetwork-v2", "node-exporter"}, g.Name) {
		return High
	}
	return Off
}

// bindSeverity rates the verb bind. It returns Critical for the permission to bind all roles. For a
// single role, the severity is that of its permissions, or High if the role is unknown.
func bindSeverity(r *rater, _ k8s.Subject, g k8s.Grant, depth int) Severity {
	if g.Name == "" {
		return Critical
	}
	who := k8s.Subject{Kind: "Role", Namespace: g.Namespace, Name: g.Name}
	if g.Resource == "clusterroles" {
		who.Kind = "ClusterRole"
	}
	return r.strength(who, depth)
}

// userSeverity rates the permission to impersonate users and groups.
func userSeverity(r *rater, of k8s.Subject, g k8s.Grant, depth int) Severity {
	if g.Name == "" {
		return Critical
	}
	who := k8s.Subject{Kind: "Group", Name: g.Name}
	if g.Resource == "users" {
		who.Kind = "User"
	}
	if account, ok := strings.CutPrefix(g.Name, "system:serviceaccount:"); ok && who.Kind == "User" {
		who.Kind = "ServiceAccount"
		who.Namespace, who.Name, _ = strings.Cut(account, ":")
	}
	return r.actAsSeverity(of, who, depth)
}

// accountSeverity rates the permission to impersonate ServiceAccounts or to create tokens for them.
// It returns Critical for all ServiceAccounts of the cluster, which include those of the
// controllers.
func accountSeverity(r *rater, of k8s.Subject, g k8s.Grant, depth int) Severity {
	if g.Name == "" && g.Namespace == "" {
		return Critical
	}
	return r.actAsSeverity(of, k8s.Subject{Kind: "ServiceAccount", Namespace: g.Namespace, Name: g.Name}, depth)
}

// covers reports whether a grant includes one of the dangerous verbs on the resource.
func (d danger) covers(g k8s.Grant, resource string) bool {
	if d.clusterWideOnly && g.Namespace != "" {
		return false
	}
	return slices.ContainsFunc(d.verbs, func(verb string) bool {
		return g.Covers(k8s.Grant{Namespace: g.Namespace, Verb: verb, Group: d.group, Resource: resource, Name: g.Name})
	})
}

// rater rates grants. A grant that allows acting as another account is rated by the permissions of
// that account.
type rater struct {
	all      *k8s.Permissions
	dangers  []danger
	rules    map[string]RuleInfo
	accounts map[k8s.Subject][]k8s.Subject // ServiceAccounts with the same name, or in the same namespace
	memo     map[ratingKey]Severity
}

// ratingKey is the key of a cached rating of a subject.
type ratingKey struct {
	subject k8s.Subject
	depth   int
}

// maxDepth is the maximum length of a chain of subjects, each of which can act as the next one. At
// the end of the chain, the severity is High.
const maxDepth = 4

func (c *comparison) newRater(all *k8s.Permissions) *rater {
	r := &rater{all, dangerRules(), c.rules, map[k8s.Subject][]k8s.Subject{}, map[ratingKey]Severity{}}
	for _, s := range all.Subjects() {
		if s.Kind == "ServiceAccount" {
			for _, key := range []k8s.Subject{{Kind: s.Kind, Name: s.Name}, {Kind: s.Kind, Namespace: s.Namespace}} {
				r.accounts[key] = append(r.accounts[key], s)
			}
		}
	}
	return r
}

// rate returns the rule and the severity for a grant of a subject: those of the worst danger in the
// grant. If there is none, the rule is "rbac.gained".
func (r *rater) rate(of k8s.Subject, g k8s.Grant, depth int) (string, Severity) {
	rule, worst := "rbac.gained", Medium
	if g.Namespace != "" || slices.Contains([]string{"get", "list", "watch"}, g.Verb) {
		worst = Low
	}
	switch {
	case g.Role != "":
		return "rbac.unknown-role", Medium
	case g.URL != "":
		if !slices.Contains([]string{"/metrics", "/healthz", "/livez", "/readyz", "/version"}, g.URL) {
			rule, worst = "rbac.urls", Medium
		}
		return rule, worst
	case g.Covers(k8s.Grant{Verb: "*", Group: "*", Resource: "*"}):
		return "rbac.cluster-admin", Critical
	case g.Resource == "*" || g.Group == "*":
		rule, worst = "rbac.wildcard", r.ruleSeverity("rbac.wildcard", g)
	}
	for _, d := range r.dangers {
		if g.Group != "*" && g.Group != d.group {
			continue
		}
		for _, resource := range d.resources {
			if !d.covers(g, resource) {
				continue
			}
			if s := r.dangerSeverity(d, of, k8s.Grant{Namespace: g.Namespace, Resource: resource, Name: g.Name}, depth); s > worst || s != Off && rule == "rbac.gained" {
				rule, worst = d.rule, s
			}
		}
	}
	return rule, worst
}

func (r *rater) dangerSeverity(d danger, of k8s.Subject, g k8s.Grant, depth int) Severity {
	if d.rate == nil {
		return r.ruleSeverity(d.rule, g)
	}
	return d.rate(r, of, g, depth)
}

// ruleSeverity returns the default severity of a rule, but at most medium if the grant is limited
// to a namespace or an object.
func (r *rater) ruleSeverity(rule string, g k8s.Grant) Severity {
	if g.Namespace != "" || g.Name != "" {
		return min(Medium, r.rules[rule].Severity)
	}
	return r.rules[rule].Severity
}

// actAsSeverity rates the permission of a subject to act as target. The severity is that of the
// permissions of target, and at least high, because target may have permissions that are not
// rendered. It is medium if target is only the subject itself. That includes a target without a
// namespace if no other ServiceAccount has its name, except for "default", which every namespace
// has.
func (r *rater) actAsSeverity(subject, target k8s.Subject, depth int) Severity {
	same := r.accounts[k8s.Subject{Kind: target.Kind, Name: target.Name}]
	if target == subject || slices.Equal(same, []k8s.Subject{subject}) && target.Name != "" && target.Name != "default" {
		return Medium
	}
	return max(High, r.strength(target, depth))
}

// strength returns the highest severity of the grants of a subject, and at least medium. The
// subject may be a Role or a ClusterRole. It may also stand for all ServiceAccounts with a name
// (without a namespace) or in a namespace (without a name).
func (r *rater) strength(subject k8s.Subject, depth int) Severity {
	if depth == 0 {
		return High
	}
	if s, ok := r.memo[ratingKey{subject, depth}]; ok {
		return s
	}
	worst := Medium
	add := func(of k8s.Subject, grants []k8s.Grant) {
		for _, g := range grants {
			_, s := r.rate(of, g, depth-1)
			worst = max(worst, s)
		}
	}
	switch {
	case subject.Kind == "Role" || subject.Kind == "ClusterRole":
		grants, known := r.all.RoleGrants(subject.Kind, subject.Namespace, subject.Name)
		if add(k8s.Subject{}, grants); !known {
			worst = High
		}
	case subject.Kind == "ServiceAccount" && (subject.Namespace == "" || subject.Name == ""):
		for _, s := range r.accounts[subject] {
			add(s, r.all.Of(s))
		}
	default:
		add(subject, r.all.Of(subject))
	}
	r.memo[ratingKey{subject, depth}] = worst
	return worst
}
