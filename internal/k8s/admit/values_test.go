package admit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/yamlnode"
)

// TestValues checks values of pods and Services.
func TestValues(t *testing.T) {
	for name, c := range map[string]struct{ pod, want string }{
		"ok":                  {"{containers: [{name: a, image: b, imagePullPolicy: Always, ports: [{protocol: UDP, containerPort: 1}]}], tolerations: [{operator: Exists, effect: NoExecute}]}", "[]"},
		"error/no port":       {"{containers: [{name: a, ports: [{name: x}]}]}", "[{spec.template.spec.containers[0].ports[0].containerPort missing}]"},
		"ok/volume":           {"{containers: [{name: a, volumeMounts: [{name: v}]}], volumes: [{name: v}]}", "[]"},
		"error/volume":        {"{initContainers: [{name: a, volumeMounts: [{name: v}]}], volumes: [{name: w}]}", `[{spec.template.spec.initContainers[0].volumeMounts[0].name the pod has no volume "v"}]`},
		"error/no key":        {"{tolerations: [{effect: NoExecute}]}", "[{spec.template.spec.tolerations[0].operator without a key, expected Exists}]"},
		"ok/probe":            {"{containers: [{name: a, livenessProbe: {httpGet: {port: 1}}}]}", "[]"},
		"error/no handler":    {"{containers: [{name: a, livenessProbe: {periodSeconds: 3}}]}", "[{spec.template.spec.containers[0].livenessProbe has 0 of exec, grpc, httpGet and tcpSocket: expected one}]"},
		"error/two handlers":  {"{containers: [{name: a, startupProbe: {exec: {}, grpc: {}}}]}", "[{spec.template.spec.containers[0].startupProbe has 2 of exec, grpc, httpGet and tcpSocket: expected one}]"},
		"ok/resources":        {"{containers: [{name: a, resources: {requests: {cpu: 500m, example.com/gpu: 1, memory: 1Gi}, limits: {cpu: 0.5, hugepages-2Mi: 4Mi}}}]}", "[]"},
		"error/resource":      {"{containers: [{name: a, resources: {requests: {cpus: 1}}}]}", "[{spec.template.spec.containers[0].resources.requests[cpus] no resource has this name: expected cpu, memory, ephemeral-storage, hugepages-… or a name with a domain}]"},
		"error/no limit":      {"{containers: [{name: a, resources: {requests: {cpu: 7}, limits: {cpu: null}}}]}", "[{spec.template.spec.containers[0].resources.requests[cpu] 7 is more than the limit 0}]"},
		"error/above limit":   {"{containers: [{name: a, resources: {requests: {cpu: 7}, limits: {cpu: 500m}}}]}", "[{spec.template.spec.containers[0].resources.requests[cpu] 7 is more than the limit 500m}]"},
		"error/effect":        {"{tolerations: [{key: a, effect: NoSched}]}", `[{spec.template.spec.tolerations[0].effect unsupported value "NoSched": expected one of NoSchedule, PreferNoSchedule, NoExecute}]`},
		"error/pull policy":   {"{containers: [{name: a, image: b, imagePullPolicy: never}]}", `[{spec.template.spec.containers[0].imagePullPolicy unsupported value "never": expected one of Always, IfNotPresent, Never}]`},
		"error/port protocol": {"{containers: [{name: a, image: b, ports: [{protocol: tcp, containerPort: 1}]}]}", `[{spec.template.spec.containers[0].ports[0].protocol unsupported value "tcp": expected one of TCP, UDP, SCTP}]`},
	} {
		objects, err := yamlnode.Objects("a.yaml", []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: "+c.pod+"}}\n"), yamlnode.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, fmt.Sprint(admit.Values(k8s.Object(objects[0])))); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestServiceValues checks that a Service without required ports is invalid, and that the volume claim templates of
// a StatefulSet count as volumes.
func TestServiceValues(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: v1, kind: Service, metadata: {name: a}}":                                                                                                      "[{spec.ports is required, except for headless Services and ExternalName}]",
		"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: []}}":                                                                                   "[{spec.ports is required, except for headless Services and ExternalName}]",
		"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 1}]}}":                                                                          "[]",
		"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None}}":                                                                             "[]",
		"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ExternalName, externalName: b.com}}":                                                     "[]",
		"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{admissionReviewVersions: [v1, v1]}]}": `[{webhooks[0].admissionReviewVersions[1] "v1" is listed twice}]`,
		"{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a}, webhooks: [{failurePolicy: Fail, matchPolicy: Exact, sideEffects: None, reinvocationPolicy: Never, timeoutSeconds: 30, rules: [{scope: '*', operations: ['*'], apiGroups: [a, b]}]}]}": "[]",
		"{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a}, webhooks: [{failurePolicy: a, matchPolicy: Exactly, sideEffects: Some, reinvocationPolicy: Always, timeoutSeconds: 31, rules: [{scope: All, operations: [READ], apiGroups: ['*', b]}]}]}": "[" + strings.Join([]string{
			`{webhooks[0].failurePolicy unsupported value "a": expected one of Fail, Ignore}`, `{webhooks[0].matchPolicy unsupported value "Exactly": expected one of Equivalent, Exact}`,
			`{webhooks[0].sideEffects unsupported value "Some": expected one of None, NoneOnDryRun}`, `{webhooks[0].reinvocationPolicy unsupported value "Always": expected one of IfNeeded, Never}`,
			"{webhooks[0].timeoutSeconds unsupported value 31: expected 1 to 30}", `{webhooks[0].rules[0].scope unsupported value "All": expected one of *, Cluster, Namespaced}`,
			`{webhooks[0].rules[0].operations[0] unsupported value "READ": expected one of *, CONNECT, CREATE, DELETE, UPDATE}`, `{webhooks[0].rules[0].apiGroups "*" must be the only value}`,
		}, " ") + "]",
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {volumeClaimTemplates: [{metadata: {name: v}}], template: {spec: {containers: [{name: a, volumeMounts: [{name: v}]}]}}}}": "[]",
	} {
		objects, err := yamlnode.Objects("a.yaml", []byte(text), yamlnode.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(admit.Values(k8s.Object(objects[0]))); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestRepeatedRules checks that a schema with the same rule twice is rejected. The same rule in two schemas, and
// twice in a schema below items or additionalProperties, is valid: the API server accepts it.
func TestRepeatedRules(t *testing.T) {
	const once, twice = "x-kubernetes-validations: [{rule: 'true'}, {rule: '!false'}]", "x-kubernetes-validations: [{rule: 'true'}, {rule: 'true'}]"
	for schema, want := range map[string]string{
		once: "",
		once + ", properties: {a: {type: string, " + once + "}}": "",
		twice: "x-kubernetes-validations[1].rule",
		"properties: {a: {type: object, properties: {items: {type: string, " + twice + "}}}}":                                  "properties.a.properties.items.x-kubernetes-validations[1].rule",
		"properties: {a: {type: array, maxItems: 3, " + twice + ", items: {type: string}}}":                                    "properties.a.x-kubernetes-validations[1].rule",
		"properties: {a: {type: array, maxItems: 3, items: {type: string, maxLength: 9, " + twice + "}}}":                      "",
		"properties: {a: {type: object, maxProperties: 3, additionalProperties: {type: string, maxLength: 9, " + twice + "}}}": "",
	} {
		text := "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.example.com}, spec: {group: example.com, scope: Cluster, names: {kind: A, plural: as}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, " + schema + "}}}]}}"
		objects, err := yamlnode.Objects("a.yaml", []byte(text), yamlnode.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		var fields []string
		for _, f := range admit.CheckCRD(objects[0]) {
			fields = append(fields, f.Field)
		}
		if got := strings.Join(fields, " "); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", schema, got, want)
		}
	}
}
