package adopt

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
)

// objectVariants returns objects of the tested kinds as YAML. Fields are lists of values to choose from.
func objectVariants() []string {
	return []string{
		`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: [{ports: [{port: 80}]}, {ports: [{port: 80, protocol: TCP}], clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}, {type: NodePort}]}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [[{name: a}], [{name: b}]], imagePullSecrets: [[{name: a}]], automountServiceAccountToken: [true, false]}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: a}, type: [Opaque, kubernetes.io/tls], data: [{a: YQ==}], stringData: [{a: a}], immutable: [true]}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: [{a: b}, {a: c}], binaryData: [{b: YQ==}]}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: a}, spec: [{finalizers: [kubernetes]}], status: [{phase: Active}]}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: [{template: {spec: {containers: [{name: a, image: b}]}}}, {replicas: 1, template: {spec: {containers: [{name: a, image: b}]}}}], status: [{replicas: 1}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [[{verbs: [get]}], [{verbs: [list]}], []], aggregationRule: [{clusterRoleSelectors: [{matchLabels: {a: b}}]}, {clusterRoleSelectors: []}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}, roleRef: [{kind: ClusterRole, name: a}, {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a}], subjects: [[{kind: User, name: a}], [{kind: User, name: a, apiGroup: rbac.authorization.k8s.io}]]}`,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [[{name: a, clientConfig: {service: {name: a, namespace: b}}}], [{name: a, failurePolicy: Fail, clientConfig: {service: {name: a, namespace: b, port: 443}}}]]}`,
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.b}, spec: [{group: b, names: {kind: A, plural: as}, versions: [{name: v1}]}, {group: b, names: {kind: A, plural: as, listKind: AList}, versions: [{name: v1}]}, {group: b, names: {kind: A, plural: as}, versions: [{name: v1, served: true}]}]}`,
		`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}, value: [1, 2], preemptionPolicy: [Never, PreemptLowerPriority]}`,
		`{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: a}, spec: [{endpoints: []}, {endpoints: [{port: a}]}, null]}`,
	}
}

// TestOmittingEqualFieldsKeepsDifferences draws a live and a rendered object. Their differences must be the
// same, whether or not equal fields are omitted before the comparison.
func TestOmittingEqualFieldsKeepsDifferences(t *testing.T) {
	var all []map[string]any
	for _, text := range objectVariants() {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	types := admit.NewTypes()
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.SampledFrom(all).Draw(t, "kind")
		side := func(name string) k8s.Object {
			out := k8s.Object{"apiVersion": of["apiVersion"], "kind": of["kind"], "metadata": k8s.Copy(of["metadata"])}
			for _, field := range slices.Sorted(maps.Keys(of)) {
				choices, _ := of[field].([]any)
				if n := rapid.IntRange(0, len(choices)).Draw(t, name+" "+field); n > 0 {
					out[field] = choices[n-1]
				}
			}
			return out
		}
		live, ours := side("live"), side("ours")
		got, err := comparer{types}.compareFields(live, ours)
		if err != nil {
			t.Fatal(err)
		}
		a, err := types.Stored(withoutSecretData(live))
		if err != nil {
			t.Fatal(err)
		}
		b, err := types.Stored(withoutSecretData(ours))
		if err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc(compare(withoutAssigned(a, b), withoutAssigned(b, b)), func(f Field) bool { return f.Kind == OnlyLive && f.Path == "spec.ports[0].nodePort" })
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-all fields +without equal fields):\n%s", d)
		}
	})
}
