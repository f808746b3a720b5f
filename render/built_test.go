package render

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/testing/yamltest"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
)

// testingT is implemented by *testing.T, *testing.B and *rapid.T.
type testingT interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// checkBuiltIsRendered checks the property on which all others depend. The objects that kustomize builds from a
// tree, together with the objects in directories without a kustomization, are exactly Result.Objects. If the
// tree itself has a kustomization, kustomize builds the same objects from it.
func checkBuiltIsRendered(t testingT, res *Result) {
	t.Helper()
	files := filesOf(res.Tree, nil)
	var base []Object
	for _, r := range res.Objects {
		base = append(base, r.Object)
	}
	got := canonicals(t, slices.Concat(plainDocuments(t, files, layout.CRDs), plainDocuments(t, files, layout.Installations)))
	for name := range files {
		level, rest, _ := strings.Cut(path.Dir(name), "/")
		top := slices.Contains([]string{layout.Operators, layout.Namespaces}, level) && !strings.Contains(rest, "/") || path.Dir(name) == layout.Reporter
		if top && path.Base(name) == layout.Kustomization {
			got = append(got, buildCanonical(t, files, path.Dir(name))...)
		}
	}
	checkSameObjects(t, "the base", got, base)
	if _, whole := files[layout.Kustomization]; whole {
		checkSameObjects(t, ".", buildCanonical(t, files, "."), base)
	}
}

// checkClusterBuilds is like checkBuiltIsRendered, for the objects of every cluster.
func checkClusterBuilds(t testingT, res *Result) {
	t.Helper()
	files := filesOf(res.Tree, nil)
	for _, v := range res.tree.views {
		c := v.cluster
		cfg, err := parseConfig(c.Config)
		if err != nil {
			t.Fatalf("cluster %s: %v", c.Name, err)
		}
		var want []Object
		own := v
		if v.own != nil {
			own = v.own
		}
		for _, in := range own.here {
			for _, o := range in.objects {
				want = append(want, own.annotate(cfg.applyToCopy(o)))
			}
		}
		for _, o := range inheritedObjects(own.here) {
			want = append(want, own.annotate(cfg.applyToCopy(o.object)))
		}
		for _, r := range res.Objects {
			if ns, is := strings.CutPrefix(path.Dir(r.Path), layout.Namespaces+"/"); is && slices.Contains(v.neededNamespaces(), ns) {
				want = append(want, r.Object)
			}
		}
		got := partsOf(t, res, nil, c.Name)
		checkSameObjects(t, "cluster "+c.Name, canonicals(t, got.operators()), want)
		if dir := path.Join(".", c.Prefix); files[path.Join(dir, layout.Kustomization)] != nil {
			if d := cmp.Diff(canonicals(t, got.all()), slices.Sorted(slices.Values(buildCanonical(t, files, dir)))); d != "" {
				t.Errorf("cluster %s: the pieces differ from a build of the whole cluster (-pieces +all):\n%s", c.Name, d)
			}
		}
	}
}

// buildCanonical returns the objects that kustomize builds from a directory, each as formatted by canonical.
func buildCanonical(t testingT, files map[string][]byte, dir string) []string {
	t.Helper()
	docs, err := build(files, dir)
	if err != nil {
		t.Fatalf("%s does not build: %v", dir, err)
	}
	out := make([]string, len(docs))
	for i, d := range docs {
		out[i] = canonicalText(t, d.text)
	}
	return out
}

func checkSameObjects(t testingT, dir string, built []string, rendered []Object) {
	t.Helper()
	want := make([]string, len(rendered))
	for i, o := range rendered {
		want[i] = canonical(t, o)
	}
	if d := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(built))); d != "" {
		t.Errorf("%s: kustomize builds other objects than rendered (-rendered +built):\n%s", dir, d)
	}
}

// canonical encodes an object to YAML, decodes it as kustomize does, and returns the result as JSON.
func canonical(t testingT, o Object) string {
	t.Helper()
	return canonicalText(t, yamlnode.Encode(o))
}

func canonicalText(t testingT, text []byte) string {
	t.Helper()
	v, err := yamltest.Decode(text)
	if err != nil {
		t.Fatalf("not readable: %v\n%s", err, text)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("not JSON: %v", err)
	}
	return string(data)
}

