package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/yamlnode"
)

// builtByKustomize returns an object as decoded from the output of a kustomize build.
func builtByKustomize(o map[string]any) (map[string]any, error) {
	fsys := filesys.MakeFsInMemory()
	if err := fsys.WriteFile("/kustomization.yaml", []byte("resources: [a.yaml]\n")); err != nil {
		return nil, err
	}
	if err := fsys.WriteFile("/a.yaml", yamlnode.Encode(o)); err != nil {
		return nil, err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fsys, "/")
	if err != nil {
		return nil, err
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, sigsyaml.Unmarshal(text, &out)
}

func newConfigMap(key, value string) map[string]any {
	return map[string]any{"apiVersion": "x.io/v1", "kind": "Any", "metadata": map[string]any{"name": "x"}, "spec": map[string]any{"list": []any{map[string]any{key: value}}}}
}

// TestEveryByteIsBuilt draws keys and values that render does not reject: kustomize must build them unchanged.
func TestEveryByteIsBuilt(t *testing.T) {
	odd := []rune{0x7f, 0x80, 0x84, 0x85, 0x86, 0x9f, 0xa0, 0xad, 0x2028, 0x2029, 0xfeff, 0xfffe, 0xffff, 0xfffd, '\n', '\t', '\r', 0, 7, 0x1b, ' ', ':', '#', '-', '"', '\'', '\\', '|', '%', '&', '*', '!', 0x10ffff, 0x1f600}
	char := rapid.OneOf(rapid.SampledFrom(odd), rapid.Rune(), rapid.RuneFrom([]rune("abyn019")))
	text := rapid.StringOfN(char, 1, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		o := newConfigMap(text.Draw(t, "key"), text.Draw(t, "value"))
		if _, _, found := yamlnode.FindUnreadable(o); found {
			return
		}
		got, err := builtByKustomize(o)
		if err != nil {
			t.Fatalf("%v\n%s", err, yamlnode.Encode(o))
		}
		if d := cmp.Diff(o, got); d != "" {
			t.Fatalf("-written +built:\n%s%s", d, yamlnode.Encode(o))
		}
	})
}

// TestUnreadableCharacters checks that kustomize cannot build any of the rejected characters.
func TestUnreadableCharacters(t *testing.T) {
	for char := rune(0x20); char <= 0x1_0010; char++ {
		s := "a" + string(char) + "b"
		field, got, found := yamlnode.FindUnreadable(newConfigMap("k", s))
		if !found {
			continue
		}
		if got != char || field != "spec.list[0].k" {
			t.Errorf("%U: found %U at %s", char, got, field)
		}
		if built, err := builtByKustomize(newConfigMap("k", s)); err == nil && cmp.Equal(built, newConfigMap("k", s)) {
			t.Errorf("%U: kustomize builds it", char)
		}
		field, _, _ = yamlnode.FindUnreadable(newConfigMap(s, "v"))
		if want := fmt.Sprintf("spec.list[0][%q]", s); field != want {
			t.Errorf("%U in a key: %s, want %s", char, field, want)
		}
	}
	manifest := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"k": "a\u0085"}}`
	if got := renderManifest(t, newBundle("x", "1.0.0", "v1", manifest)); !strings.Contains(got, "manifests/x0.yaml: ConfigMap ns/s: data.k contains character U+0085, which kustomize cannot parse") {
		t.Error(got)
	}
}
