package diff

import (
	"strings"
	"testing"
)

// theirs are the labels of an object of another operator.
const theirs = ", labels: {quayside.dev/install-namespace: other, quayside.dev/package: thing}"

// TestCodeInConfigMaps changes code in ConfigMaps and Secrets that a container executes, without a
// change of the container.
func TestCodeInConfigMaps(t *testing.T) {
	const c0 = podEdit + "containers.0."
	volume := func(source string) string { return podEdit + "volumes.0 {name: data, " + source + "} then\n" }
	mount := func(at string) string { return c0 + "volumeMounts.0 {name: data, mountPath: " + at + "} then\n" }
	script := func(words string) string { return c0 + "command " + words + " then\n" }
	const other = "set ConfigMap demo data {a: '2'}"
	configMap := volume("configMap: {name: demo}")
	secret := "add {apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ops}, data: {a: YQ==}} then\n"
	edits{
		{High, configMap + mount("/scripts") + script("[sh, /scripts/a]") + other},
		{High, configMap + mount("/scripts") + script("[sh, -c, '. /scripts/a && run']") + other},
		{High, configMap + mount("/scripts") + script("[sh, -c, 'for f in /scripts/*.sh; do . $f; done']") + other},
		{High, configMap + mount("/scripts") + script("[/scripts/a]") + other},
		{High, configMap + mount("/scripts") + c0 + "workingDir /scripts then\n" + script("[python3, a]") + other},
		{High, configMap + mount("/scripts") + c0 + "env.0 {name: PYTHONPATH, value: '/x:/scripts'} then\n" + other},
		{High, configMap + mount("/scripts") + c0 + "livenessProbe {exec: {command: [sh, /scripts/a]}} then\n" + other},
		{High, configMap + mount("/usr/local/bin") + other},
		{High, volume("configMap: {name: demo, items: [{key: a, path: bin/run}]}") + mount("/scripts") + script("[/scripts/bin/run]") + other},
		{High, volume("projected: {sources: [{configMap: {name: demo}}]}") + mount("/scripts") + script("[bash, /scripts/a]") + other},
		{High, configMap + c0 + "volumeMounts.0 {name: data, mountPath: /run.sh, subPath: a} then\n" + script("[bash, /run.sh]") + other},
		{High, secret + volume("secret: {secretName: s}") + mount("/scripts") + script("[bash, /scripts/a]") + "set Secret s data {a: Yg==}"},
		{High, configMap + mount("/scripts") + script("[sh, /scripts/a]") + "del ConfigMap demo"},
		{Info, configMap + mount("/config") + other},
		{Info, configMap + mount("/config") + script("[/manager, --config=/config/a]") + other},
		{Info, configMap + mount("/config") + script("[sh, -c, run]") + other},

		{High, "set ConfigMap demo data {a: '1', CMD: run} then\n" + c0 + "envFrom [{configMapRef: {name: demo}}] then\n" + script("[sh, -c, $(CMD)]") + "set ConfigMap demo data {a: '1', CMD: evil}"},
		{High, "set ConfigMap demo data {a: '1', CMD: run} then\n" + c0 + "envFrom [{prefix: X_, configMapRef: {name: demo}}] then\n" + script("[sh, -c, 'exec $X_CMD']") + "set ConfigMap demo data {a: '1', CMD: evil}"},
		{High, "set ConfigMap demo data {a: '1', CMD: run} then\n" + c0 + "env.0 {name: A, valueFrom: {configMapKeyRef: {name: demo, key: CMD}}} then\n" + script("[$(A)]") + "set ConfigMap demo data {a: '1', CMD: evil}"},
		{High, c0 + "envFrom [{configMapRef: {name: demo}}] then\nset ConfigMap demo data {a: '1', LD_PRELOAD: /x.so}"},
		{Info, c0 + "envFrom [{configMapRef: {name: demo}}] then\n" + other},

		{High, podEdit + "initContainers [{name: i, image: a, volumeMounts: [{name: data, mountPath: /data}]}] then\n" + c0 + "command [/data/manager]"},
		{Medium, c0 + "command [/other]"},
		{Info, c0 + "command [/manager, --zone=b]"},
		{High, c0 + "volumeMounts.0.mountPath /usr/bin"},
		{Medium, c0 + "env.2 {name: HTTPS_PROXY, value: 'http://a'}"},
	}.check(t)
}

