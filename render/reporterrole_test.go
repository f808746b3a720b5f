package render

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/lockfile"
)

// findExcess returns the permissions of a role that no role of the reporter may have.
func findExcess(role Object) []string {
	var out []string
	for _, rule := range k8s.Items(role, "rules") {
		for _, field := range slices.Sorted(maps.Keys(rule)) {
			if !slices.Contains([]string{"apiGroups", "resources", "verbs"}, field) {
				out = append(out, field)
			}
		}
		writes := slices.ContainsFunc(k8s.Texts(rule, "verbs"), func(v string) bool { return !slices.Contains([]string{"get", "list", "watch"}, v) })
		for _, group := range k8s.Texts(rule, "apiGroups") {
			for _, resource := range k8s.Texts(rule, "resources") {
				full := group + "/" + resource
				switch {
				case slices.Contains([]string{"/events", "events.k8s.io/events", "quayside.dev/installations/status"}, full):
				case writes, group == "*", strings.ContainsAny(resource, "*/"), full == "/secrets", group == "oauth.openshift.io":
					out = append(out, full)
				}
			}
		}
	}
	return out
}

// newReporterRole returns the reporter's role for objects in a tree with the given CRDs. It skips the checks of
// All. It returns an empty object if the role would be empty.
func newReporterRole(crds []Object, refs ...v1alpha1.ObjectReference) Object {
	t := &tree{}
	for _, o := range crds {
		t.objects = append(t.objects, Rendered{Object: o})
	}
	roles := reporterOptions().roles(Installation{Spec: v1alpha1.InstallationSpec{Objects: refs}}, t.plurals())
	if len(roles) == 0 {
		return Object{}
	}
	return roles[0]
}

func newCRD(group, kind, plural string) Object {
	o := k8s.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+"."+group)
	o["spec"] = map[string]any{"group": group, "names": map[string]any{"kind": kind, "plural": plural}}
	return o
}

// TestReporterReadsNoMore checks that even CRDs and objects that validation would reject give no excess permissions.
func TestReporterReadsNoMore(t *testing.T) {
	for _, c := range []struct {
		ref  v1alpha1.ObjectReference
		crds []Object
		want string // resource of the group
	}{
		{ref: v1alpha1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap"}, want: "configmaps"},
		{ref: v1alpha1.ObjectReference{APIVersion: "example.com/v1", Kind: "Policy"}, want: "policies"},
		{ref: v1alpha1.ObjectReference{APIVersion: "example.com/v1", Kind: "Thing"}, crds: []Object{newCRD("example.com", "Thing", "secrets")}, want: "secrets"},
		{ref: v1alpha1.ObjectReference{APIVersion: "v1", Kind: "Secret"}},
		{ref: v1alpha1.ObjectReference{APIVersion: "v2", Kind: "Secret"}},
		{ref: v1alpha1.ObjectReference{APIVersion: "/v1", Kind: "Secret"}},
		{ref: v1alpha1.ObjectReference{APIVersion: "", Kind: "Secret"}},
		{ref: v1alpha1.ObjectReference{APIVersion: "v1", Kind: "secret"}},
		{ref: v1alpha1.ObjectReference{APIVersion: "v1", Kind: "SECRET"}},
		{ref: v1alpha1.ObjectReference{APIVersion: "v1", Kind: "nodes/proxy"}},
		{ref: v1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "deployment"}},
		{ref: v1alpha1.ObjectReference{APIVersion: "*/v1", Kind: "Thing"}},
		{ref: v1alpha1.ObjectReference{APIVersion: "example.com/v1", Kind: "*"}},
		{ref: v1alpha1.ObjectReference{APIVersion: "oauth.openshift.io/v1", Kind: "OAuthAccessToken"}},
		{ref: v1alpha1.ObjectReference{APIVersion: "v1", Kind: "Thing"}, crds: []Object{newCRD("", "Thing", "secrets")}},
		{ref: v1alpha1.ObjectReference{APIVersion: "v1", Kind: "Thing"}, crds: []Object{newCRD("", "Thing", "nodes/proxy")}},
		{ref: v1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "Thing"}, crds: []Object{newCRD("apps", "Thing", "deployments")}},
		{ref: v1alpha1.ObjectReference{APIVersion: "*/v1", Kind: "Thing"}, crds: []Object{newCRD("*", "Thing", "*")}},
		{ref: v1alpha1.ObjectReference{APIVersion: "example.com/v1", Kind: "Thing"}, crds: []Object{newCRD("example.com", "Thing", "*")}, want: "things"},
		{ref: v1alpha1.ObjectReference{APIVersion: "example.com/v1", Kind: "Thing"}, crds: []Object{newCRD("example.com", "Thing", "things/status")}, want: "things"},
	} {
		role := newReporterRole(c.crds, c.ref)
		if more := findExcess(role); more != nil {
			t.Errorf("%v %v: the reporter may %v", c.ref, c.crds, more)
		}
		var got []string
		for _, rule := range k8s.Items(role, "rules") {
			got = append(got, k8s.Texts(rule, "resources")...)
		}
		if strings.Join(got, ",") != c.want {
			t.Errorf("%v: got %q, want %q", c.ref, got, c.want)
		}
	}
}

