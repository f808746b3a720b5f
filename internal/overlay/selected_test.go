package overlay_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/testing/yamltest"
)

// TestBuildSelected draws rendered patches, and a user's patches that are applied after them. It checks
// that BuildSelected returns all objects that the user's patches change, with the content that Build
// returns.
func TestBuildSelected(t *testing.T) {
	const user = "top/c/kustomization.yaml"
	changed := 0
	rapid.Check(t, func(t *rapid.T) {
		tree := editedFiles()
		kustomization := func(resources string, atLeast int) string {
			text := "resources: [" + resources + "]\n"
			for i := range rapid.IntRange(atLeast, 2).Draw(t, "patches") {
				if i == 0 {
					text += "patches:\n"
				}
				text += drawPatch(t)
			}
			return text
		}
		tree["top/c/generated/kustomization.yaml"] = kustomization("../../../base", 0)
		generated, err := files(tree).Open("top/c/generated")
		if err != nil {
			t.Skip(err)
		}
		rendered, err := generated.Build()
		if err != nil {
			t.Skip(err)
		}
		for _, name := range []string{"x.y", "x-y"} {
			if contentsByKey(t, rendered)[k8s.Key{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: name}] == nil {
				t.Skip("a rendered patch renames no object")
			}
		}
		tree[user] = kustomization("generated", 1)
		o, err := files(tree).Open("top/c")
		if err != nil {
			t.Skip(err)
		}
		all, err := o.Build()
		if err != nil {
			t.Skip(err)
		}
		before, built, err := o.BuildSelected(func(name string) bool { return name == user })
		if err != nil {
			t.Fatal(err)
		}
		got := contentsByKey(t, rendered)
		for _, key := range before {
			delete(got, key)
		}
		for key, content := range contentsByKey(t, built) {
			got[key] = content
		}
		if d := cmp.Diff(contentsByKey(t, all), got); d != "" {
			t.Fatalf("%s\n(-Build +BuildSelected):\n%s", tree[user], d)
		}
		if len(built) > 0 {
			changed++
		}
	})
	if changed == 0 {
		t.Error("no patch selected an object: the test is ineffective")
	}
}

func contentsByKey(t *rapid.T, built [][]byte) map[k8s.Key]any {
	out := map[k8s.Key]any{}
	for _, data := range built {
		v, err := yamltest.Decode(data)
		must(t, err)
		out[k8s.Object(v.(map[string]any)).Key()] = v
	}
	return out
}
