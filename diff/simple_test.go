package diff

import (
	"testing"
)

// TestSimple checks that Simple accepts files that kustomize loads unchanged. It must reject files that
// kustomize splits or rejects, and files from which kustomize omits something.
func TestSimple(t *testing.T) {
	const a, b = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n"
	for text, want := range map[string]bool{
		a:                                 true,
		a + "---\n" + b:                   true,
		"---\n" + a:                       true,
		a + "data:\n  x: |\n    ---\n":    true,
		a + "---\n":                       false,
		a + "---\n" + b + "---\n# said\n": false,
		a + "--- # said\n" + b:            false,
		a + "---\nkind: ConfigMap\n":      false,
		a + "---\napiVersion: v1\nkind: List\nmetadata: {name: l}\nitems: []\n":     false,
		a + "  annotations: {config.kubernetes.io/local-config: 'true'}\n---\n" + b: false,
		"": false,
	} {
		objects, err := Objects([]File{{Path: "a.yaml", Data: []byte(text)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := Simple(objects); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}

// TestDuplicateKeyInFile checks that a file must not contain two different objects with the same key.
func TestDuplicateKeyInFile(t *testing.T) {
	const a = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for text, want := range map[string]bool{a + "---\n" + a: true, a + "---\n" + a + "data: {x: y}\n": false} {
		objects, err := Objects([]File{{Path: "a.yaml", Data: []byte(text)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newView(State{Objects: objects}); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