// TestPodFields changes fields of pods. Fields that are not known to be harmless must have medium severity.
func TestPodFields(t *testing.T) {
	const c0 = podEdit + "containers.0."
	edits{
		{Medium, podEdit + "schedulerName other"},
		{Medium, podEdit + "nodeName other"},
		{Medium, podEdit + "aField other"},
		{Medium, c0 + "aField other"},
		{Medium, podEdit + "nodeSelector {node-role.kubernetes.io/control-plane: ''}"},
		{Medium, podEdit + "tolerations [{operator: Exists}]"},
		{Medium, podEdit + "resourceClaims [{name: a, resourceClaimName: b}]"},
		{Medium, c0 + "resources {limits: {example.com/device: 1}}"},
		{Medium, c0 + "resources {claims: [{name: a}]}"},
		{Medium, c0 + "readinessProbe {tcpSocket: {host: 10.0.0.1, port: 22}}"},
		{Medium, "add {apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: ops}, spec: {template: {spec: {priorityClassName: low, containers: []}}}}"},
		{Info, podEdit + "tolerations [{key: a, operator: Exists}]"},
		{Info, podEdit + "nodeSelector {kubernetes.io/os: linux}"},
		{Info, podEdit + "terminationGracePeriodSeconds 1"},
		{Info, c0 + "resources {limits: {cpu: 1, hugepages-2Mi: 4Mi}}"},
		{Medium, "set ServiceAccount demo automountServiceAccountToken false then\nunset ServiceAccount demo automountServiceAccountToken"},
		{Info, "set ServiceAccount demo automountServiceAccountToken false"},
		{Medium, c0 + "image quay.io/demo/manager@sha256:1111111111111111111111111111111111111111111111111111111111111111\n" + podEdit + "initContainers [{name: i, image: \"elsewhere.example.com/a@sha256:1111111111111111111111111111111111111111111111111111111111111111\"}]"},
	}.check(t)
}

// TestDataOfOthers adds claims that get existing data of other operators.
func TestDataOfOthers(t *testing.T) {
	claim := func(spec string) string {
		return "add {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: demo-a, namespace: ops}, spec: {" + spec + "}}"
	}
	edits{
		{Info, claim("resources: {}")},
		{High, claim("volumeName: a")},
		{High, claim("dataSource: {kind: PersistentVolumeClaim, name: a}")},
		{Info, claim("dataSource: {kind: PersistentVolumeClaim, name: demo-b}")},
		{High, claim("dataSourceRef: {kind: PersistentVolumeClaim, name: demo-b, namespace: prod}")},
		{High, podEdit + "volumes.2 {name: v, ephemeral: {volumeClaimTemplate: {spec: {volumeName: a}}}}"},
		{High, "add {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: demo-a, namespace: ops}, spec: {template: {spec: {containers: []}}, volumeClaimTemplates: [{metadata: {name: a}, spec: {volumeName: b}}]}}"},
	}.check(t)
}

