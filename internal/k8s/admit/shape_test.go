package admit

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"
	strict "sigs.k8s.io/json"

	"github.com/quayside/quayside/internal/k8s"
)

func TestCheck(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 1, template: {spec: {containers: ["
	for _, c := range []struct {
		name, object string
		want         Shape
	}{
		{"only known fields", deployment + `{name: c, args: [a], ports: [{containerPort: 80}], livenessProbe: {httpGet: {port: http}}, resources: {limits: {cpu: 1, memory: 1Gi}}}]}}}`, Shape{}},
		{"null is the zero value", deployment + `{name: null, args: [null], resources: null}]}}}`, Shape{}},
		{"null is no item", deployment + `{name: c, ports: [null]}, null]}}}`, Shape{Wrong: []Fault{
			{"spec.template.spec.containers[0].ports[0]", "expected an object, got null"},
			{"spec.template.spec.containers[1]", "expected an object, got null"},
		}}},
		{"unknown, deep", deployment + `{name: c, arg: [a], Name: c}], restart: Always}}}`, Shape{Unknown: []string{
			"spec.template.spec.containers[0].Name", "spec.template.spec.containers[0].arg", "spec.template.spec.restart",
		}}},
		{"a string instead of a list, and vice versa", deployment + `{name: [c], args: a, ports: {}}]}}}`, Shape{Wrong: []Fault{
			{"spec.template.spec.containers[0].args", "expected a list, got a string"},
			{"spec.template.spec.containers[0].name", "expected a string, got a list"},
			{"spec.template.spec.containers[0].ports", "expected a list, got an object"},
		}}},
		{"scalars", deployment + `{tty: "true", ports: [{containerPort: "80"}, {containerPort: 1.5}, {containerPort: 3000000000}]}]}}}`, Shape{Wrong: []Fault{
			{"spec.template.spec.containers[0].ports[0].containerPort", "expected a whole number, got a string"},
			{"spec.template.spec.containers[0].ports[1].containerPort", "expected a whole number in the range of the field, got 1.5"},
			{"spec.template.spec.containers[0].ports[2].containerPort", "expected a whole number in the range of the field, got 3e+09"},
			{"spec.template.spec.containers[0].tty", "expected a boolean, got a string"},
		}}},
		{"a type with its own decoder", deployment + `{resources: {limits: {cpu: one}}}]}}}`, Shape{Wrong: []Fault{
			{"spec.template.spec.containers[0].resources.limits[cpu]", `quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`},
		}}},
		{"bytes", "apiVersion: v1\nkind: Secret\ndata: {a: YQ==, b: '%', c: 1}", Shape{Wrong: []Fault{
			{"data[b]", "illegal base64 data at input byte 0"}, {"data[c]", "expected text in base64, got a number"},
		}}},
		{"a schema in a schema", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {versions: [{schema: {openAPIV3Schema: {type: array, kind: x, items: {type: [string], kind: x}, default: {a: 1}}}}]}", Shape{
			Unknown: []string{"spec.versions[0].schema.openAPIV3Schema.kind"}, // the API server ignores unknown fields in the value of items
			Wrong:   []Fault{{"spec.versions[0].schema.openAPIV3Schema.items.type", "expected a string, got a list"}},
		}},
		{"metadata of any kind", "apiVersion: x.io/v1\nkind: Thing\nmetadata: {name: t, labels: [a], owner: me}\nspec: text", Shape{
			Unknown: []string{"metadata.owner"}, Wrong: []Fault{{"metadata.labels", "expected an object, got a list"}},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := NewTypes().Check(load(t, c.object))
			got.Missing = nil // see TestRequired
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// TestPrunePart checks that PrunePart returns a copy without the unknown fields.
func TestPrunePart(t *testing.T) {
	spec := load(t, `{replicas: 1, strateg: x, template: {spec: {containers: [{name: c, env: [], tolerations: [{a: b}]}]}}}`)
	before := k8s.Copy(spec)
	got, shape := PrunePart(NewTypes(), DeploymentSpec(), spec, "at")
	if d := cmp.Diff(load(t, `{replicas: 1, template: {spec: {containers: [{name: c, env: []}]}}}`), got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff(Shape{Unknown: []string{"at.strateg", "at.template.spec.containers[0].tolerations"}}, shape); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if !k8s.Equal(before, spec) {
		t.Error("the argument was modified")
	}
}

// TestWebhookKnowsOLM checks that OLM's own fields of a webhook are known, and that
// reinvocationPolicy is known only for mutating webhooks.
func TestWebhookKnowsOLM(t *testing.T) {
	w := load(t, `{type: x, generateName: a.b.c, deploymentName: d, containerPort: 443, targetPort: http, webhookPath: /, conversionCRDs: [a], sideEffects: None, reinvocationPolicy: Never}`)
	for mutating, want := range map[bool][]string{true: nil, false: {"w.reinvocationPolicy"}} {
		if _, shape := PrunePart(NewTypes(), Webhook(mutating), w, "w"); !slices.Equal(shape.Unknown, want) || shape.Wrong != nil {
			t.Errorf("mutating %t: got %v, want %v", mutating, shape, want)
		}
	}
}

// samples returns objects of many types, which the property test damages.
func samples(t *testing.T) []map[string]any {
	var out []map[string]any
	for _, text := range []string{
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, labels: {a: b}, annotations: {c: d}}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {volumes: [{name: v, secret: {secretName: s, items: [{key: k, path: p, mode: 420}]}}], containers: [{name: c, image: i, args: [a], env: [{name: E, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], ports: [{containerPort: 80}], resources: {limits: {cpu: 100m}}, livenessProbe: {httpGet: {port: 80}}, securityContext: {privileged: true}}]}}}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: s, creationTimestamp: "2020-01-01T00:00:00Z"}, spec: {ports: [{port: 80, targetPort: http}], selector: {a: b}}, status: {loadBalancer: {}}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}, rules: [{verbs: [get], apiGroups: [""], resources: [pods]}]}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: s}, type: Opaque, data: {a: YQ==}, stringData: {b: c}, immutable: false}`,
		`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}}`,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w}, webhooks: [{name: a.b.c, clientConfig: {caBundle: YQ==, service: {name: s, namespace: n, port: 443}}, rules: [{operations: [CREATE], apiGroups: [x], scope: Namespaced}]}]}`,
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: c}, spec: {group: g, names: {kind: K, plural: ks}, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, maximum: 1.5, enum: [a, 1], default: {}, required: [a], properties: {a: {type: array, items: {type: string}}, b: {type: object, additionalProperties: {type: string}}}}}}]}}`,
	} {
		out = append(out, load(t, text))
	}
	return out
}

// damage inserts an unusual value or an unknown field at a random position in v.
func damage(t *rapid.T, v any) any {
	strange := func() any {
		return rapid.SampledFrom([]any{nil, "text", int64(7), int64(1) << 40, 1.5, true, []any{}, []any{"a", nil}, []any{1.5}, map[string]any{}, map[string]any{"a": "b"}}).Draw(t, "value")
	}
	switch v := v.(type) {
	case map[string]any:
		key := rapid.SampledFrom(append(slices.Sorted(maps.Keys(v)), "bogus")).Draw(t, "key")
		if v[key] == nil || rapid.IntRange(0, 4).Draw(t, "here") == 0 {
			v[key] = strange()
		} else {
			v[key] = damage(t, v[key])
		}
		return v
	case []any:
		if len(v) > 0 {
			v[0] = damage(t, v[0])
			return v
		}
	}
	return strange()
}

// TestCheckAgreesWithAPIServer compares Check with the decoder of the API server: both report the same
// unknown fields, and Check reports values of a wrong type if and only if the decoder fails.
func TestCheckAgreesWithAPIServer(t *testing.T) {
	all, types := samples(t), NewTypes()
	rapid.Check(t, func(t *rapid.T) {
		object := k8s.Copy(rapid.SampledFrom(all).Draw(t, "object"))
		gvk := schema.FromAPIVersionAndKind(k8s.Text(object, "apiVersion"), k8s.Text(object, "kind"))
		for range rapid.IntRange(1, 3).Draw(t, "damages") {
			damage(t, object)
		}
		into := reflect.New(types.kind(gvk.GroupVersion().String(), gvk.Kind)).Interface()
		object["apiVersion"], object["kind"] = gvk.GroupVersion().String(), gvk.Kind
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		unknown, err := strict.UnmarshalStrict(data, into, strict.DisallowUnknownFields)
		var want []string
		for _, u := range unknown {
			want = append(want, strings.TrimSuffix(strings.TrimPrefix(u.Error(), `unknown field "`), `"`))
		}
		slices.Sort(want)
		got := types.Check(object)
		if (err != nil) != (len(got.Wrong) > 0) {
			t.Fatalf("%s\ngot %v, API server: %v", data, got.Wrong, err)
		}
		if err == nil && !slices.Equal(got.Unknown, want) {
			t.Fatalf("%s\ngot %v, API server: %v", data, got.Unknown, want)
		}
	})
}

// TestKinds checks that all kinds of the listed versions are known, and that all stable versions are
// listed.
func TestKinds(t *testing.T) {
	types := NewTypes()
	for version := range apiVersions() {
		gv, err := schema.ParseGroupVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		for kind, of := range scheme.Scheme.KnownTypes(gv) {
			if got := types.kind(version, kind); got != of {
				t.Errorf("%s %s: got %v", version, kind, got)
			}
		}
	}
	for _, gv := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		if served := !strings.Contains(gv.Version, "alpha") && !strings.Contains(gv.Version, "beta"); served && apiVersions()[gv.String()] == nil && !isTransient(gv.Group) {
			t.Errorf("version %s is not listed", gv)
		}
	}
}

// isTransient reports whether objects of a group are not stored, or only written by the cluster itself.
func isTransient(group string) bool {
	return slices.Contains([]string{"authentication.k8s.io", "authorization.k8s.io", "events.k8s.io", "storagemigration.k8s.io"}, group)
}

func TestDefine(t *testing.T) {
	taken := strings.Replace(definition, "  - {name: v0, served: false, storage: false}\n", "", 1)
	if faults := CheckCRD(load(t, taken)); faults != nil {
		t.Fatalf("a valid CRD is rejected: %v", faults)
	}
	for _, c := range []struct{ old, now, field string }{
		{"name: widgets.demo.io", "name: things.demo.io", "metadata.name"},
		{"group: demo.io", "group: demo", "metadata.name"},
		{"served: true", "served: 1", ""},
		{"mode: {type: string", "mode: {nullable: true", "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[mode].type"},
		{"self.size != 13", "self.sise", "spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"},
		{"default: fast", "default: 7", "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[mode].default"},
		{"subresources: {status: {}}", "subresources: {scale: {specReplicasPath: a, statusReplicasPath: .status.a}}", "spec.versions[0].subresources.scale.specReplicasPath"},
		{"  scope: Namespaced", "  scope: Namespaced\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v7], clientConfig: {url: 'http://a'}}}", "spec.conversion.webhook.clientConfig.url"},
	} {
		text := strings.Replace(taken, c.old, c.now, 1)
		if faults := CheckCRD(load(t, text)); len(faults) == 0 || faults[0].Field != c.field {
			t.Errorf("%s: got %v, want a fault of %q", c.now, faults, c.field)
		}
	}
}

func TestMetadata(t *testing.T) {
	for text, want := range map[string]string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a.b, labels: {a.b/c: d}, annotations: {A: "{}"}}}`:             "",
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: "system:A"}}`:                             "",
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a/b}}`:                                    "metadata.name",
		`{apiVersion: v1, kind: Service, metadata: {name: a.b}}`:                                                           "metadata.name",
		`{apiVersion: x.io/v1, kind: Service, metadata: {name: A}}`:                                                        "metadata.name",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {"a b": c}}}`:                                       "metadata.labels",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {a: "b c"}}}`:                                       "metadata.labels",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {"a/b/c": d}}}`:                                "metadata.annotations",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: ["a b"]}}`:                                      "metadata.finalizers",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, ownerReferences: [{kind: A}]}}`:                             "metadata.ownerReferences[0].apiVersion",
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {labels: {a: "b c"}}}}}`: "spec.template.metadata.labels",
		`{apiVersion: x.io/v1, kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {labels: {a: "b c"}}}}}`: "",
	} {
		got := ""
		if faults := Metadata(load(t, text)); len(faults) > 0 {
			got = faults[0].Field
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestRules(t *testing.T) {
	for rule, want := range map[string]string{
		`{apiGroups: [""], resources: [pods], verbs: [get]}`:                              "",
		`{resources: [pods], verbs: [get]}`:                                               "rules[0].apiGroups",
		`{apiGroups: [""], verbs: [get]}`:                                                 "rules[0].resources",
		`{apiGroups: [""], resources: [pods]}`:                                            "rules[0].verbs",
		`{nonResourceURLs: [/metrics], verbs: [get]}`:                                     "",
		`{nonResourceURLs: [/metrics], apiGroups: [""], resources: [pods], verbs: [get]}`: "rules[0].nonResourceURLs",
	} {
		got := ""
		if faults := Rules(load(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [`+rule+`]}`)); len(faults) > 0 {
			got = faults[0].Field
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", rule, got, want)
		}
	}
	inNamespace := load(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a}, rules: [{nonResourceURLs: [/metrics], verbs: [get]}]}`)
	if faults := Rules(inNamespace); len(faults) != 1 {
		t.Errorf("got %v, want a fault of nonResourceURLs in a Role", faults)
	}
}

// TestRequired checks which fields of built-in kinds the API requires.
func TestRequired(t *testing.T) {
	for object, want := range map[string]string{
		"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: x}":                                                                                                                                                                "spec.selector spec.template.spec.containers",
		"apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: x}":                                                                                                                                                   "provisioner",
		"apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: x}\nhandler: ''":                                                                                                                                         "handler",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: x}\nsubjects: [{kind: User}]":                                                                                                               "roleRef.kind roleRef.name subjects[0].name",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}":                                                                                                                                         "",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: x}\nrules: [{resources: [pods]}]":                                                                                                                  "rules[0].verbs",
		"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nwebhooks: [{name: a, clientConfig: {service: {name: s}}}]":                                                                             "webhooks[0].admissionReviewVersions webhooks[0].clientConfig.service.namespace webhooks[0].sideEffects",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}":                                                                                                                                                                     "",
		"apiVersion: v1\nkind: Pod\nspec: {imagePullSecrets: [{}], volumes: [{name: a, configMap: {}}], containers: [{name: a}]}\nstatus: {conditions: [{}]}":                                                                      "spec.containers[0].image spec.volumes[0].configMap.name",
		"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nwebhooks: [{name: a, sideEffects: None, admissionReviewVersions: [v1], rules: [{apiGroups: [a], apiVersions: [v1], operations: []}]}]": "webhooks[0].rules[0].operations webhooks[0].rules[0].resources",
		"apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {clusterIP: None}":                                                                                                                                              "",
		"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: x}":                                                                                                                                               "",
		"apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}":                                                                                                                                                             "",
	} {
		var got []string
		for _, f := range NewTypes().Check(load(t, object)).Missing {
			got = append(got, f.Field)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s:\n got %q\nwant %q", object, got, want)
		}
	}
	ports := NewTypes().Check(load(t, "apiVersion: v1\nkind: Service\nspec: {ports: [{port: 99999, targetPort: 70000, nodePort: -1}, {port: 443}]}"))
	if len(ports.Wrong) != 2 {
		t.Errorf("wrong ports: %v", ports.Wrong)
	}
}
