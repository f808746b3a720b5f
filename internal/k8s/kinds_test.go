package k8s

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestBuiltin compares the table with the Go types of Kubernetes. The table must contain exactly the groups of these
// types and the kinds with a list type, and the kinds in elsewhere, which were removed or have other types.
func TestBuiltin(t *testing.T) {
	elsewhere := []string{"CustomResourceDefinition.apiextensions.k8s.io", "APIService.apiregistration.k8s.io", "PodSecurityPolicy.policy", "PodSecurityPolicy.extensions"}
	groups := []string{"apiextensions.k8s.io", "apiregistration.k8s.io"}
	want := map[string]bool{}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == "__internal" || slices.Contains([]string{"meta.k8s.io", "admission.k8s.io", "apidiscovery.k8s.io"}, gvk.Group) {
			continue // not served as objects
		}
		groups = append(groups, gvk.Group)
		if kind, isList := strings.CutSuffix(gvk.Kind, "List"); isList && kind != "" && kind != "APIGroup" && scheme.Scheme.Recognizes(gvk.GroupVersion().WithKind(kind)) {
			want[kind+"."+gvk.Group] = true
		}
	}
	for _, k := range elsewhere {
		want[k] = true
	}
	slices.Sort(groups)
	for _, group := range slices.Compact(groups) {
		namespaced, cluster, own := builtinKinds(group)
		if !own {
			t.Errorf("group %q of Kubernetes is not in the table", group)
		}
		for _, kind := range slices.Concat(namespaced, cluster) {
			if !want[kind+"."+group] {
				t.Errorf("%s.%s is in the table, but not in Kubernetes", kind, group)
			}
			delete(want, kind+"."+group)
			guess, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Kind: kind})
			if got := Resource(group, kind); got != guess.Resource {
				t.Errorf("%s.%s: got resource %q, want %q", kind, group, got, guess.Resource)
			}
		}
	}
	for k := range want {
		t.Errorf("%s is not in the table", k)
	}
}