// TestNamesOfOthers adds objects that have a name of another operator or refer to its objects.
func TestNamesOfOthers(t *testing.T) {
	object := func(kind, name, rest string) string {
		return "add {apiVersion: v1, kind: " + kind + ", metadata: {name: " + name + ", namespace: ops}" + rest + "}"
	}
	const uses = "add {apiVersion: apps/v1, kind: Deployment, metadata: {name: thing, namespace: ops" + theirs + "}, spec: {template: {metadata: {labels: {app: thing}}, spec: {volumes: [{name: v, configMap: {name: rules, optional: true}}], containers: []}}}} then\n"
	edits{
		{High, object("ConfigMap", "other", "")},
		{High, object("ConfigMap", "other-config", "")},
		{Info, object("ConfigMap", "otherwise", "")},
		{High, object("ConfigMap", "kube-root-ca.crt", "")},
		{High, uses + object("ConfigMap", "rules", "")},
		{Info, object("ConfigMap", "rules", "")},
		{High, uses + "add {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: thing, namespace: ops}}"},
		{Medium, uses + "add {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: ops}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: thing}}}"},
		{Info, uses + "add {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: ops}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: demo}}}"},
		{Medium, uses + "add {apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: a, namespace: ops}, spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: thing}}}"},
		{High, "add {apiVersion: demo.io/v1, kind: Widget, metadata: {name: a, namespace: ops}, spec: {serviceAccountName: other}}"},
		{High, "add {apiVersion: demo.io/v1, kind: Widget, metadata: {name: a, namespace: ops}, spec: {tokenSecretRef: {name: other}}}"},
		{High, "add {apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: a, namespace: ops}, spec: {ca: {secretName: other}}}"},
		{High, "add {apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, namespace: ops}, spec: {secretName: other}}"},
		{Info, "add {apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, namespace: ops}, spec: {secretName: cert, dnsNames: [demo.ops.svc, demo.ops.svc.cluster.local]}}"},
		{Medium, "add {apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, namespace: ops}, spec: {secretName: cert, dnsNames: [demo.elsewhere.svc]}}"},
		{Medium, "add {apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, namespace: ops}, spec: {secretName: cert, commonName: admin, usages: [client auth]}}"},
		{High, strings.Replace(definition("gadgets", "thing.io", "Gadget", "Cluster"), "name: gadgets.thing.io}", "name: gadgets.thing.io"+theirs+"}", 1) + " then\n" + definition("gizmos", "thing.io", "Gizmo", "Cluster")},
	}.check(t)
}

// TestSelectedByLabels changes the selectors of Services, policies and webhooks, and the labels that they match.
func TestSelectedByLabels(t *testing.T) {
	service := func(selector string) string {
		return "add {apiVersion: v1, kind: Service, metadata: {name: vault, namespace: ops" + theirs + "}, spec: {selector: " + selector + ", ports: [{port: 443}]}} then\n"
	}
	policy := func(owner, spec string) string {
		return "add {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: db, namespace: ops" + owner + "}, spec: {" + spec + "}} then\n"
	}
	labels := func(l string) string { return "set Deployment demo spec.template.metadata.labels {app: demo" + l + "}" }
	const pods = "add {apiVersion: apps/v1, kind: Deployment, metadata: {name: thing, namespace: ops" + theirs + "}, spec: {template: {metadata: {labels: {app: thing}}, spec: {containers: []}}}} then\n"
	edits{
		{High, service("{svc: vault}") + labels(", svc: vault")},
		{Info, service("{svc: vault}") + labels(", svc: other")},
		{Info, service("{svc: vault}") + labels(", svc: vault") + " then\n" + labels(", svc: vault, a: b")},
		{High, pods + "set Service demo spec.selector {app: thing}"},
		{High, pods + "add {apiVersion: v1, kind: Service, metadata: {name: a, namespace: ops}, spec: {selector: {app: thing}, ports: [{port: 443}]}}"},
		{Medium, pods + "add {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, namespace: ops}, spec: {maxUnavailable: 0, selector: {}}}"},
		{High, policy("", "podSelector: {matchLabels: {isolated: 'y'}}, policyTypes: [Egress]") + labels(", isolated: 'y'") + " then\n" + labels("")},
		{Info, policy("", "podSelector: {matchLabels: {isolated: 'y'}}, policyTypes: [Egress]") + labels(", isolated: 'y'")},
		{High, policy(theirs, "podSelector: {matchLabels: {app: db}}, ingress: [{from: [{podSelector: {matchLabels: {client: 'y'}}}]}]") + labels(", client: 'y'")},
		{High, policy(theirs, "podSelector: {matchLabels: {app: db}}, ingress: [{from: [{namespaceSelector: {}, podSelector: {matchLabels: {client: 'y'}}}]}]") + labels(", client: 'y'")},
		{Info, policy(theirs, "podSelector: {matchLabels: {app: db}}, ingress: [{from: [{podSelector: {}}]}]") + labels(", client: 'y'")},
		{Medium, "set Namespace ops metadata.labels {pod-security.kubernetes.io/enforce: privileged, demo: 'true'}"},
		{Info, "set Namespace ops metadata.labels {pod-security.kubernetes.io/enforce: privileged, other: 'true'}"},
	}.check(t)
}

