// Package examples_test tests the examples for other tools against rendered trees, and the example
// programs.
package examples_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/profile"
)

// TestApplicationSetInputs checks that the example of an ApplicationSet creates the same Applications from
// inputs/ as the ApplicationSets of the tree do, except for fields that the example adds.
func TestApplicationSetInputs(t *testing.T) {
	example := read(t, "fleet/engines/applicationset.yaml")
	patterns, _ := at(example, "spec", "generators", "0", "git", "files").([]any)
	made := map[string]bool{}
	for _, pattern := range patterns {
		files := names(t, "fleet/"+text(t, pattern, "path"))
		if len(files) < 4 {
			t.Fatalf("the generator finds %v, want one for each piece of an environment", files)
		}
		for _, file := range files {
			var inputs, members []any
			load(t, file, &inputs)
			conform(t, file, inputs)
			tree := filepath.Dir(filepath.Dir(file))
			load(t, filepath.Join(tree, "clusters.yaml"), &members)
			if len(members) == 0 || len(members) != len(inputs) {
				t.Fatalf("%s: %d inputs for %d clusters", file, len(inputs), len(members))
			}
			own := setOf(t, tree, members[0], text(t, inputs[0], "application"))
			for i := range members {
				want, got := application(t, own, members[i]), application(t, example, inputs[i])
				for _, field := range [][]string{{"metadata", "name"}, {"spec", "project"}, {"spec", "destination", "server"}, {"spec", "destination", "name"}, {"spec", "sources"}} {
					if d := cmp.Diff(orEmpty(at(want, field...)), orEmpty(at(got, field...))); d != "" {
						t.Errorf("%s: %s of member %d (-from clusters.yaml +from inputs/):\n%s", file, strings.Join(field, "."), i, d)
					}
				}
				name := text(t, got, "metadata", "name")
				if made[name] {
					t.Errorf("%s: %s already exists", file, name)
				}
				made[name] = true
			}
		}
	}
	if len(made) != 25*4 {
		t.Errorf("%d Applications, want four for each cluster of stage and prod-east", len(made))
	}
}

// setOf returns the ApplicationSet of a tree that creates the Application with this name for member, a cluster
// in clusters.yaml.
func setOf(t *testing.T, tree string, member any, name string) map[string]any {
	t.Helper()
	for _, file := range names(t, filepath.Join(tree, "pieces/*.yaml")) {
		if set := read(t, file); text(t, application(t, set, member), "metadata", "name") == name {
			return set
		}
	}
	t.Fatalf("%s: no ApplicationSet creates %s", tree, name)
	return nil
}

// TestResourceSetInputs checks that the example of a ResourceSet creates one Kustomization from inputs/ for
// each cluster. The Kustomization must apply a directory of Kustomizations, and its name must differ from the
// names in the directory. The Go types have only the fields of fluxcd.controlplane.io/v1 that the example uses.
func TestResourceSetInputs(t *testing.T) {
	var set struct {
		APIVersion, Kind string
		Metadata         struct{ Name, Namespace string }
		Spec             struct {
			InputsFrom []struct {
				Kind     string
				Selector struct {
					MatchExpressions []struct {
						Key, Operator string
						Values        []string
					}
				}
			}
			Resources []any
		}
	}
	load(t, "fleet/engines/resourceset.yaml", &set)
	if set.APIVersion != "fluxcd.controlplane.io/v1" || set.Kind != "ResourceSet" || len(set.Spec.InputsFrom) != 1 || len(set.Spec.Resources) != 1 {
		t.Fatalf("not a ResourceSet with one resource: %+v", set)
	}
	selected := set.Spec.InputsFrom[0].Selector.MatchExpressions[0]
	made := map[string]bool{}
	for _, environment := range selected.Values {
		tree := filepath.Join("fleet/envs", environment, "rendered")
		for _, file := range names(t, filepath.Join(tree, "inputs/resourcesetinputprovider-*.yaml")) {
			var provider struct {
				APIVersion, Kind string
				Metadata         struct {
					Name, Namespace string
					Labels          map[string]string
				}
				Spec struct {
					Type          string
					DefaultValues any
				}
			}
			load(t, file, &provider)
			if provider.APIVersion != set.APIVersion || provider.Kind != set.Spec.InputsFrom[0].Kind || provider.Spec.Type != "Static" ||
				provider.Metadata.Namespace != set.Metadata.Namespace || provider.Metadata.Labels[selected.Key] != environment {
				t.Errorf("%s: the ResourceSet does not select it: %+v", file, provider)
			}
			conform(t, file, []any{provider.Spec.DefaultValues})
			o := fill(t, set.Spec.Resources[0], "<<", ">>", template.FuncMap{"inputs": func() any { return provider.Spec.DefaultValues }}, nil)
			name, dir := text(t, o, "metadata", "name"), filepath.Join("fleet", text(t, o, "spec", "path"))
			applied := names(t, filepath.Join(dir, "kustomization-*.yaml"))
			if made[name] || len(applied) == 0 {
				t.Errorf("%s: %s already exists, or %s has no Kustomizations", file, name, dir)
			}
			made[name] = true
			for _, other := range applied {
				if text(t, read(t, other), "metadata", "name") == name {
					t.Errorf("%s: %s has the name of the object that applies it", other, name)
				}
			}
		}
	}
	if len(made) != 23 {
		t.Errorf("%d clusters are applied, want those of dev and prod-west", len(made))
	}
}

