package admit

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/testing/goldentest"
	"github.com/quayside/quayside/internal/yamlnode"
)

// TestGoldenListKeys compares the keys of lists with the schema by which the API server applies objects.
func TestGoldenListKeys(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, register := range apiVersions() {
		if err := register(scheme); err != nil {
			t.Fatal(err)
		}
	}
	deployment := &appsv1.Deployment{}
	deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	typed, err := applyconfigurations.NewTypeConverter(scheme).ObjectToTyped(deployment)
	if err != nil {
		t.Fatal(err)
	}
	known := goTypes(scheme)
	var lines []string
	all := typed.Schema()
	for _, def := range all.Types {
		name := goName(def.Name)
		if def.Map == nil || !known[name] {
			continue
		}
		for _, field := range def.Fields {
			if list := field.Type.Inlined.List; list != nil && list.ElementRelationship == schema.Associative {
				lines = append(lines, strings.Join(append([]string{name, field.Name}, withDefaults(all, list)...), " ")+"\n")
			}
		}
	}
	slices.Sort(lines)
	goldentest.Compare(t, "listkeys.txt", []byte(strings.Join(lines, "")))
}

// withDefaults returns the keys of a list, with their default values.
func withDefaults(all *schema.Schema, list *schema.List) []string {
	var out []string
	for _, key := range list.Keys {
		if item, ok := all.Resolve(list.ElementType); ok && item.Map != nil {
			if field, ok := item.FindField(key); ok && field.Default != nil && field.Default != "" {
				key += fmt.Sprint("=", field.Default)
			}
		}
		out = append(out, key)
	}
	return out
}

// goName returns the name of a Go type for the name of a type in the schema:
// "k8s.io/api/core/v1.Container" for "io.k8s.api.core.v1.Container".
func goName(name string) string {
	parts := strings.Split(strings.TrimPrefix(name, "io."), ".")
	if len(parts) < 3 {
		return name
	}
	last := len(parts) - 1
	return "k8s.io/" + strings.Join(parts[1:last], "/") + "." + parts[last]
}

// goTypes returns the names of all struct types in the types of a scheme.
func goTypes(scheme *runtime.Scheme) map[string]bool {
	out := map[string]bool{}
	var visit func(of reflect.Type)
	visit = func(of reflect.Type) {
		name := of.PkgPath() + "." + of.Name()
		if kind := of.Kind(); kind == reflect.Pointer || kind == reflect.Slice || kind == reflect.Map {
			visit(of.Elem())
		} else if kind == reflect.Struct && !out[name] {
			out[name] = true
			for i := range of.NumField() {
				visit(of.Field(i).Type)
			}
		}
	}
	for _, of := range scheme.AllKnownTypes() {
		visit(of)
	}
	return out
}

// TestCanonical compares the canonical form of an object with the object encoded from its Go type.
func TestCanonical(t *testing.T) {
	for _, text := range []string{
		`
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, creationTimestamp: null, labels: {}, annotations: {a: ""}}
spec:
  replicas: 0
  paused: false
  selector: {matchLabels: {app: a}, matchExpressions: []}
  strategy: {}
  template:
    metadata: {labels: {app: a}, creationTimestamp: null}
    spec:
      hostNetwork: false
      automountServiceAccountToken: false
      nodeSelector: {}
      securityContext: {}
      terminationGracePeriodSeconds: 0
      containers:
      - name: a
        command: []
        stdin: false
        env: [{name: A, value: ""}, {name: B, valueFrom: null}]
        resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: 0.5, memory: 64.0Mi, ephemeral-storage: 1000}}
        volumeMounts: [{name: x, mountPath: /x, readOnly: false}]
        livenessProbe: {initialDelaySeconds: 0, httpGet: {port: 0, path: ""}}
      volumes: [{name: x, emptyDir: {}}, {name: z, emptyDir: {sizeLimit: 1024Mi, medium: ""}}]
status: {replicas: 1}
`, `
apiVersion: v1
kind: Secret
metadata: {name: a}
type: ""
data: {a: "YQ\n==", b: ""}
`, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  preserveUnknownFields: false
  names: {kind: Lamp, plural: lamps, shortNames: [], categories: [], singular: ""}
  scope: Namespaced
  versions: [{name: v1, served: false, storage: true, deprecated: false, additionalPrinterColumns: [], schema: {openAPIV3Schema: {type: object, required: [a], title: "", properties: {
    a: {type: string, default: "", enum: [""], nullable: false, x-kubernetes-preserve-unknown-fields: false, minLength: 0},
    b: {type: array, items: {type: object, properties: {}, oneOf: [{required: []}, {properties: {c: {}}}]}},
    c: {type: object, default: {d: {}, e: []}, additionalProperties: {type: object, required: [], properties: {}, default: {}}},
    d: {type: object, additionalProperties: true, example: {}, not: {}, dependencies: {e: [f], g: {required: []}}}}}}}]
status: {acceptedNames: {kind: ""}}
`, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: a}
rules: [{apiGroups: [""], resources: [], verbs: [get], nonResourceURLs: []}]
aggregationRule: null
`,
	} {
		o := parseObject(t, text)
		types := NewTypes()
		before := k8s.Copy(o)
		got := types.Canonical(o)
		want := intersect(map[string]any(k8s.Without(o, "status")), roundTrip(t, types, o))
		if d := cmp.Diff(want, any(map[string]any(got))); d != "" {
			t.Errorf("Canonical(%s) differs from encoding (-encoded +got):\n%s", o.Key(), d)
		}
		if !k8s.Equal(map[string]any(before), map[string]any(o)) {
			t.Errorf("Canonical changed its argument %s", o.Key())
		}
		if again := types.Canonical(got); !k8s.Equal(map[string]any(got), map[string]any(again)) {
			t.Errorf("Canonical of a canonical %s differs", o.Key())
		}
	}
}

