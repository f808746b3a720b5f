package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	rbacHead = "apiVersion: rbac.authorization.k8s.io/v1\n"
	account  = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: demo, namespace: ops}"
	binding  = rbacHead + "kind: ClusterRoleBinding\nmetadata: {name: demo}\nroleRef: {kind: ClusterRole, name: demo}\nsubjects: [{kind: ServiceAccount, name: demo, namespace: ops}]"
	local    = rbacHead + "kind: RoleBinding\nmetadata: {name: demo, namespace: ops}\nroleRef: {kind: ClusterRole, name: demo}\nsubjects: [{kind: ServiceAccount, name: demo, namespace: ops}]"
)

func clusterRole(rules ...string) string {
	return rbacHead + "kind: ClusterRole\nmetadata: {name: demo}\nrules: [" + strings.Join(rules, ", ") + "]"
}

func rule(groups, resources, verbs string) string {
	return "{apiGroups: [" + groups + "], resources: [" + resources + "], verbs: [" + verbs + "]}"
}

func TestPermissions(t *testing.T) {
	pods := rule("''", "pods", "get, list")
	cases := []struct {
		name          string
		before, after []string
		want          []string
	}{
		{"only another order", []string{clusterRole(pods, rule("apps", "deployments", "get")), binding, account}, []string{account, binding, clusterRole(rule("apps", "deployments", "get"), pods)}, nil},
		{
			"the same by another role",
			[]string{clusterRole(pods), binding, account},
			[]string{account, clusterRole(), binding, rbacHead + "kind: ClusterRole\nmetadata: {name: two}\nrules: [" + pods + "]", strings.ReplaceAll(strings.ReplaceAll(binding, "name: demo}\nroleRef", "name: two}\nroleRef"), "ClusterRole, name: demo", "ClusterRole, name: two")},
			nil,
		},
		{"read", []string{clusterRole(), binding, account}, []string{clusterRole(pods), binding, account}, []string{"low rbac.gained pods: - → get, list"}},
		{"write", []string{clusterRole(pods), binding, account}, []string{clusterRole(pods, rule("''", "configmaps", "update")), binding, account}, []string{"medium rbac.gained configmaps: - → update"}},
		{"lost", []string{clusterRole(pods), binding, account}, []string{clusterRole(), binding, account}, []string{"info rbac.lost all namespaces: get, list pods → -"}},
		{"from one namespace to all", []string{clusterRole(pods), local, account}, []string{clusterRole(pods), binding, account}, []string{"low rbac.gained pods: - → get, list"}},
		{"from all namespaces to one", []string{clusterRole(pods), binding, account}, []string{clusterRole(pods), local, account}, []string{"info rbac.lost all namespaces: get, list pods → -"}},
		{"everything", []string{clusterRole(), binding, account}, []string{clusterRole(rule("'*'", "'*'", "'*'")), binding, account}, []string{"critical rbac.cluster-admin *.*: - → *"}},
		{
			"cluster-admin by name",
			[]string{clusterRole(), account, binding},
			[]string{clusterRole(), account, strings.ReplaceAll(binding, "ClusterRole, name: demo", "ClusterRole, name: cluster-admin")},
			[]string{"critical rbac.cluster-admin *.*: - → *", `high immutable.field-changed roleRef: {"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"demo"} → {"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}`, "medium rbac.urls *: - → *"},
		},
		{"every resource of a group", []string{clusterRole(), binding, account}, []string{clusterRole(rule("apps", "'*'", "get")), binding, account}, []string{"high rbac.wildcard *.apps: - → get"}},
		{
			"a wildcard covers the previous permissions",
			[]string{clusterRole(rule("''", "'*'", "'*'")), binding, account},
			[]string{clusterRole(rule("''", "secrets", "get")), binding, account},
			[]string{"info rbac.lost all namespaces: use all verbs on * → -"},
		},
		{"secrets", []string{clusterRole(), binding, account}, []string{clusterRole(rule("''", "secrets", "list")), binding, account}, []string{"high rbac.secrets secrets: - → list"}},
		{"secrets of one namespace", []string{clusterRole(), local, account}, []string{clusterRole(rule("''", "secrets", "list")), local, account}, []string{"medium rbac.secrets secrets: - → list"}},
		{"any verb on secrets", []string{clusterRole(), binding, account}, []string{clusterRole(rule("''", "secrets", "'*'")), binding, account}, []string{"high rbac.secrets secrets: - → *"}},
		{"escalate", []string{clusterRole(), local, account}, []string{clusterRole(rule("rbac.authorization.k8s.io", "roles", "bind")), local, account}, []string{"critical rbac.escalate roles.rbac.authorization.k8s.io: - → bind"}},
		{"impersonate", []string{clusterRole(), binding, account}, []string{clusterRole(rule("''", "users", "impersonate")), binding, account}, []string{"critical rbac.impersonate users: - → impersonate"}},
		{
			"bindings",
			[]string{clusterRole(), binding, account},
			[]string{clusterRole(rule("rbac.authorization.k8s.io", "clusterrolebindings", "create")), binding, account},
			[]string{"high rbac.rbac-write clusterrolebindings.rbac.authorization.k8s.io: - → create"},
		},
		{
			"exec",
			[]string{clusterRole(), binding, account},
			[]string{clusterRole(rule("''", "pods/exec, pods/ephemeralcontainers", "create, patch")), binding, account},
			[]string{"high rbac.pods-exec pods/ephemeralcontainers, pods/exec: - → create, patch"},
		},
		{"exec by subresource wildcard", []string{clusterRole(), binding, account}, []string{clusterRole(rule("''", "'*/exec'", "create")), binding, account}, []string{"high rbac.pods-exec */exec: - → create"}},
		{"kubelet", []string{clusterRole(), binding, account}, []string{clusterRole(rule("''", "nodes/proxy", "get")), binding, account}, []string{"critical rbac.nodes-proxy nodes/proxy: - → get"}},
		{"tokens", []string{clusterRole(), binding, account}, []string{clusterRole(rule("''", "serviceaccounts/token", "create")), binding, account}, []string{"critical rbac.tokens serviceaccounts/token: - → create"}},
		{
			"webhooks",
			[]string{clusterRole(), binding, account},
			[]string{clusterRole(rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "patch")), binding, account},
			[]string{"high rbac.webhook-write mutatingwebhookconfigurations.admissionregistration.k8s.io: - → patch"},
		},
		{
			"signing",
			[]string{clusterRole(), binding, account},
			[]string{clusterRole(rule("certificates.k8s.io", "certificatesigningrequests/approval", "update")), binding, account},
			[]string{"high rbac.csr-approve certificatesigningrequests/approval.certificates.k8s.io: - → update"},
		},
		{"pods in all namespaces", []string{clusterRole(), binding, account}, []string{clusterRole(rule("''", "pods", "create")), binding, account}, []string{"high rbac.workload-write pods: - → create"}},
		{"pods in the install namespace", []string{clusterRole(), local, account}, []string{clusterRole(rule("''", "pods", "create")), local, account}, []string{"low rbac.gained pods: - → create"}},
		{
			"definitions",
			[]string{clusterRole(), binding, account},
			[]string{clusterRole(rule("apiextensions.k8s.io", "customresourcedefinitions", "delete")), binding, account},
			[]string{"high rbac.crd-write customresourcedefinitions.apiextensions.k8s.io: - → delete"},
		},
		{"objects that engines apply", []string{clusterRole(), binding, account}, []string{clusterRole(rule("argoproj.io", "applications", "create")), binding, account}, []string{"high rbac.engine-write applications.argoproj.io: - → create"}},
		{"objects of another installer", []string{clusterRole(), local, account}, []string{clusterRole(rule("fleet.cattle.io", "gitrepos", "create")), local, account}, []string{"high rbac.engine-write gitrepos.fleet.cattle.io: - → create"}},
		{"status of what an installer installs", []string{clusterRole(), local, account}, []string{clusterRole(rule("fleet.cattle.io", "gitrepos/status", "update")), local, account}, []string{"low rbac.gained gitrepos/status.fleet.cattle.io: - → update"}},
		{"policies", []string{clusterRole(), binding, account}, []string{clusterRole(rule("kyverno.io", "clusterpolicies", "delete")), binding, account}, []string{"high rbac.webhook-write clusterpolicies.kyverno.io: - → delete"}},
		{"constraints", []string{clusterRole(), binding, account}, []string{clusterRole(rule("security.openshift.io", "securitycontextconstraints", "create")), binding, account}, []string{"high rbac.constraints-use securitycontextconstraints.security.openshift.io: - → create"}},
		{"issuers", []string{clusterRole(), binding, account}, []string{clusterRole(rule("cert-manager.io", "clusterissuers, issuers", "create")), binding, account}, []string{"high rbac.certificate-write clusterissuers.cert-manager.io: - → create", "medium rbac.gained issuers.cert-manager.io: - → create"}},
		{"configuration of the cluster", []string{clusterRole(), binding, account}, []string{clusterRole(rule("config.openshift.io", "oauths", "patch")), binding, account}, []string{"high rbac.configuration-write oauths.config.openshift.io: - → patch"}},
		{"plugins of the network, which run as root on nodes", []string{clusterRole(), binding, account}, []string{clusterRole(rule("k8s.cni.cncf.io", "network-attachment-definitions", "create")), binding, account}, []string{"high rbac.configuration-write network-attachment-definitions.k8s.cni.cncf.io: - → create"}},
		{"drivers of storage, which run as root on nodes", []string{clusterRole(), binding, account}, []string{clusterRole(rule("storage.k8s.io", "csidrivers", "update")), binding, account}, []string{"high rbac.configuration-write csidrivers.storage.k8s.io: - → update"}},
		{"endpoints", []string{clusterRole(), binding, account}, []string{clusterRole(rule("discovery.k8s.io", "endpointslices", "create")), binding, account}, []string{"high rbac.traffic-write endpointslices.discovery.k8s.io: - → create"}},
		{"endpoint slices beside endpoints", []string{clusterRole(rule("''", "endpoints", "create")), binding, account}, []string{clusterRole(rule("''", "endpoints", "create"), rule("discovery.k8s.io", "endpointslices", "create")), binding, account}, []string{"medium rbac.traffic-write endpointslices.discovery.k8s.io: - → create"}},
		{"privileged constraints", []string{clusterRole(), binding, account}, []string{clusterRole("{apiGroups: [security.openshift.io], resources: [securitycontextconstraints], resourceNames: [privileged], verbs: [use]}"), binding, account}, []string{`high rbac.constraints-use securitycontextconstraints.security.openshift.io "privileged": - → use`}},
		{"services of the API", []string{clusterRole(), binding, account}, []string{clusterRole(rule("apiregistration.k8s.io", "apiservices", "update")), binding, account}, []string{"high rbac.apiservice-write apiservices.apiregistration.k8s.io: - → update"}},
		{"volumes", []string{clusterRole(), binding, account}, []string{clusterRole(rule("''", "persistentvolumes", "create")), binding, account}, []string{"high rbac.volume-write persistentvolumes: - → create"}},
		{"nodes", []string{clusterRole(), binding, account}, []string{clusterRole(rule("''", "nodes", "delete")), binding, account}, []string{"medium rbac.node-write nodes: - → delete"}},
		{"namespaces", []string{clusterRole(), binding, account}, []string{clusterRole(rule("''", "namespaces", "delete")), binding, account}, []string{"medium rbac.namespace-write namespaces: - → delete"}},
		{"metrics", []string{clusterRole(), binding, account}, []string{clusterRole("{nonResourceURLs: [/metrics], verbs: [get]}"), binding, account}, []string{"low rbac.gained /metrics: - → get"}},
		{"an unknown role", []string{account}, []string{account, strings.ReplaceAll(binding, "ClusterRole, name: demo", "ClusterRole, name: other")}, []string{"high rbac.unknown-role ClusterRole other: - → ClusterRole other"}},
		{"a role of Kubernetes", []string{account}, []string{account, strings.ReplaceAll(binding, "ClusterRole, name: demo", "ClusterRole, name: 'system:kube-dns'")}, []string{"low rbac.gained endpoints, services: - → list, watch"}},
		{
			"an aggregated role of Kubernetes, by its parts",
			[]string{account, strings.ReplaceAll(local, "ClusterRole, name: demo", "ClusterRole, name: 'system:aggregate-to-view'")},
			[]string{
				account, strings.ReplaceAll(local, "ClusterRole, name: demo", "ClusterRole, name: 'system:aggregate-to-view'"),
				strings.NewReplacer("metadata: {name: demo", "metadata: {name: two", "ClusterRole, name: demo", "ClusterRole, name: view").Replace(local),
			},
			nil,
		},
		{
			"built-in role grows",
			[]string{},
			[]string{rbacHead + "kind: ClusterRole\nmetadata: {name: x, labels: {rbac.authorization.k8s.io/aggregate-to-view: 'true'}}\nrules: [" + rule("''", "secrets", "get") + "]"},
			[]string{"high rbac.secrets secrets: - → get"},
		},
		{
			"built-in role reads more",
			[]string{},
			[]string{rbacHead + "kind: ClusterRole\nmetadata: {name: x, labels: {rbac.authorization.k8s.io/aggregate-to-view: 'true'}}\nrules: [" + rule("demo.io", "widgets", "get") + "]"},
			[]string{"low rbac.aggregated widgets.demo.io: - → get"},
		},
		{
			"every account",
			[]string{clusterRole(pods)},
			[]string{clusterRole(pods), rbacHead + "kind: ClusterRoleBinding\nmetadata: {name: all}\nroleRef: {kind: ClusterRole, name: demo}\nsubjects: [{kind: Group, name: 'system:serviceaccounts'}]"},
			[]string{"critical rbac.everyone pods: - → get, list"},
		},
		{
			"everybody without a login, as a user",
			[]string{clusterRole(pods)},
			[]string{clusterRole(pods), rbacHead + "kind: RoleBinding\nmetadata: {name: all, namespace: ops}\nroleRef: {kind: ClusterRole, name: demo}\nsubjects: [{kind: User, name: 'system:anonymous'}]"},
			[]string{"critical rbac.everyone pods: - → get, list"},
		},
		{
			"a permission that all accounts have",
			[]string{clusterRole(), binding, account},
			[]string{clusterRole(rule("authorization.k8s.io", "selfsubjectaccessreviews", "create"), "{nonResourceURLs: [/version], verbs: [get]}"), binding, account},
			nil,
		},
		{
			"account renamed",
			[]string{clusterRole(pods), binding, account},
			[]string{clusterRole(pods), strings.ReplaceAll(binding, "ServiceAccount, name: demo", "ServiceAccount, name: other"), strings.ReplaceAll(account, "name: demo", "name: other")},
			[]string{"info rbac.account-renamed: demo → other"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := lines(compareManifests(t, doc(c.before...), doc(c.after...)))
			if d := cmp.Diff(append([]string{}, c.want...), got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// named returns a rule with resourceNames.
func named(groups, resources, verbs, names string) string {
	return strings.TrimSuffix(rule(groups, resources, verbs), "}") + ", resourceNames: [" + names + "]}"
}

// TestNamedPermissions checks that the severity of a permission on one named object depends on that object.
func TestNamedPermissions(t *testing.T) {
	const authz = "rbac.authorization.k8s.io"
	strong := doc(
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: strong, namespace: ops}",
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: weak, namespace: ops}",
		strings.NewReplacer("metadata: {name: demo", "metadata: {name: strong", "ClusterRole, name: demo", "ClusterRole, name: cluster-admin", "ServiceAccount, name: demo", "ServiceAccount, name: strong").Replace(binding),
		strings.Replace(clusterRole(rule("''", "configmaps", "get")), "name: demo", "name: small", 1),
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: link, namespace: ops}",
		strings.NewReplacer("metadata: {name: demo", "metadata: {name: link", "ClusterRole, name: demo", "ClusterRole, name: link", "ServiceAccount, name: demo", "ServiceAccount, name: link").Replace(binding),
		strings.Replace(clusterRole(named("''", "serviceaccounts/token", "create", "strong")), "name: demo", "name: link", 1),
	)
	in := func(namespace string) string {
		return strings.Replace(local, "name: demo, namespace: ops}\n", "name: demo, namespace: "+namespace+"}\n", 1)
	}
	cases := []struct{ rule, by, want string }{
		{named("''", "groups", "impersonate", "'system:masters'"), binding, `critical rbac.impersonate groups "system:masters": - → impersonate`},
		{named("''", "users", "impersonate", "alice"), binding, `high rbac.impersonate users "alice": - → impersonate`},
		{named("''", "users", "impersonate", "'system:serviceaccount:ops:strong'"), binding, `critical rbac.impersonate users "system:serviceaccount:ops:strong": - → impersonate`},
		{named("''", "users", "impersonate", "'system:kube-controller-manager'"), binding, `critical rbac.impersonate users "system:kube-controller-manager": - → impersonate`},
		{named("''", "serviceaccounts", "impersonate", "strong"), in("ops"), `critical rbac.impersonate serviceaccounts "strong": - → impersonate`},
		{named("''", "serviceaccounts", "impersonate", "strong"), in("other"), `high rbac.impersonate serviceaccounts "strong": - → impersonate`},
		{rule("''", "serviceaccounts", "impersonate"), in("other"), `high rbac.impersonate serviceaccounts: - → impersonate`},
		{named("authentication.k8s.io", "groups", "'impersonate:user-info'", "admins"), binding, `high rbac.impersonate groups.authentication.k8s.io "admins": - → impersonate:user-info`},
		{named(authz, "clusterroles", "bind", "cluster-admin"), binding, `critical rbac.escalate clusterroles.rbac.authorization.k8s.io "cluster-admin": - → bind`},
		{named(authz, "clusterroles", "bind", "edit"), binding, `critical rbac.escalate clusterroles.rbac.authorization.k8s.io "edit": - → bind`},
		{named(authz, "clusterroles", "bind", "small"), binding, `medium rbac.escalate clusterroles.rbac.authorization.k8s.io "small": - → bind`},
		{named(authz, "clusterroles", "bind", "unknown"), binding, `high rbac.escalate clusterroles.rbac.authorization.k8s.io "unknown": - → bind`},
		{named(authz, "clusterroles", "escalate", "demo"), binding, `critical rbac.escalate clusterroles.rbac.authorization.k8s.io "demo": - → escalate`},
		{named("''", "serviceaccounts/token", "create", "strong"), binding, `critical rbac.tokens serviceaccounts/token "strong": - → create`},
		{named("''", "serviceaccounts/token", "create", "link"), binding, `critical rbac.tokens serviceaccounts/token "link": - → create`},
		{named("''", "serviceaccounts/token", "create", "weak"), binding, `high rbac.tokens serviceaccounts/token "weak": - → create`},
		{named("''", "serviceaccounts/token", "create", "demo"), binding, `medium rbac.tokens serviceaccounts/token "demo": - → create`},
		{named("''", "serviceaccounts/token", "create", "default"), binding, `high rbac.tokens serviceaccounts/token "default": - → create`},
		{rule("''", "serviceaccounts/token", "create"), in("ops"), `critical rbac.tokens serviceaccounts/token: - → create`},
		{named("''", "serviceaccounts/token", "create", "clusterrole-aggregation-controller"), in("kube-system"), `critical rbac.tokens serviceaccounts/token "clusterrole-aggregation-controller": - → create`},
		{named("admissionregistration.k8s.io", "validatingwebhookconfigurations", "patch", "theirs"), binding, `high rbac.webhook-write validatingwebhookconfigurations.admissionregistration.k8s.io "theirs": - → patch`},
		{named("admissionregistration.k8s.io", "validatingadmissionpolicies", "patch", "theirs"), binding, `high rbac.webhook-write validatingadmissionpolicies.admissionregistration.k8s.io "theirs": - → patch`},
		{named("certificates.k8s.io", "signers", "approve", "kubernetes.io/kube-apiserver-client"), binding, `high rbac.csr-approve signers.certificates.k8s.io "kubernetes.io/kube-apiserver-client": - → approve`},
		{named("certificates.k8s.io", "signers", "approve", "demo.io/*"), binding, `medium rbac.csr-approve signers.certificates.k8s.io "demo.io/*": - → approve`},
		{named("''", "secrets", "get", "mine"), binding, `medium rbac.secrets secrets "mine": - → get`},
		{named("'*'", "'*'", "'*'", "'system:masters'"), binding, `critical rbac.escalate *.* "system:masters": - → *`},
		{rule(authz, "'*'", "'*'"), binding, `critical rbac.escalate *.rbac.authorization.k8s.io: - → *`},
		{rule("''", "'*'", "get"), binding, `critical rbac.nodes-proxy *: - → get`},
		{rule("apps", "'*'", "'*'"), in("ops"), `high rbac.workload-write *.apps: - → *`},
	}
	for _, c := range cases {
		got := lines(compareManifests(t, doc(clusterRole(), c.by, account, strong), doc(clusterRole(c.rule), c.by, account, strong)))
		if d := cmp.Diff([]string{c.want}, got); d != "" {
			t.Errorf("%s: -want +got\n%s", c.rule, d)
		}
	}
}

// TestRolesOfOthers checks rules that are added to roles of other tools or of Kubernetes, whose
// bindings are not in the tree.
func TestRolesOfOthers(t *testing.T) {
	role := func(name, rest string, rules ...string) string {
		return rbacHead + "kind: ClusterRole\nmetadata: {name: '" + name + "'" + rest + "}\nrules: [" + strings.Join(rules, ", ") + "]"
	}
	selects := func(name, label, selector string) string {
		return role(name, ", labels: {"+label+": 'true'}") + "\naggregationRule: {clusterRoleSelectors: [{matchLabels: {" + selector + ": 'true'}}]}"
	}
	widgets, secrets := rule("demo.io", "widgets", "get"), rule("''", "secrets", "get")
	crossplane := role("x", ", labels: {rbac.crossplane.io/aggregate-to-crossplane: 'true'}", widgets)
	cases := []struct {
		name, before, after string
		want                []string
	}{
		{"another tool's label", account, doc(account, crossplane), []string{"high rbac.tool-role widgets.demo.io: - → get"}},
		{"another tool's label, read Secrets", account, doc(account, strings.Replace(crossplane, widgets, secrets, 1)), []string{"high rbac.secrets secrets: - → get"}},
		{"the tool is in the tree", doc(account, binding, selects("demo", "a", "rbac.crossplane.io/aggregate-to-crossplane")), doc(account, binding, selects("demo", "a", "rbac.crossplane.io/aggregate-to-crossplane"), crossplane), []string{"low rbac.gained widgets.demo.io: - → get"}},
		{"another tool's name", account, doc(account, role("argocd-server", "", widgets)), []string{"medium rbac.tool-role widgets.demo.io: - → get"}},
		{"another tool's name, no rules", account, doc(account, role("argocd-server", "")), []string{"medium rbac.tool-role"}},
		{"another tool's name, everything", account, doc(account, role("crossplane", "", rule("'*'", "'*'", "'*'"))), []string{"critical rbac.cluster-admin *.*: - → *"}},
		{"another tool's name, bound here", account, doc(account, role("argocd-server", "", widgets), strings.ReplaceAll(binding, "ClusterRole, name: demo", "ClusterRole, name: argocd-server")), []string{"low rbac.gained widgets.demo.io: - → get"}},
		{"the name of the operator itself", account, doc(account, role("demo-editor", "", widgets)), []string{"low rbac.gained widgets.demo.io: - → get"}},
		{"a role that is not bound here, everything", account, doc(account, role("metrics-server", "", rule("'*'", "'*'", "'*'"))), []string{"critical rbac.cluster-admin *.*: - → *"}},
		{"a role of its own that is not bound here, grows", doc(account, role("demo-editor", "", widgets)), doc(account, role("demo-editor", "", widgets, secrets)), []string{"high rbac.secrets secrets: - → get"}},
		{"a role in kube-system that is not bound here", account, doc(account, strings.Replace(rbacHead, "ClusterRole", "Role", 1)+"kind: Role\nmetadata: {name: x, namespace: kube-system}\nrules: ["+secrets+"]"), []string{"high objects.foreign-namespace metadata.namespace: - → kube-system", "high rbac.secrets secrets: - → get"}},
		{"a role that is no longer bound", doc(account, binding, clusterRole(secrets)), doc(account, clusterRole(secrets)), []string{"info rbac.lost all namespaces: get secrets → -"}},
		{"the API that OLM adds to the default roles", account, doc(account, role("x", ", labels: {rbac.authorization.k8s.io/aggregate-to-view: 'true', olm.opgroup.permissions/aggregate-to-a1-view: 'true'}", widgets)), []string{"low rbac.aggregated widgets.demo.io: - → get"}},
		{"a role of Kubernetes that all users have", account, doc(account, role("system:basic-user", "", secrets)), []string{"critical rbac.everyone secrets: - → get", "high objects.reserved-name metadata.name: - → system:basic-user"}},
		{"a cycle", account, doc(account, selects("a", "a", "b"), selects("b", "b", "a")), []string{"critical rbac.aggregation-cycle aggregationRule: - → a, b"}},
		{"one that selects itself", account, doc(account, selects("a", "a", "a")), nil},
		{"rules through two roles", doc(account, binding, selects("demo", "a", "b"), selects("b", "b", "c")), doc(account, binding, selects("demo", "a", "b"), selects("b", "b", "c"), role("c", ", labels: {c: 'true'}", secrets)), []string{"high rbac.secrets secrets: - → get"}},
	}
	for _, c := range cases {
		if d := cmp.Diff(append([]string{}, c.want...), lines(compareManifests(t, c.before, c.after))); d != "" {
			t.Errorf("%s: -want +got\n%s", c.name, d)
		}
	}
	// The role view gets the permissions of edit.
	got := lines(compareManifests(t, account, doc(account, selects("a", "rbac.authorization.k8s.io/aggregate-to-view", "rbac.authorization.k8s.io/aggregate-to-edit"))))
	if len(got) == 0 || got[0] != "critical rbac.aggregation-cycle aggregationRule: - → a, view" || !slices.Contains(got, "critical rbac.tokens serviceaccounts/token: - → create") {
		t.Errorf("a cycle with a role of Kubernetes: %v", got)
	}
}

func deployment(spec string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: demo, namespace: ops}\nspec:\n  selector: {matchLabels: {app: demo}}\n  template: {metadata: {labels: {app: demo}}, spec: " + spec + "}"
}