// FuzzReporterRole uses any text as a manifest of a bundle. The reporter's role for the objects and CRDs in the
// text must have no excess permission, even without prior validation.
func FuzzReporterRole(f *testing.F) {
	for _, seed := range []string{
		"{apiVersion: v1, kind: secret, metadata: {name: a}}",
		"{apiVersion: v2, kind: Secret, metadata: {name: a}}",
		"{apiVersion: '*/v1', kind: Thing, metadata: {name: a}}",
		"{kind: Secret, metadata: {name: a}}",
		"{apiVersion: oauth.openshift.io/v1, kind: OAuthClient, metadata: {name: a}}",
		"{apiVersion: v1, kind: AnyList, items: [{apiVersion: v1, kind: Secret, metadata: {name: a}}, {apiVersion: v1, kind: Pod/exec, metadata: {name: b}}]}",
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: nodes/proxy.}, spec: {group: '', names: {kind: Thing, plural: nodes/proxy}}}\n---\n{apiVersion: v1, kind: Thing, metadata: {name: a}}",
		"{kind: CustomResourceDefinition, metadata: {name: '*.*'}, spec: {group: '*', names: {kind: Thing, plural: '*'}}}\n---\n{apiVersion: '*/v1', kind: Thing, metadata: {name: a}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, manifest string) {
		content := newBundle("x", "1.0.0", "v1", manifest)
		res, err := renderBundles(map[string]fstest.MapFS{"ns/x": content}, nil, Options{Reporter: reporterOptions()})
		if err == nil {
			for _, r := range res.Objects {
				if dir := path.Dir(r.Path); r.Object.Is(k8s.RBACGroup, "ClusterRole") && (dir == layout.Reporter || dir == layout.Installations) {
					if more := findExcess(r.Object); more != nil {
						t.Errorf("rendered: the reporter may %v", more)
					}
				}
			}
		}
		b, err := bundle.Load(content)
		if err != nil {
			return
		}
		var crds []Object
		var refs []v1alpha1.ObjectReference
		for _, o := range b.Objects {
			refs = append(refs, v1alpha1.ObjectReference{APIVersion: o.APIVersion(), Kind: o.Kind(), Name: o.Name()})
			if k8s.IsCRD(o.Object) {
				crds = append(crds, o.Object)
			}
		}
		if more := findExcess(newReporterRole(crds, refs...)); more != nil {
			t.Errorf("without validation: the reporter may %v", more)
		}
	})
}