func parseObject(t *testing.T, text string) k8s.Object {
	t.Helper()
	objects, err := yamlnode.Objects("a.yaml", []byte(text), yamlnode.Limits{})
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	return objects[0]
}

// roundTrip returns an object encoded from its Go type.
func roundTrip(t *testing.T, types *Types, o k8s.Object) map[string]any {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	typed := reflect.New(types.kind(o.APIVersion(), o.Kind())).Interface()
	if err := json.Unmarshal(data, typed); err != nil {
		t.Fatal(err)
	}
	out, err := toPlainJSON(typed)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// intersect returns the value encoded, without the fields that are missing or null in o.
func intersect(o, encoded any) any {
	switch encoded := encoded.(type) {
	case map[string]any:
		m, ok := o.(map[string]any)
		if !ok {
			return encoded
		}
		out := maps.Clone(encoded)
		for key, e := range encoded {
			if m[key] == nil {
				delete(out, key)
				continue
			}
			out[key] = intersect(m[key], e)
		}
		return out
	case []any:
		list, ok := o.([]any)
		if !ok || len(list) != len(encoded) {
			return encoded
		}
		out := make([]any, len(list))
		for i := range list {
			out[i] = intersect(list[i], encoded[i])
		}
		return out
	}
	return encoded
}

func TestDistinct(t *testing.T) {
	o := parseObject(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, finalizers: [a.b/c, d.e/f, a.b/c]}
spec:
  template:
    spec:
      imagePullSecrets: [{name: a}, {name: b}, {name: a}]
      containers:
      - name: a
        env: [{name: A, value: one}, {name: B}, {name: A, value: two}]
        ports: [{name: x, containerPort: 80}, {name: v, containerPort: 80, protocol: TCP}, {name: z, containerPort: 80, protocol: UDP}]
        args: [a, a]
`)
	last := func(r Repeat) map[string]any { return r.Items[len(r.Items)-1] }
	got, repeats := NewTypes().Distinct(o, last)
	var found []string
	for _, r := range repeats {
		found = append(found, r.List+": "+r.Key)
	}
	want := []string{
		`metadata.finalizers: "a.b/c"`,
		`spec.template.spec.containers[0].env: name="A"`,
		`spec.template.spec.containers[0].ports: containerPort="80", protocol="TCP"`,
		`spec.template.spec.imagePullSecrets: name="a"`,
	}
	if d := cmp.Diff(want, found); d != "" {
		t.Errorf("repeats differ (-want +got):\n%s", d)
	}
	pod := k8s.PodSpec(got)
	container := k8s.Containers(pod)[0]
	texts := map[string][]string{
		"env":    {"B", "A"},
		"ports":  {"v", "z"},
		"secret": {"b", "a"},
	}
	names := func(list []map[string]any) (out []string) {
		for _, m := range list {
			out = append(out, k8s.Text(m, "name"))
		}
		return out
	}
	if d := cmp.Diff(texts, map[string][]string{"env": names(k8s.Items(container, "env")), "ports": names(k8s.Items(container, "ports")), "secret": names(k8s.Items(pod, "imagePullSecrets"))}); d != "" {
		t.Errorf("kept items differ (-want +got):\n%s", d)
	}
	if v := k8s.Text(k8s.Items(container, "env")[1], "value"); v != "two" {
		t.Errorf("kept value %q of A, want the last", v)
	}
	if again, repeats := NewTypes().Distinct(got, last); len(repeats) > 0 || !k8s.Equal(map[string]any(again), map[string]any(got)) {
		t.Errorf("Distinct of its result has repeats: %v", repeats)
	}
	custom := parseObject(t, "{apiVersion: example.com/v1, kind: Lamp, metadata: {name: a, finalizers: [a.b/c, a.b/c]}}")
	if got, repeats := NewTypes().Distinct(custom, last); len(repeats) != 1 || len(k8s.Texts(got, "metadata", "finalizers")) != 1 {
		t.Errorf("custom resource: got %v with repeats %v", got, repeats)
	}
}