func TestBuiltIsRendered(t *testing.T) {
	for _, dir := range goldenCases(t) {
		t.Run(strings.TrimPrefix(filepath.ToSlash(dir), "testdata/"), func(t *testing.T) {
			lock, opt, open := goldenLock(t, dir)
			res, err := All(lock, opt, open)
			if err != nil {
				t.Fatal(err)
			}
			checkBuiltIsRendered(t, res)
			checkClusterBuilds(t, res)
		})
	}
}

// TestBuiltIsRenderedInCorpus checks real operators with checkBuiltIsRendered.
func TestBuiltIsRenderedInCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("builds every bundle")
	}
	for _, dir := range sampleBundles(t) {
		t.Run(filepath.Base(filepath.Dir(dir))+"_"+filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			lock := &lockfile.File{Pins: []lockfile.Pin{pinOf(loadBundle(t, dir), "op-ns")}}
			res, err := All(lock, Options{}, func(lockfile.Pin) (fs.FS, error) { return os.DirFS(dir), nil })
			if err != nil {
				t.Fatal(err)
			}
			checkBuiltIsRendered(t, res)
		})
	}
}

// TestExamplesBuildTheirFiles compares the objects that kustomize builds from each example's tree with
// the documents in its files.
func TestExamplesBuildTheirFiles(t *testing.T) {
	dirs, err := filepath.Glob("../examples/*/rendered")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, dir := range dirs {
		tree, err := filetree.Read(os.DirFS(dir))
		if err != nil {
			t.Fatal(err)
		}
		files := filesOf(tree, nil)
		var want, got []string
		for name, data := range files {
			level, rest, _ := strings.Cut(path.Dir(name), "/")
			switch {
			case !slices.Contains([]string{layout.Namespaces, layout.Operators, layout.Reporter}, level) || path.Ext(name) != ".yaml":
			case path.Base(name) != layout.Kustomization:
				want = append(want, canonicals(t, fileDocuments(t, data))...)
			case !strings.Contains(rest, "/"):
				got = append(got, buildCanonical(t, files, path.Dir(name))...)
			}
		}
		if d := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))); d != "" || len(got) == 0 {
			t.Errorf("%s: %d objects (-files +built):\n%s", dir, len(got), d)
		}
	}
}

