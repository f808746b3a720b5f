package overlay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/testing/yamltest"
	"github.com/quayside/quayside/internal/yamlnode"
)

// editedFiles returns three objects and two kustomizations. The first lists the objects. The second builds on
// the first, and may change the objects.
func editedFiles() map[string]string {
	deployment := func(name string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + ", namespace: ns, annotations: {a: b}}\n" +
			"spec: {replicas: 1, template: {metadata: {labels: {x: y}}, spec: {nodeSelector: {a: b}, containers: [{name: c, env: [{name: A, value: '1'}]}, {name: d, args: [x, y]}]}}}\n"
	}
	return map[string]string{
		"base/kustomization.yaml": "resources: [x.y.yaml, x-y.yaml, a.yaml]\n", "base/x.y.yaml": deployment("x.y"), "base/x-y.yaml": deployment("x-y"),
		"top/c/kustomization.yaml": "resources: [generated]\n",
	}
}

// drawPatch draws an entry of patches, usually in the form that quayside renders.
func drawPatch(t *rapid.T) string {
	entry := func(target, patch string) string {
		if rapid.Bool().Draw(t, "block") {
			patch = block(patch)
		}
		return entry(target, patch)
	}
	pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	often := func(what, usual string, others ...string) string {
		return pick(what, append([]string{usual, usual, usual, usual, usual, usual}, others...)...)
	}
	if rapid.IntRange(0, 9).Draw(t, "usual") > 1 {
		usual := `{group: apps, version: v1, kind: Deployment, name: ` + pick("which", `x\.y`, `x\.y`, "x-y", "none") + `, namespace: ns}`
		return entry(usual, pick("patch",
			"- {op: add, path: /spec/template/spec/nodeSelector, value: {site: '1'}}", "- {op: replace, path: /spec/template/spec/nodeSelector/a, value: 'yes'}", "- {op: remove, path: /spec/template/spec/nodeSelector/a}",
			"- {op: replace, path: /spec/template/spec/containers/0/env, value: [{name: A, value: '2'}, {name: B, valueFrom: {configMapKeyRef: {name: a, key: k}}}]}",
			"- {op: replace, path: /spec/template/spec/containers/0/env/0/value, value: on}", "- {op: add, path: /spec/template/spec/containers/1/env, value: [{name: A, value: '1e3'}]}",
			"- {op: add, path: /spec/template/spec/tolerations, value: [{key: a, operator: Exists, tolerationSeconds: 30}]}", "- {op: replace, path: /spec/template/spec/containers/1/args/1, value: z}",
			"- {op: add, path: /metadata/annotations/b~1c, value: d}\n- {op: replace, path: /spec/replicas, value: 3}", "- {op: add, path: /spec/template/metadata/annotations, value: {a: b}}",
			"- {op: remove, path: /spec/template/spec/containers/1/args}\n- {op: add, path: /spec/template/spec/containers/1/resources, value: {limits: {cpu: 1, memory: 1Gi}}}"))
	}
	value := pick("value", "v", "'1'", "1", "1.5", "true", "null", "~", "{}", "[]", "{b: c, d: 2}", "{n: null}", "[{name: A, value: '2'}, {name: B, value: c}]", "1e3", "0x10", "yes")
	if pick("about", "spec", "spec", "spec", "metadata") == "metadata" {
		op := often("op", "add", "replace", "remove")
		at := pick("path", "annotations/a", "annotations/b", "annotations/x~1y", "annotations/config.kubernetes.io~1local-config", "annotations", "labels", "labels/a", "name", "namespace", "finalizers")
		return entry(often("target", `{group: apps, version: v1, kind: Deployment, name: x\.y, namespace: ns}`, `{kind: ConfigMap}`), fmt.Sprintf("- {op: %s, path: /metadata/%s, value: %s}", op, at, value))
	}
	op := often("op", "add", "replace", "remove", "test", "copy")
	at := pick("path", "replicas", "replicas", "template/spec/nodeSelector", "template/spec/nodeSelector/a", "template/spec/nodeSelector/n", "template/spec/containers/0/env", "template/spec/containers/0/env/0/value",
		"template/spec/containers/1/env", "template/spec/containers/1/args", "template/spec/containers/1/args/1", "template/spec/containers/1/args/-", "template/spec/containers/2", "template/spec/containers/01/env", "template/spec/none/a", "replicas/a", "", "template/spec/tolerations")
	return entry(often("target", `{group: apps, version: v1, kind: Deployment, name: x\.y, namespace: ns}`,
		`{group: apps, version: v1, kind: Deployment, name: x.y, namespace: ns}`, `{group: apps, version: v1, kind: Deployment, name: x-y, namespace: ns}`, `{group: apps, version: v2, kind: Deployment, name: x-y, namespace: ns}`,
		`{group: apps, version: v1, kind: Deployment, name: none, namespace: ns}`, `{group: apps, version: v1, kind: Deployment, name: x-y, namespace: other}`, `{kind: Deployment}`, `{labelSelector: a=b}`), fmt.Sprintf("- {op: %s, path: /spec/%s, value: %s}", op, at, value))
}