func TestResource(t *testing.T) {
	for kind, want := range map[string]string{
		"NetworkPolicy": "networkpolicies", "Gateway": "gateways", "Ingress": "ingresses", "Endpoints": "endpoints", "Proxy": "proxies", "Thing-x": "thing-xes",
		"Index": "indexes", "Batch": "batches", "Mesh": "meshes", "SecurityContextConstraints": "securitycontextconstraints", "S": "ses",
		"": "", "nodes/proxy": "", "*": "", "a.b": "", "1a": "", "Things ": "", strings.Repeat("a", 64): "",
	} {
		if got := Resource("example.com", kind); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
	for _, gk := range [][2]string{
		{"", "secret"},
		{"", "SECRET"},
		{"", "Secrets"},
		{"", "Binding"},
		{"apps", "deployment"},
		{"apps", "Pod"},
		{"rbac.authorization.k8s.io", "Pod"},
		{"*", "Thing"},
		{"a b", "Thing"},
		{"Example.com", "Thing"},
		{"quayside.dev", "Installation"},
		{"authentication.k8s.io", "TokenReview"},
		{".", "Thing"},
	} {
		if got := Resource(gk[0], gk[1]); got != "" {
			t.Errorf("%q: got %q", gk, got)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct{ apiVersion, kind, want string }{
		{"v1", "Secret", ""},
		{"apps/v1beta2", "Deployment", ""},
		{"example.com/v1alpha1", "Secret", ""},
		{"a-b.io/v2", "thing", ""},
		{"v2", "Secret", `apiVersion: unknown version "v2" of the core group: use v1`},
		{"v1", "secret", `kind: unknown kind "secret" in the core group (did you mean "Secret"?)`},
		{"v1", "SECRET", `kind: unknown kind "SECRET" in the core group`},
		{"apps/v1", "Pod", `kind: unknown kind "Pod" in group apps`},
		{"*/v1", "Thing", `apiVersion: "*" is not a valid group name: `},
		{"/v1", "Secret", `apiVersion: "" is not a valid group name: `},
		{"a/b/c", "Thing", `apiVersion: version "b/c" is not valid: `},
		{"example.com/", "Thing", `apiVersion: version "" is not valid: `},
		{"V1", "Secret", `apiVersion: version "V1" is not valid: `},
		{"example.com/v1", "pods/exec", `kind: in lower case, "pods/exec" is not valid: `},
		{"example.com/v1", "*", `kind: in lower case, "*" is not valid: `},
		{"quayside.dev/v1alpha1", "Installation", `apiVersion: group "quayside.dev" is reserved for quayside's own`},
	} {
		got := strings.Join(KindFaults(c.apiVersion, c.kind), "\n")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s: got %q, want %q", c.apiVersion, c.kind, got, c.want)
		}
	}
}

// crd returns a CRD with these names.
func crd(name, group, plural, kind, version string) map[string]any {
	o := New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name)
	o["spec"] = map[string]any{
		"group": group, "names": map[string]any{"plural": plural, "kind": kind},
		"versions": []any{map[string]any{"name": version, "served": true, "storage": true}},
	}
	return o
}

func TestDefinitionFaults(t *testing.T) {
	twice := crd("things.example.com", "example.com", "things", "Thing", "v1")
	Map(twice, "spec")["versions"] = append(List(twice, "spec", "versions"), map[string]any{"name": "v1"})
	for _, c := range []struct {
		crd  map[string]any
		want string
	}{
		{crd("things.example.com", "example.com", "things", "Thing", "v1"), ""},
		{crd("secrets.example.com", "example.com", "secrets", "Secret", "v1"), ""},
		{crd("things.sub.k8s.io", "sub.k8s.io", "things", "Thing", "v1"), ""},
		{crd("secrets.", "", "secrets", "Secret", "v1"), "spec.group: "},
		{crd("things.example", "example", "things", "Thing", "v1"), `spec.group: "example" has no dot`},
		{crd("deployments.apps", "apps", "deployments", "Deployment", "v1"), `spec.group: "apps" is reserved for Kubernetes`},
		{crd("things.rbac.authorization.k8s.io", "rbac.authorization.k8s.io", "things", "Thing", "v9"), "spec.group: "},
		{crd("things.quayside.dev", "quayside.dev", "things", "Thing", "v1"), `spec.group: "quayside.dev" is reserved for quayside`},
		{crd("things.*", "*", "things", "Thing", "v1"), "spec.group: "},
		{crd("nodes/proxy.example.com", "example.com", "nodes/proxy", "Thing", "v1"), "spec.names.plural: "},
		{crd("*.example.com", "example.com", "*", "Thing", "v1"), "spec.names.plural: "},
		{crd("a.b.example.com", "example.com", "a.b", "Thing", "v1"), "spec.names.plural: "},
		{crd("things.example.com", "example.com", "things", "", "v1"), "spec.names.kind: "},
		{crd("things.example.com", "example.com", "things", "Thing", "*"), "spec.versions[0].name: "},
		{crd("other.example.com", "example.com", "things", "Thing", "v1"), `metadata.name: "other.example.com" must be "things.example.com"`},
		{map[string]any{"spec": "none"}, "spec.group: "},
		{twice, `spec.versions[1].name: version "v1" appears twice`},
	} {
		got := strings.Join(ParseCRD(c.crd).Faults(), "\n")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%v: got %q, want %q", c.crd, got, c.want)
		}
	}
}

// TestDefine parses a v1 CRD and a v1beta1 CRD, whose versions share schema and subresources.
func TestDefine(t *testing.T) {
	schema, status := map[string]any{"type": "object"}, map[string]any{"status": map[string]any{}}
	old := crd("things.example.com", "example.com", "things", "Thing", "v2")
	spec := Map(old, "spec")
	spec["scope"], spec["validation"], spec["subresources"] = "Cluster", map[string]any{"openAPIV3Schema": schema}, status
	delete(spec, "versions")
	spec["version"] = "v1"
	want := CRD{
		Name: "things.example.com", Group: "example.com", Kind: "Thing", Plural: "things",
		Versions: []CRDVersion{{Name: "v1", Served: true, Storage: true, Schema: schema, Subresources: status}},
	}
	if d := cmp.Diff(want, ParseCRD(old)); d != "" {
		t.Errorf("v1beta1: -want +got\n%s", d)
	}
	now := crd("things.example.com", "example.com", "things", "Thing", "v2")
	spec = Map(now, "spec")
	spec["versions"] = append(List(spec, "versions"), map[string]any{
		"name": "v1", "deprecated": true, "schema": map[string]any{"openAPIV3Schema": schema}, "subresources": status,
		"selectableFields": []any{map[string]any{"jsonPath": ".spec.a"}},
	})
	want.Namespaced, want.Versions = true, []CRDVersion{
		{Name: "v2", Served: true, Storage: true},
		{Name: "v1", Deprecated: true, Schema: schema, Subresources: status, Selectable: []string{".spec.a"}},
	}
	got := ParseCRD(now)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("v1: -want +got\n%s", d)
	}
	v1, ok := got.Version("v1")
	stored, hasOne := got.Stored()
	_, none := got.Version("v3")
	if !ok || !v1.Deprecated || !hasOne || stored.Name != "v2" || none || !slices.Equal(got.Served(), []string{"v2"}) {
		t.Errorf("got %v, %v, %v, %v", v1, stored, none, got.Served())
	}
}