// application returns the Application that an ApplicationSet creates for parameters.
func application(t *testing.T, set map[string]any, parameters any) map[string]any {
	t.Helper()
	functions := template.FuncMap{
		"toJson": func(v any) string { return string(encode(t, v)) },
		"get":    func(m map[string]any, key string) any { return orEmpty(m[key]) },
		"dig": func(key string, otherwise any, m map[string]any) any {
			if v, ok := m[key]; ok {
				return v
			}
			return otherwise
		},
	}
	out := fill(t, at(set, "spec", "template"), "{{", "}}", functions, parameters)
	if patch, ok := at(set, "spec", "templatePatch").(string); ok {
		var more struct{ Spec map[string]any }
		if err := yaml.UnmarshalStrict(execute(t, patch, "{{", "}}", functions, parameters), &more); err != nil {
			t.Fatal(err)
		}
		for field, v := range more.Spec {
			out["spec"].(map[string]any)[field] = v
		}
	}
	return out
}

// fill returns v with every text executed as a template.
func fill(t *testing.T, v any, left, right string, functions template.FuncMap, parameters any) map[string]any {
	t.Helper()
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			out := map[string]any{}
			for key, e := range v {
				out[key] = walk(e)
			}
			return out
		case []any:
			var out []any
			for _, e := range v {
				out = append(out, walk(e))
			}
			return out
		case string:
			return string(execute(t, v, left, right, functions, parameters))
		default:
			return v
		}
	}
	out, _ := walk(v).(map[string]any)
	return out
}

func execute(t *testing.T, text, left, right string, functions template.FuncMap, parameters any) []byte {
	t.Helper()
	parsed, err := template.New("").Delims(left, right).Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, parameters); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// conform fails the test for each value that does not match the schema of inputs/.
func conform(t *testing.T, file string, values []any) {
	t.Helper()
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(profile.InputSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("inputs.json", schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("inputs.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if err := compiled.Validate(v); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// load decodes a YAML file into v. An unknown field fails the test.
func load(t *testing.T, file string, v any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func read(t *testing.T, file string) map[string]any {
	t.Helper()
	var out map[string]any
	load(t, file, &out)
	return out
}

func names(t *testing.T, pattern string) []string {
	t.Helper()
	out, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// at returns the value at a path in v, or nil. In a list, every path element selects the first item.
func at(v any, path ...string) any {
	for _, field := range path {
		switch o := v.(type) {
		case map[string]any:
			v = o[field]
		case []any:
			v = o[0]
		default:
			return nil
		}
	}
	return v
}

func text(t *testing.T, v any, path ...string) string {
	t.Helper()
	s, ok := at(v, path...).(string)
	if !ok {
		t.Fatalf("no text at %s", strings.Join(path, "."))
	}
	return s
}

// orEmpty returns v, or "" if v is nil. Templates print missing values in this way.
func orEmpty(v any) any {
	if v == nil {
		return ""
	}
	return v
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
