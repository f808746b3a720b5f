package render

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// TestConfigsShareADeployment applies configs of clusters to one Deployment. Each config gives the same result as with
// a separate copy of the Deployment, and the patch contains exactly this change. The Deployment is not modified.
func TestConfigsShareADeployment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var opt Options
		if rapid.Bool().Draw(t, "mirrors") {
			opt.Mirrors = []Mirror{{Source: "quay.io", Mirror: "mirror.example.com/quay"}}
		}
		drawn := drawDeployment(t)
		o := withMirrors(drawn, opt.Mirrors)
		before := k8s.Copy(o)
		for range rapid.IntRange(1, 4).Draw(t, "clusters") {
			text, err := json.Marshal(drawConfig(t))
			if err != nil {
				t.Fatal(err)
			}
			alone, err := parseConfig(text)
			if err != nil {
				t.Fatal(err)
			}
			want := k8s.Copy(drawn)
			alone.applyInPlace(want)
			want = withMirrors(want, opt.Mirrors)
			cfg, err := (&view{tree: &tree{opt: opt}, cluster: profile.Cluster{Config: text}}).config()
			if err != nil {
				t.Fatal(err)
			}
			got := cfg.applyToCopy(o)
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("config %s: -alone +shared\n%s", text, d)
			}
			if d := cmp.Diff(appendPatch(nil, "", map[string]any(before), map[string]any(want)), appendPatch(nil, "", map[string]any(o), map[string]any(got))); d != "" {
				t.Fatalf("config %s: the patch: -alone +shared\n%s", text, d)
			}
			if d := cmp.Diff(before, o); d != "" {
				t.Fatalf("config %s modified the Deployment: -before +after\n%s", text, d)
			}
		}
	})
}

// drawJSON draws one of the given JSON texts, and returns it decoded. If it draws "", it returns nil.
func drawJSON(t *rapid.T, what string, of ...string) any {
	var v any
	if text := rapid.SampledFrom(of).Draw(t, what); text != "" {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// withoutNil removes fields with the value nil, which drawJSON returns for "".
func withoutNil(fields map[string]any) map[string]any {
	for key, v := range fields {
		if v == nil {
			delete(fields, key)
		}
	}
	return fields
}

func drawDeployment(t *rapid.T) Object {
	var lists [2][]any
	for i := range lists {
		for range rapid.IntRange(0, 2).Draw(t, "containers") {
			env := append(make([]any, 0, 8), k8s.List(map[string]any{"": drawJSON(t, "env", "", "[]", `[{"name":"A","value":"a"}]`, `[{"name":"I","value":"quay.io/a/b:1"},{"name":"A","value":"c"},{"name":"A","value":"d"}]`)}, "")...)
			c := withoutNil(map[string]any{
				"image": drawJSON(t, "image", `"quay.io/a/b:1"`, `"b"`), "args": drawJSON(t, "args", "", `["--image=quay.io/a/b:1"]`),
				"envFrom": drawJSON(t, "envFrom", "", "[]", `[{"prefix":"A"}]`), "volumeMounts": drawJSON(t, "mounts", "", `[{"name":"v","mountPath":"/w"}]`), "resources": drawJSON(t, "resources", "", `{"limits":{"cpu":"2"}}`),
			})
			if len(env) > 0 || rapid.Bool().Draw(t, "empty env") {
				c["env"] = env // with spare capacity, to detect appends to a shared list
			}
			lists[i] = append(lists[i], c)
		}
	}
	pod := withoutNil(map[string]any{
		"volumes": drawJSON(t, "volumes", "", `[{"name":"v"}]`), "tolerations": drawJSON(t, "tolerations", "", `[{"key":"a"}]`), "nodeSelector": drawJSON(t, "nodeSelector", "", `{"a":"a"}`),
		"affinity": drawJSON(t, "affinity", "", "{}", `{"nodeAffinity":{"x":["y"]},"podAffinity":{}}`),
	})
	for i, list := range lists {
		if list != nil {
			pod[k8s.ContainerLists()[i]] = list
		}
	}
	o := k8s.New("apps/v1", "Deployment", "ns", "d")
	template := withoutNil(map[string]any{"metadata": drawJSON(t, "template", "", "{}", `{"annotations":{"a":"t"}}`)})
	template["spec"] = pod
	o["spec"] = map[string]any{"template": template}
	if a := drawJSON(t, "annotations", "", `{"b":"o"}`); a != nil {
		o = k8s.With(o, a, "metadata", "annotations")
	}
	return o
}

func drawConfig(t *rapid.T) map[string]any {
	return withoutNil(map[string]any{
		"env":     drawJSON(t, "config env", "", `[{"name":"A","value":"x"}]`, `[{"name":"I","value":"quay.io/c/d:1"},{"name":"B","value":"y"},{"name":"B","value":"z"}]`),
		"envFrom": drawJSON(t, "config envFrom", "", `[{"prefix":"A"},{"prefix":"B"}]`), "volumeMounts": drawJSON(t, "config mounts", "", `[{"name":"v","mountPath":"/x"},{"name":"v","mountPath":"/y"}]`),
		"resources": drawJSON(t, "config resources", "", "{}", `{"limits":{"cpu":"1"}}`), "volumes": drawJSON(t, "config volumes", "", `[{"name":"v","emptyDir":{}}]`),
		"tolerations": drawJSON(t, "config tolerations", "", `[{"key":"a"},{"key":"b"}]`), "nodeSelector": drawJSON(t, "config nodeSelector", "", "{}", `{"site":"a"}`),
		"affinity": drawJSON(t, "config affinity", "", "{}", `{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[]}}}`, `{"podAffinity":{}}`), "annotations": drawJSON(t, "config annotations", "", `{"a":"c","b":"c"}`),
	})
}