// TestHostileKinds ships kinds and CRDs that would give the reporter's roles access to other programs' objects.
// Each must be rejected with its file.
func TestHostileKinds(t *testing.T) {
	crd := func(name, group, plural string) string {
		return fmt.Sprintf("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %q}, spec: {group: %q, scope: Namespaced, names: {kind: Evil, plural: %q}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}", name, group, plural)
	}
	for manifest, want := range map[string]string{
		"{apiVersion: v1, kind: secret, metadata: {name: a}}":                          `kind: unknown kind "secret" in the core group`,
		"{apiVersion: v1, kind: SECRET, metadata: {name: a}}":                          `kind: unknown kind "SECRET" in the core group`,
		"{apiVersion: apps/v1, kind: Secret, metadata: {name: a}}":                     `kind: unknown kind "Secret" in group apps`,
		"{apiVersion: /v1, kind: Secret, metadata: {name: a}}":                         `apiVersion: "" is not a valid group name`,
		"{apiVersion: '*/v1', kind: Thing, metadata: {name: a}}":                       `apiVersion: "*" is not a valid group name`,
		"{apiVersion: x.io/v1/v2, kind: Thing, metadata: {name: a}}":                   `apiVersion: version "v1/v2" is not valid`,
		"{apiVersion: x.io/v1, kind: pods/exec, metadata: {name: a}}":                  `kind: in lower case, "pods/exec" is not valid`,
		"{apiVersion: quayside.dev/v1alpha1, kind: Installation, metadata: {name: a}}": `apiVersion: group "quayside.dev" is reserved for quayside's own`,
		crd("secrets.", "", "secrets"):                                                 `spec.group: "" is reserved for Kubernetes`,
		crd("evils.apps", "apps", "evils"):                                             `spec.group: "apps" is reserved for Kubernetes`,
		crd("evils.storage.k8s.io", "storage.k8s.io", "evils"):                         `spec.group: "storage.k8s.io" is reserved for Kubernetes`,
		crd("evils.quayside.dev", "quayside.dev", "evils"):                             `spec.group: "quayside.dev" is reserved for quayside`,
		crd("evils.local", "local", "evils"):                                           `spec.group: "local" has no dot`,
		crd("nodes.x.io", "x.io", "nodes/proxy"):                                       `spec.names.plural: "nodes/proxy" is not valid`,
		crd("evils.x.io", "x.io", "*"):                                                 `spec.names.plural: "*" is not valid`,
		crd("others.x.io", "x.io", "evils"):                                            `metadata.name: "others.x.io" must be "evils.x.io"`,
	} {
		_, err := renderBundles(map[string]fstest.MapFS{"ns/x": newBundle("x", "1.0.0", "v1", manifest)}, nil, Options{})
		if err == nil || !strings.Contains(err.Error(), "manifests/x0.yaml: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", manifest, err, want)
		}
	}
}

// TestHostileAPIs renders bundles with API services whose aggregated roles would give namespace admins
// and viewers access to other APIs. Such bundles must be rejected.
func TestHostileAPIs(t *testing.T) {
	for api, want := range map[string]string{
		`{"group":"beams.x.io","version":"v1","kind":"Beam","name":"beams"}`:            "",
		`{"group":"rbac.authorization.k8s.io","version":"v1","kind":"Beam","name":"*"}`: `.group: "rbac.authorization.k8s.io" is reserved for Kubernetes`,
		`{"group":"apps","version":"v1","kind":"Deployment","name":"deployments"}`:      `.group: "apps" is reserved for Kubernetes`,
		`{"group":"*","version":"v1","kind":"Beam","name":"beams"}`:                     `.group: "*" is not a valid group name`,
		`{"group":"beams.x.io","version":"v1","kind":"Beam","name":"*"}`:                `.name: "*" is not valid`,
		`{"group":"beams.x.io","version":"v1","kind":"Beam","name":"beams/exec"}`:       `.name: "beams/exec" is not valid`,
		`{"group":"beams.x.io","version":"v1/../..","kind":"Beam","name":"beams"}`:      `.version: "v1/../.." is not valid`,
		`{"group":"beams.x.io","version":"v1","kind":"Beam it","name":"beams"}`:         `.kind: "beam it" is not valid`,
		`{"group":"beams.x.io","version":"v1","kind":"Beam","name":""}`:                 `.name: "" is not valid`,
		`{"group":"","version":"v1","kind":"Secret","name":"secrets"}`:                  `.group: "" is reserved for Kubernetes`,
	} {
		var fields map[string]any
		if err := json.Unmarshal([]byte(api), &fields); err != nil {
			t.Fatal(err)
		}
		fields["deploymentName"] = "d"
		text, _ := json.Marshal(map[string]any{"owned": []any{fields}})
		content := newBundle("x", "1.0.0", "v1")
		csv := strings.Replace(string(content["manifests/csv.yaml"].Data), "  install:\n", "  apiservicedefinitions: "+string(text)+"\n  install:\n", 1)
		content["manifests/csv.yaml"] = &fstest.MapFile{Data: []byte(csv)}
		lock := &lockfile.File{Pins: []lockfile.Pin{{Namespace: "ns", Package: "x", Version: "1.0.0", Bundle: "x.v1.0.0", InstallMode: "AllNamespaces"}}}
		_, err := All(lock, Options{}, func(lockfile.Pin) (fs.FS, error) { return content, nil })
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", api, err, want)
		}
	}
}
