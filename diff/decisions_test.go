package diff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDecisions covers branches that mutation testing found untested.
func TestDecisions(t *testing.T) {
	const (
		object  = "{type: object, properties: {spec: {type: object, properties: {x: {type: string}}}}}"
		without = "{type: object, properties: {spec: {type: object}}}"
		stored  = "served: false, storage: true"
	)
	deployment := func(spec string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: ops}\nspec: {replicas: 1, template: {spec: " + spec + "}}"
	}
	service := func(spec string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: ops}\nspec: " + spec
	}
	scale := func(path string) string {
		return widgetOf("{name: v1, served: true, storage: true, subresources: {scale: {specReplicasPath: " + path + "}}, schema: {openAPIV3Schema: " + object + "}}")
	}
	hook := func(more string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: h}\nwebhooks: [{name: a.b.c" + more + "}]"
	}
	named := func(names string) string {
		return strings.Replace(widget("{type: string}"), "plural: widgets", "plural: widgets, "+names, 1)
	}
	priority := func(global string) string {
		return "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: p}\nvalue: 1\nglobalDefault: " + global
	}
	for _, c := range []struct {
		name, before, after string
		want                []string
	}{
		{
			"a version that is stored but not served determines the stored fields", widgetOf(versionEntry("v1", "served: true, storage: false", object), versionEntry("v0", stored, object)),
			widgetOf(versionEntry("v1", "served: true, storage: false", object), versionEntry("v0", stored, without)),
			[]string{"low crd.field-removed v0 spec.x: string → -"},
		},
		{
			"a version that is no longer served, and changes", widgetOf(versionEntry("v2", "served: true, storage: true", object), versionEntry("v1", "served: true, storage: false", object)),
			widgetOf(versionEntry("v2", "served: true, storage: true", object), versionEntry("v1", "served: false, storage: false", without)),
			[]string{"high crd.field-removed v1 spec.x: string → -", "high crd.version-unserved v1: served → not served"},
		},
		{"a short name is removed", named("shortNames: [w]"), named("shortNames: [v]"), []string{`low crd.names-changed spec.names.shortNames: ["w"] → ["v"]`}},
		{"scale reads another field", scale(".spec.x"), scale(".spec.y"), []string{`low crd.scale-subresource-changed v1 scale: {"specReplicasPath":".spec.x"} → {"specReplicasPath":".spec.y"}`}},
		{"replicas", deployment("{containers: []}"), strings.Replace(deployment("{containers: []}"), "replicas: 1", "replicas: 2", 1), []string{"info pods.replicas spec.replicas: 1 → 2"}},
		{
			"a container is added, another removed", deployment("{containers: [{name: a, image: q.io/a:1}]}"), deployment("{containers: [{name: b, image: q.io/a:1}]}"),
			[]string{"low pods.container containers.a: q.io/a:1 → -", "low pods.container containers.b: - → q.io/a:1"},
		},
		{"the global default", priority("false"), priority("true"), []string{"medium priority.class globalDefault"}},
		{"an external address", service("{externalIPs: [1.1.1.1]}"), service("{externalIPs: [1.1.1.1, 2.2.2.2]}"), []string{"high objects.exposed spec.externalIPs: - → 2.2.2.2", `info objects.changed: spec.externalIPs=["1.1.1.1"] → spec.externalIPs=["1.1.1.1","2.2.2.2"]`}},
		{"side effects", hook(", sideEffects: None"), hook(", sideEffects: NoneOnDryRun"), []string{"low webhook.side-effects a.b.c sideEffects: None → NoneOnDryRun"}},
		{"match policy", hook(""), hook(", matchPolicy: Exact"), []string{"low webhook.side-effects a.b.c matchPolicy: Equivalent → Exact"}},
		{"the default match policy", hook(""), hook(", matchPolicy: Equivalent"), nil},
		{"reinvocation", hook(""), hook(", reinvocationPolicy: IfNeeded"), []string{"low webhook.side-effects a.b.c reinvocationPolicy: Never → IfNeeded"}},
		{"an allocated clusterIP is immutable", service("{clusterIP: ''}"), service("{clusterIP: 10.0.0.1}"), []string{"high immutable.field-changed spec.clusterIP: - → 10.0.0.1"}},
		{"an empty clusterIP is a missing one", service("{clusterIP: ''}"), service("{}"), nil},
		{"a clusterIP may be left out", service("{clusterIP: 10.0.0.1}"), service("{}"), []string{"info objects.changed: spec.clusterIP=10.0.0.1 → -"}},
		{"a clusterIP is immutable", service("{clusterIP: 10.0.0.1}"), service("{clusterIP: 10.0.0.2}"), []string{"high immutable.field-changed spec.clusterIP: 10.0.0.1 → 10.0.0.2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(append([]string{}, c.want...), lines(compareManifests(t, c.before, c.after))); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// TestFolding checks that equal findings about one object are combined. Findings above low severity are
// combined only if the fields have the same name.
func TestFolding(t *testing.T) {
	of := func(s Severity, fields ...string) []string {
		var in []Finding
		for _, f := range fields {
			in = append(in, Finding{Rule: "crd.default-added", Severity: s, Field: f, Message: "same"})
		}
		var out []string
		for _, f := range foldFindings(in) {
			out = append(out, strings.Join(append([]string{f.Field}, f.otherFields()...), "+"))
		}
		return out
	}
	for s, want := range map[Severity][]string{
		Info: {"v1 a.x+v1 b.x+v1 b.y"}, Low: {"v1 a.x+v1 b.x+v1 b.y"}, Medium: {"v1 a.x+v1 b.x", "v1 b.y"}, Critical: {"v1 a.x+v1 b.x", "v1 b.y"},
	} {
		if d := cmp.Diff(want, of(s, "v1 a.x", "v1 b.x", "v1 b.y")); d != "" {
			t.Errorf("%s: -want +got\n%s", s, d)
		}
	}
}