// hostileManifests returns manifests that hide an object from readers of the tree, or that try to control the
// tool that builds the tree.
func hostileManifests() map[string]string {
	const role = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: all}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: sa, namespace: x}]}`
	const config = `apiVersion: v1, kind: ConfigMap, data: {a: b}, metadata: {name: c, `
	return map[string]string{
		"named list":           `{apiVersion: v1, kind: ConfigMapList, metadata: {name: harmless}, items: [` + role + `]}`,
		"unnamed list":         `{apiVersion: v1, kind: List, items: [` + role + `]}`,
		"list of lists":        `{apiVersion: v1, kind: AList, metadata: {name: a}, items: [{apiVersion: v1, kind: BList, metadata: {name: b}, items: [` + role + `]}]}`,
		"list of another API":  `{apiVersion: example.com/v1, kind: WidgetList, metadata: {name: w, namespace: n}, spec: {}, items: [` + role + `]}`,
		"list called List":     `{apiVersion: v1, kind: List, metadata: {name: l}, items: [` + role + `]}`,
		"resource list":        `{apiVersion: config.kubernetes.io/v1, kind: ResourceList, metadata: {name: l}, items: [` + role + `]}`,
		"functionConfig":       `{apiVersion: v1, kind: ResourceList, metadata: {name: l}, functionConfig: ` + role + `}`,
		"List functionConfig":  `{apiVersion: v1, kind: List, metadata: {name: l}, functionConfig: ` + role + `}`,
		"items that are a map": `{apiVersion: v1, kind: ConfigMapList, metadata: {name: l}, items: {a: ` + role + `}}`,
		"items that are text":  `{apiVersion: v1, kind: ConfigMapList, metadata: {name: l}, items: text}`,
		"items that are null":  `{apiVersion: v1, kind: ConfigMapList, metadata: {name: l}, items: null}`,
		"an empty item":        `{apiVersion: v1, kind: ConfigMapList, metadata: {name: l}, items: [null]}`,
		"no items":             `{apiVersion: example.com/v1, kind: AllowList, metadata: {name: l}, spec: {allow: []}}`,
		"items of no list":     `{apiVersion: example.com/v1, kind: Basket, metadata: {name: l}, items: [` + role + `]}`,
		"local-config":         `{` + config + `annotations: {config.kubernetes.io/local-config: "true"}}}`,
		"local-config of ''":   `{` + config + `annotations: {config.kubernetes.io/local-config: ""}}}`,
		"needs a hash":         `{` + config + `annotations: {internal.config.kubernetes.io/needsHashSuffix: enabled}}}`,
		"needs-hash":           `{` + config + `annotations: {kustomize.config.k8s.io/needs-hash: "true", kustomize.config.k8s.io/behavior: replace}}}`,
		"previous names":       `{` + config + `annotations: {internal.config.kubernetes.io/previousNames: a, internal.config.kubernetes.io/previousNamespaces: b, internal.config.kubernetes.io/previousKinds: Secret, internal.config.kubernetes.io/prefixes: p, internal.config.kubernetes.io/suffixes: s, internal.config.kubernetes.io/refBy: x}}}`,
		"options":              `{` + config + `annotations: {internal.config.kubernetes.io/allowNameChange: enabled, internal.config.kubernetes.io/generatorBehavior: merge}}}`,
		"origin":               `{` + config + `annotations: {config.kubernetes.io/origin: "path: x", alpha.config.kubernetes.io/transformations: "[]", config.kubernetes.io/index: "7", config.kubernetes.io/path: ../../up.yaml}}}`,
		"a function":           `{` + config + `annotations: {config.kubernetes.io/function: "container: {image: evil}"}}}`,
		"a separator in text":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: \"x\\n---\\nkind: Secret\\n\", b: \"\\r\\n---\\r\\n\", \"c\\n---\\n\": d}\n",
		"a merge key":          `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"<<": "x", "*a": "&b", "!!binary": "c"}}`,
		"annotations of text":  `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: text, labels: [a]}}`,
		"a whole annotation":   `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {a: 1, b: true, c: null, d: [x]}}}`,
		"a whole label":        `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {a: 1, b: true, c: null, d: {x: y}}}}`,
		"a kustomization":      `{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, metadata: {name: kustomization}, resources: [https://example.com/evil]}`,
		"a component":          `{apiVersion: kustomize.config.k8s.io/v1alpha1, kind: Component, metadata: {name: kustomization}, resources: [x]}`,
		"two versions":         `{apiVersion: v1, kind: List, items: [{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}, {apiVersion: example.com/v2, kind: Widget, metadata: {name: w}}]}`,
		"a strange apiVersion": `{apiVersion: a/b/c, kind: Widget, metadata: {name: w}}`,
		"a blank apiVersion":   `{apiVersion: " ", kind: Widget, metadata: {name: w}}`,
		"a slash":              `{apiVersion: /, kind: Widget, metadata: {name: w}}`,
		"a strange kind":       `{apiVersion: example.com/v1, kind: "Widget\nList", metadata: {name: w}, items: [` + role + `]}`,
		"a kind with a blank":  `{apiVersion: example.com/v1, kind: "WidgetList ", metadata: {name: w}, items: [` + role + `]}`,
		"a deployment like it": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a.d}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: quay.io/a/b}]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a-d}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: quay.io/c/d}]}}}}`,
	}
}

// renderHostile renders a manifest of one operator. It returns nil if the manifest is rejected.
func renderHostile(t testingT, manifest string) *Result {
	t.Helper()
	res, err := renderBundles(map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1", manifest)}, nil, Options{
		Profile:  profile.ArgoCD,
		Clusters: []profile.Cluster{{Name: "one", Config: json.RawMessage(`{"env":[{"name":"A","value":"b"}]}`)}, {Name: "two", Operators: []string{"b/*"}}},
		Mirrors:  []Mirror{{Source: "quay.io/a", Mirror: "mirror.example.com/a"}},
	})
	if err != nil {
		return nil
	}
	checkBuiltIsRendered(t, res)
	return res
}

// TestSmuggledIsRefusedOrRendered checks that each hostile manifest is rejected or built as rendered.
func TestSmuggledIsRefusedOrRendered(t *testing.T) {
	for name, manifest := range hostileManifests() {
		t.Run(name, func(t *testing.T) {
			if res := renderHostile(t, manifest); res != nil {
				checkClusterBuilds(t, res)
			}
		})
	}
}

// FuzzBuiltIsRendered puts any manifest into a bundle: it must be rejected, or kustomize must build
// exactly the rendered objects.
func FuzzBuiltIsRendered(f *testing.F) {
	for _, manifest := range hostileManifests() {
		f.Add(manifest)
	}
	f.Fuzz(func(t *testing.T, manifest string) {
		if len(manifest) < 1<<14 {
			renderHostile(t, manifest)
		}
	})
}

// TestHostileObjectsAreBuiltAsRendered renders bundles with objects that have random fields. Each bundle must be
// rejected or built as rendered.
func TestHostileObjectsAreBuiltAsRendered(t *testing.T) {
	if testing.Short() {
		t.Skip("each kustomize build takes a tenth of a second")
	}
	key := rapid.SampledFrom([]string{
		"a", "config.kubernetes.io/local-config", "internal.config.kubernetes.io/needsHashSuffix", "internal.config.kubernetes.io/previousNames",
		"kustomize.config.k8s.io/needs-hash", "internal.config.kubernetes.io/refBy", "<<", "---", "a\nb",
	})
	value := rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any]("true"), rapid.Just[any]("enabled"), rapid.Just[any](int64(1)), rapid.Just[any](true),
		rapid.Just[any]([]any{"a", nil}), rapid.Just[any](map[string]any{"a": "b"}), rapid.Just[any]("a\n---\nb\r\n"), rapid.Just[any](" # "),
	)
	var object func(depth int) *rapid.Generator[map[string]any]
	object = func(depth int) *rapid.Generator[map[string]any] {
		return rapid.Custom(func(t *rapid.T) map[string]any {
			o := map[string]any{
				"apiVersion": rapid.SampledFrom([]string{"v1", "example.com/v1", "apps/v1", "rbac.authorization.k8s.io/v1", "x.io/v1", "a/b/c", "config.kubernetes.io/v1"}).Draw(t, "apiVersion"),
				"kind":       rapid.SampledFrom([]string{"ConfigMap", "Deployment", "ClusterRole", "List", "ConfigMapList", "ThingList", "ResourceList", "Thing", "Kustomization", "Namespace", "Service"}).Draw(t, "kind"),
				"metadata": map[string]any{
					"name":        rapid.SampledFrom([]string{"a", "b", "a.b", "a-b", "default"}).Draw(t, "name"),
					"annotations": rapid.MapOfN(key, value, 0, 3).Draw(t, "annotations"), "labels": rapid.MapOfN(key, value, 0, 2).Draw(t, "labels"),
				},
			}
			for _, field := range []string{"items", "data", "spec", "functionConfig", "results"} {
				switch rapid.IntRange(0, 5).Draw(t, field) {
				case 0:
					o[field] = value.Draw(t, field)
				case 1:
					if depth > 0 {
						var list []any
						for _, inner := range rapid.SliceOfN(object(depth-1), 0, 3).Draw(t, field) {
							list = append(list, inner)
						}
						o[field] = list
					}
				}
			}
			return o
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		var manifests []string
		for _, o := range rapid.SliceOfN(object(2), 1, 3).Draw(t, "objects") {
			manifests = append(manifests, string(yamlnode.Encode(o)))
		}
		renderHostile(t, strings.Join(manifests, "---\n"))
	})
}

// TestListsAreSplit checks that the objects in a List are rendered like other objects of the bundle.
func TestListsAreSplit(t *testing.T) {
	for name, manifest := range hostileManifests() {
		res, err := renderBundles(map[string]fstest.MapFS{"a/x": newBundle("x", "1.0.0", "v1", manifest)}, nil, Options{})
		_, invalid := bundle.Load(newBundle("x", "1.0.0", "v1", manifest))
		switch name {
		case "named list", "unnamed list", "list of lists", "list of another API", "list called List":
			if err != nil || !slices.ContainsFunc(res.Objects, func(r Rendered) bool {
				return r.Path == "operators/a.x/clusterrolebinding-all.yaml" && r.Object["items"] == nil
			}) {
				t.Errorf("%s: the binding is not rendered: %v", name, err)
			}
		case "resource list", "functionConfig", "List functionConfig", "items that are a map", "items that are text", "items that are null", "an empty item":
			if err == nil || invalid == nil || !strings.Contains(invalid.Error(), "manifests/x0.yaml: document 1: ") {
				t.Errorf("%s: got %v and %v, want file and field", name, err, invalid)
			}
		}
	}
}

// TestBundlesDoNotSteer ships annotations and labels that control a GitOps tool, on objects in files, on
// generated objects and on the suggested Namespace. They must not be rendered, and each must cause a warning.
// The annotations that quayside sets for the tool must remain.
func TestBundlesDoNotSteer(t *testing.T) {
	keys := []string{
		"kustomize.toolkit.fluxcd.io/substitute", "kustomize.toolkit.fluxcd.io/reconcile", "kustomize.toolkit.fluxcd.io/prune", "kustomize.toolkit.fluxcd.io/force",
		"kustomize.toolkit.fluxcd.io/ssa", "fluxcd.io/ignore", "argocd.argoproj.io/hook", "argocd.argoproj.io/sync-wave", "argocd.argoproj.io/sync-options",
		"argocd.argoproj.io/tracking-id", "argocd.argoproj.io/compare-options", "argocd.argoproj.io/instance", "argocd.argoproj.io/secret-type",
		"app.kubernetes.io/instance", "helm.sh/hook", "helm.sh/hook-weight", "helm.sh/resource-policy", "config.kubernetes.io/local-config",
		"quayside.dev/package", "quayside.dev/stage", "x.quayside.dev/y",
	}
	var marks []string
	for _, key := range keys {
		marks = append(marks, key+": SMUGGLED")
	}
	meta := "annotations: {" + strings.Join(marks, ", ") + "}, labels: {helm.sh/chart: kept, " + strings.Join(marks, ", ") + "}"
	fsys := newBundle("x", "1.0.0", "v1", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, `+meta+`}}`, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa, `+meta+`}}`)
	for file, edit := range map[string][2]string{
		"manifests/csv.yaml": {"deployments: [{name: d,", "deployments: [{name: d, label: {" + strings.Join(marks, ", ") + "},"},
		"manifests/crd.yaml": {"metadata: {name: things.x.io", "metadata: {name: things.x.io, " + meta},
	} {
		fsys[file].Data = []byte(strings.Replace(string(fsys[file].Data), edit[0], edit[1], 1))
	}
	template, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{keys[0]: "SMUGGLED"}, "annotations": map[string]string{keys[7]: "SMUGGLED"}}})
	if err != nil {
		t.Fatal(err)
	}
	fsys["manifests/csv.yaml"].Data = []byte(strings.Replace(string(fsys["manifests/csv.yaml"].Data), "{name: x.v1.0.0}",
		"{name: x.v1.0.0, annotations: {operatorframework.io/suggested-namespace-template: '"+string(template)+"'}}", 1))
	for _, name := range profile.Names() {
		res, err := renderBundles(map[string]fstest.MapFS{"a/x": fsys}, nil, Options{Profile: profile.Name(name)})
		if err != nil {
			t.Fatal(err)
		}
		for file, data := range res.Tree.All() {
			if strings.Contains(string(data), "SMUGGLED") {
				t.Errorf("%s: %s controls the tool:\n%s", name, file, data)
			}
		}
		var said []string
		for _, w := range res.Warnings {
			said = append(said, w.Msg)
		}
		for _, key := range keys { // two in each of three objects, and on the Deployment
			at := fmt.Sprintf("CustomResourceDefinition things.x.io: metadata.annotations: %q ignored", key)
			if !slices.ContainsFunc(said, func(s string) bool {
				return strings.HasPrefix(s, at) && strings.HasSuffix(s, "(also in 6 more places)")
			}) {
				t.Errorf("%s: no warning about %s: %q", name, key, said)
			}
		}
		if !strings.Contains(strings.Join(said, "\n"), `suggested-namespace-template: "argocd.argoproj.io/sync-wave" ignored`) {
			t.Errorf("%s: no warning about the template", name)
		}
		for _, r := range res.Objects {
			if wave := r.Object.Name() == "c" && strings.Contains(canonical(t, r.Object), "argocd.argoproj.io/sync-wave"); r.Object.Name() == "c" && wave != (name == string(profile.ArgoCD)) {
				t.Errorf("%s: wrong annotations of the profile: %s", name, canonical(t, r.Object))
			}
			if r.Object.Name() == "c" && !strings.Contains(canonical(t, r.Object), `"helm.sh/chart":"kept"`) {
				t.Errorf("%s: an annotation that controls no tool was removed", name)
			}
		}
	}
}