// TestRequests grants requests on subresources, binds foreign subjects, and adds other objects that give access.
func TestRequests(t *testing.T) {
	rules := func(r string) string { return "set ClusterRole demo rules [{" + r + "}]" }
	binding := func(subject string) string {
		return "add {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}, roleRef: {kind: ClusterRole, name: demo}, subjects: [" + subject + "]}"
	}
	edits{
		{High, rules("apiGroups: [''], resources: [pods/proxy], verbs: [get]")},
		{High, rules("apiGroups: [''], resources: [services/proxy], verbs: [get]")},
		{Critical, rules("apiGroups: [''], resources: [nodes/checkpoint], verbs: [create]")},
		{Medium, rules("apiGroups: [''], resources: [pods/log], verbs: [get]")},
		{Medium, rules("apiGroups: [subresources.example], resources: [machines/console], verbs: [get]")},
		{Low, rules("apiGroups: [apps], resources: [deployments/status], verbs: [get]")},
		{Medium, binding("{kind: User, name: eve}")},
		{Medium, binding("{kind: Group, name: 'system:nodes'}")},
		{Medium, binding("{kind: ServiceAccount, name: default, namespace: elsewhere}")},
		{High, "set ValidatingWebhookConfiguration demo webhooks.0.rules []"},
		{High, "add {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: applications.argoproj.io}, spec: {group: argoproj.io, scope: Namespaced, names: {kind: Application, plural: applications}, versions: [{name: v1, served: true, storage: true}]}}"},
		{Medium, "add {apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: a, namespace: ops}, spec: {endpoints: [{bearerTokenFile: /token}]}}"},
		{Medium, "add {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: ops}, spec: {rules: [{host: a.example.com}]}}"},
	}.check(t)
}

// TestReachRules checks which rules report some of the changes.
func TestReachRules(t *testing.T) {
	base := mutantBase(t)
	for _, c := range []struct{ line, want string }{
		{podEdit + "containers.0.resources {limits: {example.com/device: 1}}", "medium pods.device"},
		{"add {apiVersion: v1, kind: ConfigMap, metadata: {name: other-config, namespace: ops}}", "high objects.foreign-name"},
		{"add {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: ops}, spec: {scaleTargetRef: {kind: ServiceAccount, name: other}}}", "high pods.account-changed"},
		{"add {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: ops}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}}}", "medium objects.foreign-reference"},
		{"set Namespace ops metadata.labels {demo: 'true'}", "medium network.namespace"},
		{"add {apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, namespace: ops}, spec: {secretName: cert, dnsNames: [a.example.com]}}", "medium certificates.name"},
		{"add {apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: ops" + theirs + "}, spec: {template: {metadata: {labels: {app: demo}}, spec: {containers: []}}}}", "high network.service"},
	} {
		if got := allLines(compare(t, base, base.mutant(t, c.line))); !strings.Contains(strings.Join(got, "\n"), c.want) {
			t.Errorf("%s: %q, want %s", c.line, got, c.want)
		}
	}
}
