package diff

import (
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
		{"nothing but order", []string{clusterRole(pods, rule("apps", "deployments", "get")), binding, account}, []string{account, binding, clusterRole(rule("apps", "deployments", "get"), pods)}, nil},
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
			[]string{"critical rbac.cluster-admin *.*: - → *", `high immutable.field-changed roleRef: {"kind":"ClusterRole","name":"demo"} → {"kind":"ClusterRole","name":"cluster-admin"}`, "medium rbac.urls *: - → *"},
		},
		{"every resource of a group", []string{clusterRole(), binding, account}, []string{clusterRole(rule("apps", "'*'", "get")), binding, account}, []string{"high rbac.wildcard *.apps: - → get"}},
		{
			"a wildcard covers what was there",
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
		{"tokens", []string{clusterRole(), binding, account}, []string{clusterRole(rule("''", "serviceaccounts/token", "create")), binding, account}, []string{"high rbac.tokens serviceaccounts/token: - → create"}},
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
		{"pods anywhere", []string{clusterRole(), binding, account}, []string{clusterRole(rule("''", "pods", "create")), binding, account}, []string{"high rbac.workload-write pods: - → create"}},
		{"pods at home", []string{clusterRole(), local, account}, []string{clusterRole(rule("''", "pods", "create")), local, account}, []string{"low rbac.gained pods: - → create"}},
		{
			"definitions",
			[]string{clusterRole(), binding, account},
			[]string{clusterRole(rule("apiextensions.k8s.io", "customresourcedefinitions", "delete")), binding, account},
			[]string{"high rbac.crd-write customresourcedefinitions.apiextensions.k8s.io: - → delete"},
		},
		{"objects that engines apply", []string{clusterRole(), binding, account}, []string{clusterRole(rule("argoproj.io", "applications", "create")), binding, account}, []string{"high rbac.engine-write applications.argoproj.io: - → create"}},
		{"privileged constraints", []string{clusterRole(), binding, account}, []string{clusterRole("{apiGroups: [security.openshift.io], resources: [securitycontextconstraints], resourceNames: [privileged], verbs: [use]}"), binding, account}, []string{`high rbac.constraints-use securitycontextconstraints.security.openshift.io "privileged": - → use`}},
		{"services of the API", []string{clusterRole(), binding, account}, []string{clusterRole(rule("apiregistration.k8s.io", "apiservices", "update")), binding, account}, []string{"high rbac.apiservice-write apiservices.apiregistration.k8s.io: - → update"}},
		{"volumes", []string{clusterRole(), binding, account}, []string{clusterRole(rule("''", "persistentvolumes", "create")), binding, account}, []string{"high rbac.volume-write persistentvolumes: - → create"}},
		{"nodes", []string{clusterRole(), binding, account}, []string{clusterRole(rule("''", "nodes", "delete")), binding, account}, []string{"medium rbac.node-write nodes: - → delete"}},
		{"namespaces", []string{clusterRole(), binding, account}, []string{clusterRole(rule("''", "namespaces", "delete")), binding, account}, []string{"medium rbac.namespace-write namespaces: - → delete"}},
		{"metrics", []string{clusterRole(), binding, account}, []string{clusterRole("{nonResourceURLs: [/metrics], verbs: [get]}"), binding, account}, []string{"low rbac.gained /metrics: - → get"}},
		{"an unknown role", []string{clusterRole(), binding, account}, []string{clusterRole(), account, strings.ReplaceAll(binding, "ClusterRole, name: demo", "ClusterRole, name: view")}, []string{`high immutable.field-changed roleRef: {"kind":"ClusterRole","name":"demo"} → {"kind":"ClusterRole","name":"view"}`, "medium rbac.unknown-role ClusterRole view: - → ClusterRole view"}},
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
			[]string{"low rbac.gained pods: - → get, list"},
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
			"digest lost",
			[]string{img("quay.io/a/b@sha256:1")},
			[]string{img("quay.io/a/b:v1")},
			[]string{"medium images.digest-lost container m: quay.io/a/b@sha256:1 → quay.io/a/b:v1", "info images.changed container m: quay.io/a/b@sha256:1 → quay.io/a/b:v1"},
		},
		{"tag moved", []string{img("quay.io/a/b:v1@sha256:1")}, []string{img("quay.io/a/b:v1@sha256:2")}, []string{"low images.same-tag container m: quay.io/a/b:v1@sha256:1 → quay.io/a/b:v1@sha256:2"}},
		{"docker.io is spelt out", []string{img("nginx:1")}, []string{img("docker.io/library/nginx:1")}, []string{"info objects.changed"}[:0]},
		{"related image and argument", []string{container("")}, []string{container(", env: [{name: RELATED_IMAGE_X, value: 'quay.io/x/x:1'}], args: ['--img=quay.io/y/y@sha256:3']")}, []string{
			"low images.new argument --img: - → quay.io/y/y@sha256:3", "low images.new env RELATED_IMAGE_X: - → quay.io/x/x:1", "low images.not-by-digest env RELATED_IMAGE_X: - → quay.io/x/x:1",
		}},
		{"host", []string{container("")}, []string{deployment("{hostNetwork: true, hostPID: true, hostIPC: true, volumes: [{name: v, hostPath: {path: /}}], containers: [{name: m, image: 'quay.io/a/b@sha256:1', securityContext: {privileged: true, capabilities: {add: [SYS_ADMIN]}}, ports: [{containerPort: 1, hostPort: 80}]}]}")}, []string{
			"high pods.capability m securityContext.capabilities.add: - → SYS_ADMIN",
			"high pods.host-ipc hostIPC: - → true", "high pods.host-network hostNetwork: - → true", "high pods.host-path volumes.v: - → /", "high pods.host-pid hostPID: - → true", "high pods.privileged m securityContext.privileged: - → true",
			"medium pods.host-port m ports: - → 80", "medium pods.level-raised spec: baseline → privileged",
		}},
		{"hardening lost", []string{container(", securityContext: {runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}")}, []string{container(", securityContext: {runAsNonRoot: true}")}, []string{
			"medium pods.hardening-lost m securityContext.allowPrivilegeEscalation: false → -", "medium pods.hardening-lost m securityContext.capabilities.drop: ALL → -",
			"medium pods.hardening-lost m securityContext.seccompProfile: RuntimeDefault → -", "medium pods.level-raised spec: restricted → baseline",
		}},
		{"refused before as well", []string{ns("restricted"), container("")}, []string{ns("restricted"), container(", securityContext: {runAsUser: 7}")}, nil},
		{"a new one that needs everything", nil, []string{container(", securityContext: {privileged: true}")}, []string{
			"high pods.privileged m securityContext.privileged: - → true", "medium pods.level-raised spec: - → privileged", "low images.new container m: - → quay.io/a/b@sha256:1",
		}},
		{"a new one that needs no privilege", nil, []string{container("")}, []string{"low images.new container m: - → quay.io/a/b@sha256:1"}},
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
			[]string{`info objects.changed: - → spec.template.spec.containers[m].ports=[{"containerPort":80,"name":"http"}]`},
		},
		{"capability given back", []string{container(", securityContext: {capabilities: {add: [CHOWN]}}")}, []string{container("")}, []string{"info pods.capability-removed m securityContext.capabilities.add: CHOWN → -"}},
		{"no seccomp profile", []string{container("")}, []string{container(", securityContext: {seccompProfile: {type: Unconfined}}")}, []string{"high pods.unconfined securityContext.seccompProfile.type: - → Unconfined", "medium pods.level-raised spec: baseline → privileged"}},
		{"a Secret of nobody", []string{container("")}, []string{container(", envFrom: [{secretRef: {name: others}}]")}, []string{"medium pods.secret containers.m: - → others"}},
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
		{"widened", hook(own), hook(strings.ReplaceAll(own, "[CREATE]", "['*']")), []string{"medium webhook.rules-widened v.demo.io rules: create widgets.demo.io/v1 → * widgets.demo.io/v1"}},
		{"narrowed", hook(strings.ReplaceAll(own, "[widgets]", "['*']")), hook(own), []string{"info webhook.rules-narrowed v.demo.io rules: create *.demo.io/v1 → create widgets.demo.io/v1"}},
		{"selector lost", hook(own + sel), hook(own), []string{`high webhook.selector-lost v.demo.io namespaceSelector: {"matchLabels":{"a":"b"}} → -`}},
		{"another selector", hook(own + sel), hook(own + strings.Replace(sel, "a: b", "a: c", 1)), []string{`medium webhook.selector-changed v.demo.io namespaceSelector: {"matchLabels":{"a":"b"}} → {"matchLabels":{"a":"c"}}`}},
		{"selector won", hook(own), hook(own + sel), []string{`info webhook.selector-added v.demo.io namespaceSelector: - → {"matchLabels":{"a":"b"}}`}},
		{"defaults spelt out", hook(own), hook(own + ", failurePolicy: Fail, timeoutSeconds: 10, matchPolicy: Equivalent, namespaceSelector: {}"), nil},
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
			[]string{`high immutable.field-changed roleRef: {"kind":"Role","name":"a"} → {"kind":"Role","name":"b"}`},
		},
		{
			"type of a secret, and nothing of its content", obj("v1", "Secret", "immutable: true\ndata: {a: c2VjcmV0}"), obj("v1", "Secret", "immutable: true\ndata: {a: b3RoZXI=}"),
			[]string{"high immutable.field-changed data", "low objects.changed"},
		},
		{
			"claim grows", obj("v1", "PersistentVolumeClaim", "spec: {resources: {requests: {storage: 1Gi}}}"), obj("v1", "PersistentVolumeClaim", "spec: {resources: {requests: {storage: 2Gi}}}"),
			[]string{"info objects.changed: spec.resources.requests.storage=1Gi → spec.resources.requests.storage=2Gi"},
		},
		{
			"service name", obj("apps/v1", "StatefulSet", "spec: {serviceName: a, replicas: 1}"), obj("apps/v1", "StatefulSet", "spec: {serviceName: b, replicas: 2}"),
			[]string{"high immutable.field-changed spec.serviceName: a → b", "info objects.changed: spec.replicas=1 → spec.replicas=2"},
		},
		{
			"load balancer", obj("v1", "Service", "spec: {ports: []}"), obj("v1", "Service", "spec: {type: LoadBalancer, ports: []}"),
			[]string{"medium objects.exposed spec.type: - → LoadBalancer"},
		},
		{"role of the cluster's own", "", rbacHead + "kind: ClusterRole\nmetadata: {name: 'system:node'}\nrules: []\n", []string{"high objects.reserved-name metadata.name: - → system:node"}},
		{"namespace of the cluster's own", "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, labels: {quayside.dev/install-namespace: ops, quayside.dev/package: demo}}\n", []string{"high objects.reserved-name metadata.name: - → kube-system", "info namespace.added"}},
		{"namespace that the user chose", "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: openshift-demo, labels: {quayside.dev/install-namespace: openshift-demo}}\n", []string{"info namespace.added"}},
		{"API of the cluster's own", "", "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.apps}\nspec: {group: apps, version: v1}\n", []string{"critical objects.added", "high objects.reserved-name metadata.name: - → v1.apps"}},
		{"clusterIP filled in", obj("v1", "Service", "spec: {}"), obj("v1", "Service", "spec: {clusterIP: None}"), []string{"info objects.changed: - → spec.clusterIP=None"}},
		{"priority class", "", "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: demo}\nvalue: 7\n", []string{"low priority.class: - → 7"}},
		{"owner labels are quayside's own", obj("v1", "ConfigMap", ""), strings.Replace(obj("v1", "ConfigMap", ""), "name: demo,", "name: demo, labels: {quayside.dev/version: '2'},", 1), nil},
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

// TestOddValuesOfFixedFields checks that values of unexpected types are compared.
func TestOddValuesOfFixedFields(t *testing.T) {
	secret := func(kind string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ops}\ntype: " + kind
	}
	r := compareManifests(t, secret("{a: b}"), secret("{a: c}"))
	if d := cmp.Diff([]string{`high immutable.field-changed type: {"a":"b"} → {"a":"c"}`, "low objects.changed"}, lines(r)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