func container(rest string) string {
	return deployment("{containers: [{name: m, image: 'quay.io/a/b@sha256:1'" + rest + "}]}")
}

func TestWorkloads(t *testing.T) {
	img := func(ref string) string { return deployment("{containers: [{name: m, image: '" + ref + "'}]}") }
	ns := func(level string) string {
		return "apiVersion: v1\nkind: Namespace\nmetadata: {name: ops, labels: {pod-security.kubernetes.io/enforce: " + level + "}}"
	}
	cases := []struct {
		name          string
		before, after []string
		want          []string
	}{
		{"digest", []string{img("quay.io/a/b@sha256:1")}, []string{img("quay.io/a/b@sha256:2")}, []string{"info images.changed container m: quay.io/a/b@sha256:1 → quay.io/a/b@sha256:2"}},
		{
			"registry",
			[]string{img("quay.io/a/b@sha256:1")},
			[]string{img("ghcr.io/a/b@sha256:1")},
			[]string{"medium images.registry-changed container m: quay.io/a/b@sha256:1 → ghcr.io/a/b@sha256:1", "info images.removed container m: quay.io/a/b@sha256:1 → -"}[:1],
		},
		{"repository", []string{img("quay.io/a/b@sha256:1")}, []string{img("quay.io/a/c@sha256:1")}, []string{"medium images.repository-changed container m: quay.io/a/b@sha256:1 → quay.io/a/c@sha256:1"}},
		{
			"digest removed",
			[]string{img("quay.io/a/b@sha256:1")},
			[]string{img("quay.io/a/b:v1")},
			[]string{"medium images.digest-lost container m: quay.io/a/b@sha256:1 → quay.io/a/b:v1", "info images.changed container m: quay.io/a/b@sha256:1 → quay.io/a/b:v1"},
		},
		{"tag moved", []string{img("quay.io/a/b:v1@sha256:1")}, []string{img("quay.io/a/b:v1@sha256:2")}, []string{"low images.same-tag container m: quay.io/a/b:v1@sha256:1 → quay.io/a/b:v1@sha256:2"}},
		{"docker.io made explicit", []string{img("nginx:1")}, []string{img("docker.io/library/nginx:1")}, []string{"info objects.changed"}[:0]},
		{"related image and argument", []string{container("")}, []string{container(", env: [{name: RELATED_IMAGE_X, value: 'quay.io/x/x:1'}], args: ['--img=quay.io/y/y@sha256:3']")}, []string{
			"low images.new argument --img: - → quay.io/y/y@sha256:3", "low images.new env RELATED_IMAGE_X: - → quay.io/x/x:1", "low images.not-by-digest env RELATED_IMAGE_X: - → quay.io/x/x:1",
		}},
		{"host", []string{container("")}, []string{deployment("{hostNetwork: true, hostPID: true, hostIPC: true, volumes: [{name: v, hostPath: {path: /}}], containers: [{name: m, image: 'quay.io/a/b@sha256:1', securityContext: {privileged: true, capabilities: {add: [SYS_ADMIN]}}, ports: [{containerPort: 1, hostPort: 80}]}]}")}, []string{
			"high pods.capability m securityContext.capabilities.add: - → SYS_ADMIN",
			"high pods.host-ipc hostIPC: - → true", "high pods.host-network hostNetwork: - → true", "high pods.host-path volumes.v: - → /", "high pods.host-pid hostPID: - → true", "high pods.privileged m securityContext.privileged: - → true",
			"medium pods.host-port m ports: - → 80", "medium pods.level-raised spec: baseline → privileged",
		}},
		{"hardening removed", []string{container(", securityContext: {runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}")}, []string{container(", securityContext: {runAsNonRoot: true}")}, []string{
			"medium pods.hardening-lost m securityContext.allowPrivilegeEscalation: false → -", "medium pods.hardening-lost m securityContext.capabilities.drop: ALL → -",
			"medium pods.hardening-lost m securityContext.seccompProfile: RuntimeDefault → -", "medium pods.level-raised spec: restricted → baseline",
		}},
		{"refused before as well", []string{ns("restricted"), container("")}, []string{ns("restricted"), container(", securityContext: {runAsUser: 7}")}, nil},
		{"a new privileged workload", nil, []string{container(", securityContext: {privileged: true}")}, []string{
			"high pods.privileged m securityContext.privileged: - → true", "medium pods.level-raised spec: - → privileged", "low images.new container m: - → quay.io/a/b@sha256:1",
		}},
		{"a new workload without privileges", nil, []string{container("")}, []string{"low images.new container m: - → quay.io/a/b@sha256:1"}},
		{"refused by the namespace", []string{ns("restricted")}, []string{ns("restricted"), container("")}, []string{"high pods.level-refused spec: - → baseline"}},
		{"allowed by the namespace", []string{ns("baseline")}, []string{ns("baseline"), container("")}, []string{"low images.new container m: - → quay.io/a/b@sha256:1"}[:0]},
		{"namespace tightened", []string{ns("baseline"), container("")}, []string{ns("restricted"), container("")}, []string{
			"high pods.level-refused spec: baseline → baseline", "medium namespace.security-level metadata.labels.pod-security.kubernetes.io/enforce: baseline → restricted",
		}},
		{"settings", []string{container(", env: [{name: A, value: '1'}], args: [--x=1, --y], resources: {limits: {memory: 1Gi}}")}, []string{container(", env: [{name: A, value: '2'}], args: [--x=2], resources: {limits: {memory: 2Gi}}")}, []string{
			"info pods.arguments m args: --x=1 --y → --x=2", "info pods.environment m env: A=1 → A=2", `info pods.resources m resources: {"limits":{"memory":"1Gi"}} → {"limits":{"memory":"2Gi"}}`,
		}},
		{
			"the rest",
			[]string{container("")},
			[]string{container(", ports: [{name: http, containerPort: 80}]")},
			[]string{`info objects.changed: - → spec.template.spec.containers[m].ports=[{"containerPort":80,"name":"http","protocol":"TCP"}]`},
		},
		{"capability removed", []string{container(", securityContext: {capabilities: {add: [CHOWN]}}")}, []string{container("")}, []string{"info pods.capability-removed m securityContext.capabilities.add: CHOWN → -"}},
		{"no seccomp profile", []string{container("")}, []string{container(", securityContext: {seccompProfile: {type: Unconfined}}")}, []string{"high pods.unconfined securityContext.seccompProfile.type: - → Unconfined", "medium pods.level-raised spec: baseline → privileged"}},
		{"a Secret of no operator", []string{container("")}, []string{container(", envFrom: [{secretRef: {name: others}}]")}, []string{"high pods.secret containers.m: - → others"}},
		{"a driver on the node", []string{container("")}, []string{deployment("{volumes: [{name: v, flexVolume: {driver: a/b}}], containers: [{name: m, image: 'quay.io/a/b@sha256:1'}]}")}, []string{"high pods.volume volumes.v: - → read-only"}},
		{"account", []string{container("")}, []string{deployment("{serviceAccountName: z, containers: [{name: m, image: 'quay.io/a/b@sha256:1'}]}")}, []string{"high pods.account-changed serviceAccountName: default → z"}},
		{"priority", []string{container("")}, []string{deployment("{priorityClassName: system-cluster-critical, containers: [{name: m, image: 'quay.io/a/b@sha256:1'}]}")}, []string{"high priority.class priorityClassName: - → system-cluster-critical"}},
		{"selector", []string{container("")}, []string{strings.ReplaceAll(container(""), "app: demo}}", "app: other}}")}, []string{
			`high immutable.field-changed spec.selector: {"matchLabels":{"app":"demo"}} → {"matchLabels":{"app":"other"}}`,
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, l := range lines(compareManifests(t, doc(c.before...), doc(c.after...))) {
				if strings.Contains(c.name, "namespace") && strings.Contains(l, "images.") || c.name != "the rest" && strings.Contains(l, "objects.changed") {
					continue
				}
				got = append(got, l)
			}
			if d := cmp.Diff(append([]string(nil), c.want...), got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func hook(rest string) string {
	return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: demo}\nwebhooks: [{name: v.demo.io, " + rest + "}]"
}

func TestWebhooks(t *testing.T) {
	const (
		own  = "rules: [{apiGroups: [demo.io], apiVersions: [v1], resources: [widgets], operations: [CREATE]}]"
		core = "rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]"
		sel  = ", namespaceSelector: {matchLabels: {a: b}}"
	)
	cases := []struct {
		name, before, after string
		want                []string
	}{
		{"added", "", hook(own), []string{"high webhook.added v.demo.io: - → create widgets.demo.io"}},
		{"added on pods", "", hook(core), []string{"high webhook.added v.demo.io: - → create pods", "high webhook.wide v.demo.io rules: - → create pods"}},
		{"added on pods with a selector", "", hook(core + sel), []string{"high webhook.added v.demo.io: - → create pods"}},
		{"removed", hook(own), "", []string{"low webhook.removed v.demo.io: create widgets.demo.io → -"}},
		{"to Fail", hook(own + ", failurePolicy: Ignore"), hook(own), []string{"high webhook.failure-policy v.demo.io failurePolicy: Ignore → Fail"}},
		{"to Ignore", hook(own), hook(own + ", failurePolicy: Ignore"), []string{"high webhook.failure-policy-loosened v.demo.io failurePolicy: Fail → Ignore"}},
		{"widened", hook(own), hook(strings.ReplaceAll(own, "[CREATE]", "['*']")), []string{"high webhook.rules-widened v.demo.io rules: create widgets.demo.io/v1 → connect widgets.demo.io/v1, create widgets.demo.io/v1, delete widgets.demo.io/v1, update widgets.demo.io/v1"}},
		{"narrowed", hook(strings.ReplaceAll(own, "[widgets]", "['*']")), hook(own), []string{"medium webhook.rules-narrowed v.demo.io rules: create *.demo.io/v1 → create widgets.demo.io/v1"}},
		{"selector removed", hook(own + sel), hook(own), []string{`high webhook.selector-lost v.demo.io namespaceSelector: {"matchLabels":{"a":"b"}} → -`}},
		{"another selector", hook(own + sel), hook(own + strings.Replace(sel, "a: b", "a: c", 1)), []string{`high webhook.selector-changed v.demo.io namespaceSelector: {"matchLabels":{"a":"b"}} → {"matchLabels":{"a":"c"}}`}},
		{"selector added", hook(own), hook(own + sel), []string{`medium webhook.selector-added v.demo.io namespaceSelector: - → {"matchLabels":{"a":"b"}}`}},
		{"defaults made explicit", hook(own), hook(own + ", failurePolicy: Fail, timeoutSeconds: 10, matchPolicy: Equivalent, namespaceSelector: {}"), nil},
		{"timeout", hook(own), hook(own + ", timeoutSeconds: 30"), []string{"low webhook.timeout v.demo.io timeoutSeconds: 10 → 30"}},
		{"conditions", hook(own + ", matchConditions: [{name: a, expression: 'true'}]"), hook(own), []string{`high webhook.conditions-changed v.demo.io matchConditions: [{"expression":"true","name":"a"}] → -`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(append([]string{}, c.want...), lines(compareManifests(t, c.before, c.after))); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestData(t *testing.T) {
	obj := func(apiVersion, kind, rest string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: demo, namespace: ops}\n" + rest
	}
	cases := []struct {
		name, before, after string
		want                []string
	}{
		{"claim", obj("v1", "PersistentVolumeClaim", "spec: {}"), "", []string{"high data.volume-claim-removed"}},
		{"namespace", "apiVersion: v1\nkind: Namespace\nmetadata: {name: demo}", "", []string{"critical data.namespace-removed"}},
		{"stateful set", obj("apps/v1", "StatefulSet", "spec: {}"), "", []string{"medium data.stateful-set-removed"}},
		{"definition", "", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.demo.io}\nspec: {group: demo.io, scope: Cluster, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true, storage: true}]}\n", []string{"info data.crd-added: - → v1"}},
		{"secret", obj("v1", "Secret", ""), "", []string{"medium data.secret-removed"}},
		{"budget", obj("policy/v1", "PodDisruptionBudget", "spec: {}") + "\n---\n" + obj("v1", "ConfigMap", ""), obj("v1", "ConfigMap", ""), []string{"high objects.removed"}},
		{"network policy", obj("networking.k8s.io/v1", "NetworkPolicy", "spec: {}"), "", []string{"high data.policy-removed"}},
		{
			"role of a binding", obj("rbac.authorization.k8s.io/v1", "RoleBinding", "roleRef: {kind: Role, name: a}"), obj("rbac.authorization.k8s.io/v1", "RoleBinding", "roleRef: {kind: Role, name: b}"),
			[]string{`high immutable.field-changed roleRef: {"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"a"} → {"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"b"}`},
		},
		{
			"type of a Secret, without its content", obj("v1", "Secret", "immutable: true\ndata: {a: c2VjcmV0}"), obj("v1", "Secret", "immutable: true\ndata: {a: b3RoZXI=}"),
			[]string{"high immutable.field-changed data", "low objects.changed"},
		},
		{
			"claim grows", obj("v1", "PersistentVolumeClaim", "spec: {resources: {requests: {storage: 1Gi}}}"), obj("v1", "PersistentVolumeClaim", "spec: {resources: {requests: {storage: 2Gi}}}"),
			[]string{"info objects.changed: spec.resources.requests.storage=1Gi → spec.resources.requests.storage=2Gi"},
		},
		{
			"service name", obj("apps/v1", "StatefulSet", "spec: {serviceName: a, replicas: 1}"), obj("apps/v1", "StatefulSet", "spec: {serviceName: b, replicas: 2}"),
			[]string{"high immutable.field-changed spec.serviceName: a → b", "info pods.replicas spec.replicas: 1 → 2"},
		},
		{
			"load balancer", obj("v1", "Service", "spec: {ports: []}"), obj("v1", "Service", "spec: {type: LoadBalancer, ports: []}"),
			[]string{"medium objects.exposed spec.type: ClusterIP → LoadBalancer", "info objects.changed: - → spec.allocateLoadBalancerNodePorts=true spec.externalTrafficPolicy=Cluster"},
		},
		{"namespace of others", account, doc(account, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: argocd}"), []string{"high objects.foreign-namespace metadata.namespace: - → argocd"}},
		{"reserved role", "", rbacHead + "kind: ClusterRole\nmetadata: {name: 'system:node'}\nrules: []\n", []string{"high objects.reserved-name metadata.name: - → system:node"}},
		{"reserved namespace", "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, labels: {quayside.dev/install-namespace: ops, quayside.dev/package: demo}}\n", []string{"high objects.reserved-name metadata.name: - → kube-system", "info namespace.added"}},
		{"namespace that the user chose", "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: openshift-demo, labels: {quayside.dev/install-namespace: openshift-demo}}\n", []string{"info namespace.added"}},
		{"reserved API", "", "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.apps}\nspec: {group: apps, version: v1}\n", []string{"critical objects.added", "high objects.reserved-name metadata.name: - → v1.apps"}},
		{"Service becomes headless", obj("v1", "Service", "spec: {}"), obj("v1", "Service", "spec: {clusterIP: None}"), []string{"high immutable.field-changed spec.clusterIP: - → None"}},
		{"priority class", "", "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: demo}\nvalue: 7\n", []string{"medium priority.class: - → 7"}},
		{"a label that quayside does not write", obj("v1", "ConfigMap", ""), strings.Replace(obj("v1", "ConfigMap", ""), "name: demo,", "name: demo, labels: {quayside.dev/version: '2'},", 1), []string{"high metadata.obeyed metadata.labels.quayside.dev/version: - → 2"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := lines(compareManifests(t, c.before, c.after))
			for i := range got {
				got[i] = strings.TrimSpace(got[i])
			}
			if d := cmp.Diff(append([]string{}, c.want...), got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// TestOddValuesOfFixedFields compares immutable fields with values of unexpected types.
func TestOddValuesOfFixedFields(t *testing.T) {
	secret := func(kind string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ops}\ntype: " + kind
	}
	r := compareManifests(t, secret("{a: b}"), secret("{a: c}"))
	if d := cmp.Diff([]string{`high immutable.field-changed type: {"a":"b"} → {"a":"c"}`, "low objects.changed"}, lines(r)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
