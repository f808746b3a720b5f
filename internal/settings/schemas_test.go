package settings_test

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/settings"
)

// loadGolden loads a file of testdata/v1alpha1 as quayside.yaml.
func loadGolden(t *testing.T, name string) *settings.Workspace {
	t.Helper()
	const dir = "testdata/v1alpha1"
	data, err := os.ReadFile(path.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	w, err := settings.Load(name, data, settings.Repository{Dir: ".", Read: func(name string) (string, []byte, error) {
		data, err := os.ReadFile(path.Join(dir, name))
		return name, data, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestV1Alpha1 parses settings of schema v1alpha1, which all releases must support. No flag updates the
// expected results in testdata/v1alpha1. Until the first release, new fields are added to these files by hand.
// Afterwards the files must not change, and new fields need new files. The expected results may lack optional
// fields.
func TestV1Alpha1(t *testing.T) {
	set := map[string]bool{}
	for _, name := range []string{"argocd", "flux", "hub"} {
		w := loadGolden(t, name+".yaml")
		data, err := os.ReadFile("testdata/v1alpha1/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(map[string]any{"name": w.Name, "spec": w})
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if err := errors.Join(json.Unmarshal(data, &want), json.Unmarshal(text, &got)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, common(want, got)); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
		for field := range w.Fields {
			set[regexp.MustCompile(`\[[0-9]+\]`).ReplaceAllString(field, "[]")] = true
		}
	}
	var schema any
	if err := json.Unmarshal(settings.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	for _, field := range schemaFields("", schema) {
		if !set[field] {
			t.Errorf("no file of testdata/v1alpha1 sets %s: before the first release, set it in argocd.yaml, flux.yaml or hub.yaml there, and in the .json file next to it", field)
		}
	}
}

// common returns the part of got whose fields want also has.
func common(want, got any) any {
	switch want := want.(type) {
	case map[string]any:
		m, ok := got.(map[string]any)
		if !ok {
			return got
		}
		out := map[string]any{}
		for name, v := range want {
			if have, ok := m[name]; ok {
				out[name] = common(v, have)
			}
		}
		return out
	case []any:
		l, ok := got.([]any)
		if !ok || len(l) != len(want) {
			return got
		}
		out := make([]any, len(l))
		for i := range l {
			out[i] = common(want[i], l[i])
		}
		return out
	default:
		return got
	}
}

// schemaFields returns all field names in a schema.
func schemaFields(field string, node any) []string {
	var out []string
	m, _ := node.(map[string]any)
	properties, _ := m["properties"].(map[string]any)
	for name, p := range properties {
		at := strings.TrimPrefix(field+"."+name, ".")
		out = append(append(out, at), schemaFields(at, p)...)
	}
	if items, ok := m["items"]; ok {
		out = append(out, schemaFields(field+"[]", items)...)
	}
	slices.Sort(out)
	return out
}

// TestEffectiveIsSettings checks that the printed effective settings are valid settings.
func TestEffectiveIsSettings(t *testing.T) {
	for _, name := range []string{"argocd.yaml", "flux.yaml", "hub.yaml"} {
		w := loadGolden(t, name)
		text := w.EffectiveYAML()
		again, err := settings.Parse("again.yaml", text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if d := cmp.Diff(w, again, cmpopts.IgnoreFields(settings.Workspace{}, "File", "Fields", "Extends", "Extended"), cmpopts.IgnoreTypes(diag.Pos{}), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: -settings +printed\n%s\n%s", name, d, text)
		}
	}
}