func TestNamespaced(t *testing.T) {
	for gk, want := range map[[2]string]bool{
		{"", "ConfigMap"}: true, {"", "Node"}: false, {"rbac.authorization.k8s.io", "ClusterRole"}: false, {"example.com", "ClusterRole"}: true,
		{"cert-manager.io", "ClusterIssuer"}: false, {"cert-manager.io", "Issuer"}: true, {"autoscaling.k8s.io", "VerticalPodAutoscaler"}: true,
	} {
		if got := Namespaced(gk[0], gk[1]); got != want {
			t.Errorf("%v: got %v", gk, got)
		}
	}
}

func TestReserved(t *testing.T) {
	const authz = "rbac.authorization.k8s.io/v1"
	for _, c := range []struct {
		apiVersion, kind, name string
		want                   bool
	}{
		{authz, "ClusterRole", "cluster-admin", true},
		{authz, "ClusterRole", "view", true},
		{authz, "ClusterRole", "system:node", true},
		{authz, "ClusterRole", "view-things", false},
		{authz, "ClusterRole", "Admin", false},
		{"example.com/v1", "ClusterRole", "admin", false},
		{authz, "ClusterRoleBinding", "cluster-admin", true},
		{authz, "ClusterRoleBinding", "self-provisioners", true},
		{authz, "Role", "admin", false},
		{"v1", "Namespace", "default", true},
		{"v1", "Namespace", "kube-public", true},
		{"v1", "Namespace", "openshift-monitoring", true},
		{"v1", "Namespace", "kubevirt", false},
		{"v1", "ConfigMap", "kube-system", false},
		{"scheduling.k8s.io/v1", "PriorityClass", "system-node-critical", true},
		{"scheduling.k8s.io/v1", "PriorityClass", "systemic", false},
		{"flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "exempt", true},
		{"flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "system", true},
		{"flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "things", false},
		{"security.openshift.io/v1", "SecurityContextConstraints", "privileged", true},
		{"security.openshift.io/v1", "SecurityContextConstraints", "restricted-v2", true},
		{"security.openshift.io/v1", "SecurityContextConstraints", "things-privileged", false},
	} {
		o := New(c.apiVersion, c.kind, "", c.name)
		if got := IsReserved(o); got != c.want {
			t.Errorf("%s: got %v", o.Key(), got)
		}
		if c.want && !IsReservedName(c.kind+"/"+c.name) {
			t.Errorf("%s/%s is not accepted as a reserved name", c.kind, c.name)
		}
	}
	for group, want := range map[string]bool{
		"apps": true, "": true, "rbac.authorization.k8s.io": true, "route.openshift.io": true, "packages.operators.coreos.com": true,
		"custom.metrics.k8s.io": false, "metrics.k8s.io": false, "beams.example.com": false,
	} {
		named, spelled := New("apiregistration.k8s.io/v1", "APIService", "", "v1."+group), New("apiregistration.k8s.io/v1", "APIService", "", "v1.example.com")
		named["spec"], spelled["spec"] = map[string]any{"group": "example.com"}, map[string]any{"group": group}
		if IsReserved(named) != want || IsReserved(spelled) != want {
			t.Errorf("APIService of %q: got %v, %v", group, IsReserved(named), IsReserved(spelled))
		}
	}
	for _, id := range []string{"", "ClusterRole", "ClusterRole/", "/admin", "Role/admin", "clusterrole/admin", "Namespace/mine"} {
		if IsReservedName(id) {
			t.Errorf("%q is accepted as a reserved name", id)
		}
	}
}