// block returns a patch such as "- {op: a, path: b, value: c}" in block style, as tools write
// it.
func block(patch string) string {
	var out strings.Builder
	for line := range strings.Lines(patch) {
		text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "- {"), "}")
		text = strings.Replace(strings.Replace(text, ", path: ", "\n  path: ", 1), ", value: ", "\n  value: ", 1)
		out.WriteString("- " + text + "\n")
	}
	return out.String()
}

func entry(target, patch string) string {
	return fmt.Sprintf("- target: %s\n  patch: %q\n", target, patch)
}

// TestEdits draws patches and checks that kustomize builds the same objects as Edits and Apply, if these
// support the patches.
func TestEdits(t *testing.T) {
	told := 0
	rapid.Check(t, func(t *rapid.T) {
		tree := editedFiles()
		var k strings.Builder
		k.WriteString("resources: [../../../base]\npatches:\n")
		for range rapid.IntRange(1, 3).Draw(t, "patches") {
			k.WriteString(drawPatch(t))
		}
		tree["top/c/generated/kustomization.yaml"] = k.String()
		if rapid.IntRange(0, 5).Draw(t, "beside") == 0 {
			tree["top/c/kustomization.yaml"] = "resources: [generated, x.yaml]\n"
			tree["top/c/x.yaml"] = strings.Replace(object, "name: a", "name: x", 1)
		}
		o, err := files(tree).Open("top/c")
		if err != nil {
			t.Skip(err)
		}
		got, ok := byEdits(t, o)
		if !ok {
			return
		}
		told++
		built, err := o.Build()
		if err != nil {
			t.Fatalf("kustomize rejects the patch: %v", err)
		}
		want := map[string]any{}
		for _, data := range built {
			content, err := diff.Content(data)
			must(t, err)
			want[k8s.Text(content, "metadata", "name")] = content
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("(-kustomize +Edits):\n%s", d)
		}
	})
	if told == 0 {
		t.Error("Edits supported no patch: the test is ineffective")
	}
}

// byEdits returns the edited resources of an overlay by name, or false if Edits or Apply does
// not support them.
func byEdits(t *rapid.T, o *overlay.Overlay) (map[string]any, bool) {
	edits, ok := o.Edits()
	if !ok {
		return nil, false
	}
	out := map[string]any{}
	all := o.All()
	for _, name := range o.Resources() {
		v, err := yamltest.Decode(all[name])
		must(t, err)
		data, err := json.Marshal(v)
		must(t, err)
		content, err := diff.Content(data)
		must(t, err)
		key := k8s.Object(content).Key()
		for _, e := range edits {
			if e.Key == key {
				if content, ok = e.Apply(content); !ok {
					return nil, false
				}
			}
		}
		out[key.Name] = any(content)
	}
	return out, true
}

// TestBuildIsKustomizes draws patches of rendered objects, and a user's kustomization that includes the
// patched objects. It checks that Build and kustomize return the same objects, or both fail.
func TestBuildIsKustomizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
		tree := editedFiles()
		patches := "patches:\n"
		for range rapid.IntRange(1, 3).Draw(t, "patches") {
			patches += drawPatch(t)
		}
		tree["top/c/generated/kustomization.yaml"] = "resources: [../../../base]\n" + patches
		tree["base/a.yaml"] = pick("beside", object, object+"---\n"+strings.Replace(object, "name: a", "name: b", 1), "{apiVersion: v1, kind: List, items: ["+strings.ReplaceAll(tree["base/x.y.yaml"], "\n", " ")+"]}\n",
			strings.Replace(tree["base/x.y.yaml"], "name: x.y", "name: z", 1), strings.Replace(object, "name: a", `name: "\u0061"`, 1))
		tree["top/c/x.yaml"] = strings.Replace(object, "name: a", "name: x", 1)
		tree["top/c/kustomization.yaml"] = pick("lists", "resources: [generated]\n", "resources: [generated, x.yaml]\n", "resources: [x.yaml, generated]\n", "resources: [generated, ../../base]\n") +
			pick("prefix", "", "", "namePrefix: p-\n") + pick("labels", "", "labels: [{pairs: {team: b}, includeSelectors: true}]\n") + pick("origins", "", "", "buildMetadata: [originAnnotations]\n") +
			pick("patches", "", "patches:\n"+drawPatch(t), "patches: [{patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: x-y, namespace: ns}, spec: {replicas: 7}}'}]\n", "patches: [{target: {kind: Deployment}, patch: '{apiVersion: v1, kind: Any, metadata: {name: any}, $patch: delete}'}]\n")
		o, err := files(tree).Open("top/c")
		if err != nil {
			t.Skip(err)
		}
		got, err := o.Build()
		fsys := filesys.MakeFsInMemory()
		for name, text := range tree {
			must(t, fsys.WriteFile("/"+name, []byte(text)))
		}
		var want [][]byte
		stock, stockErr := stockBuild(fsys)
		if stockErr == nil {
			for _, r := range stock.Resources() {
				data, err := r.MarshalJSON()
				stockErr = errors.Join(stockErr, err)
				want = append(want, data)
			}
		}
		if (err == nil) != (stockErr == nil) {
			t.Fatalf("Build: %v, kustomize: %v", err, stockErr)
		}
		if d := cmp.Diff(want, got); d != "" && err == nil {
			t.Fatalf("(-kustomize +Build):\n%s", d)
		}
	})
}

