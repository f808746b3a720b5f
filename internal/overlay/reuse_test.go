package overlay_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestLike draws two revisions of files with links, components and plugins. Most files are equal in both.
// It checks that opening the second revision gives the same results and errors with and without
// reuse of the first.
func TestLike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(side, name string) string {
			pick := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, side+" "+name) }
			component := "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: " + pick("a", "b") + "-\n"
			switch name {
			case "base/kustomization.yaml":
				return pick("resources: [a.yaml]\n", "resources: [a.yaml, link.yaml]\n")
			case "base/a.yaml":
				return object + pick("", "# changed\n")
			case "base/link.yaml", "top/c/link.yaml", "top/c/deep/link.yaml":
				return pick("", "-> a.yaml", "-> ../base/a.yaml", "-> ../../base/a.yaml", "-> deep/p.yaml", "-> p.yaml", object)
			case "shared", "top/c/component":
				return pick("", "", "-> ../../one", "-> one")
			case "one/kustomization.yaml", "shared/kustomization.yaml", "top/c/component/kustomization.yaml":
				return pick("", component, component)
			case "top/c/kustomization.yaml":
				return pick("resources: [generated]\n", "resources: [generated]\ncomponents: [component]\n", "resources: [generated]\ncomponents: [../../shared]\n", "resources: [generated, link.yaml]\n",
					"resources: [generated]\npatches: [{path: link.yaml}]\n", "resources: [generated]\npatches: [{path: deep/link.yaml}]\n", "-> deep/kustomization.yaml",
					"resources: [generated]\ntransformers: [\"apiVersion: builtin\\nkind: PatchTransformer\\nmetadata: {name: x}\\npath: deep/p.yaml\\n\"]\n")
			case "top/c/kustomization.yml", "top/c/Kustomization", "top/c/generated/kustomization.yml":
				return pick("", "", "", "", "", "resources: [generated]\n", "-> kustomization.yaml", "-> none.yml")
			case "top/c/none.yml":
				return pick("", "resources: []\n")
			case "top/c/deep/kustomization.yaml":
				return pick("", "resources: [p.yaml]\n", "resources: [generated]\n", component)
			default: // top/c/deep/p.yaml
				return pick("", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: w}\n")
			}
		}
		names := []string{
			"base/kustomization.yaml", "base/a.yaml", "base/link.yaml", "shared", "one/kustomization.yaml", "shared/kustomization.yaml", "top/c/component", "top/c/component/kustomization.yaml",
			"top/c/kustomization.yaml", "top/c/kustomization.yml", "top/c/Kustomization", "top/c/generated/kustomization.yml", "top/c/link.yaml", "top/c/none.yml",
			"top/c/deep/kustomization.yaml", "top/c/deep/p.yaml", "top/c/deep/link.yaml",
		}
		before := map[string]string{}
		for _, name := range names {
			if text := draw("before", name); text != "" {
				before[name] = text
			}
		}
		for range 20 {
			after := maps.Clone(before)
			for range rapid.IntRange(1, 2).Draw(t, "changes") {
				name := rapid.SampledFrom(names).Draw(t, "changed")
				if after[name] = draw("after", name); after[name] == "" {
					delete(after, name)
				}
			}
			checkReuse(t, before, after, rapid.Permutation([]string{"top/c", "top/c/deep", "base", "shared", "top/c/component"}).Draw(t, "dirs"))
		}
	})
}

// checkReuse opens directories of the second revision with and without reuse of the first, and compares
// the results.
func checkReuse(t *rapid.T, before, after map[string]string, dirs []string) {
	t.Helper()
	first, second, alone := files(before), files(after), files(after)
	for _, dir := range dirs {
		_, _ = first.Open(dir)
	}
	second.ReuseFrom(first)
	for _, dir := range dirs {
		got, gotErr := second.Open(dir)
		want, wantErr := alone.Open(dir)
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Fatalf("%s: got %v, want %v", dir, gotErr, wantErr)
		}
		if wantErr != nil {
			continue
		}
		if got.Digest != want.Digest || got.File != want.File || got.Plain != want.Plain {
			t.Fatalf("%s: got %s %x, want %s %x", dir, got.File, got.Digest, want.File, want.Digest)
		}
		if d := cmp.Diff(want.All(), got.All()); d != "" {
			t.Fatalf("%s: inputs (-without reuse +with reuse):\n%s", dir, d)
		}
	}
}