// TestBuildListed draws objects in the form of rendered files, and checks that kustomize builds the
// same bytes from them as BuildListed.
func TestBuildListed(t *testing.T) {
	listed := 0
	rapid.Check(t, func(t *rapid.T) {
		pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
		often := func(what, usual string, others ...string) string {
			if rapid.IntRange(0, 9).Draw(t, "usual") < 9 {
				return usual
			}
			return pick(what, others...)
		}
		tree := map[string]string{"top/c/kustomization.yaml": "resources: [x.yaml, y.yaml, d.yaml]\n" + pick("patches", "", "", "patches:\n"+drawPatch(t))}
		tree["top/c/d.yaml"] = strings.ReplaceAll(editedFiles()["base/x.y.yaml"], " y", " 'y'")
		for _, name := range []string{"x", "y"} {
			value := rapid.OneOf(
				rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.Int64(), func(n int64) any { return n }),
				rapid.SampledFrom([]any{"y", "no", "1e3", "0o17", "017", "1_000", "1:30", "2020-01-01", "~", "", "<&>", "\u2028", "a\nb\n", true, nil, 1.5, map[string]any{}, []any{}, map[string]any{"n": nil, "y": "n"}, []any{"1", 1}}),
			)
			metadata := map[string]any{"name": often("name", name, "x", "1", ""), pick("map", "annotations", "labels"): map[string]any{
				often("key", "a", "config.kubernetes.io/local-config", "config.kubernetes.io/index", "internal.config.kubernetes.io/path", "kustomize.config.k8s.io/behavior"): pick("text", "true", "b", "0"),
			}}
			tree["top/c/"+name+".yaml"] = string(yamlnode.Encode(map[string]any{
				"apiVersion": often("api", "example.com/v1", "v1", "", "kustomize.config.k8s.io/v1beta1"), "kind": often("kind", "Any", "Secret", "AnyList", "Kustomization", ""), "metadata": metadata,
				pick("field", "spec", "items", "data"): map[string]any{"a": value.Draw(t, "value"), often("key", "y", "1", "<<", "a.b"): []any{value.Draw(t, "value")}},
			}))
		}
		o, err := files(tree).Open("top/c")
		must(t, err)
		got, ok := o.BuildListed()
		if !ok {
			return
		}
		listed++
		fsys := filesys.MakeFsInMemory()
		for name, text := range tree {
			must(t, fsys.WriteFile("/"+name, []byte(text)))
		}
		stock, err := stockBuild(fsys)
		must(t, err)
		var want [][]byte
		for _, r := range stock.Resources() {
			data, err := r.MarshalJSON()
			must(t, err)
			want = append(want, data)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("(-kustomize +BuildListed):\n%s", d)
		}
	})
	if listed == 0 {
		t.Error("BuildListed supported no case: the test is ineffective")
	}
}

// stockBuild builds top/c like the kustomize program. It converts a panic into an error.
func stockBuild(fsys filesys.FileSystem) (built resmap.ResMap, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fsys, "/top/c")
}

// TestBuildSurvivesPanic removes the name of an object and then selects the object, so that kustomize panics.
func TestBuildSurvivesPanic(t *testing.T) {
	tree := editedFiles()
	tree["top/c/generated/kustomization.yaml"] = "resources: [../../../base]\npatches:\n" +
		entry(`{group: apps, version: v1, kind: Deployment, name: x\.y, namespace: ns}`, "- {op: add, path: /metadata/name, value: null}") +
		entry(`{group: apps, version: v1, kind: Deployment, name: x\.y, namespace: ns}`, "- {op: replace, path: /spec/replicas, value: 2}")
	tree["base/a.yaml"] = object
	o, err := files(tree).Open("top/c")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Build(); err == nil || !strings.Contains(err.Error(), "top/c/kustomization.yaml: kustomize panicked") {
		t.Errorf("got %v, want an error that names the kustomization", err)
	}
}
