package admit

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func load(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.demo.io}
spec:
  group: demo.io
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations: [{rule: "!has(self.size) || self.size != 13", message: unlucky}]
            properties:
              size: {type: integer, maximum: 100}
              mode: {type: string, default: fast}
              list: {type: array, items: {type: object, properties: {a: {type: string, default: z}}}}
          status: {type: object, properties: {phase: {type: string, enum: [Ready]}}}
  - {name: v0, served: false, storage: false}
`

func TestWrite(t *testing.T) {
	k, err := Open(load(t, definition), NewBudget())
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, object string
		want         WriteResult
	}{
		{"pruned and defaulted", "spec: {size: 3, sise: 4, list: [{b: 1}]}", WriteResult{
			Dropped: []string{"spec.list[0].b", "spec.sise"}, Defaulted: []Value{{"spec.list[0].a", "z"}, {"spec.mode", "fast"}},
		}},
		{"schema", "spec: {size: 101, mode: x}", WriteResult{Rejected: []Fault{{"spec.size", "Invalid value: 101: spec.size in body should be less than or equal to 100"}}}},
		{"CEL", "spec: {size: 13, mode: x}", WriteResult{Rejected: []Fault{{"spec", `Invalid value: unlucky`}}}},
		{"the status is ignored", "spec: {mode: x}\nstatus: {phase: Lost}", WriteResult{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := k.Write("v1", load(t, "apiVersion: demo.io/v1\nkind: Widget\nmetadata: {name: w}\n"+c.object))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
	if _, err := k.Write("v0", map[string]any{}); !errors.Is(err, ErrNotServed) {
		t.Errorf("got %v, want ErrNotServed", err)
	}
}

// TestWriteOtherVersion writes an object in a version that is not the stored version. Fields that the stored
// version lacks are dropped. The result must list the dropped fields of the object, but no dropped defaults.
func TestWriteOtherVersion(t *testing.T) {
	crd := load(t, definition)
	versions := crd["spec"].(map[string]any)["versions"].([]any)
	versions[1] = load(t, `{name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
  size: {type: integer}, colour: {type: string}, delay: {type: integer, default: 15}}}}}}}`)
	k, err := Open(crd, NewBudget())
	if err != nil {
		t.Fatal(err)
	}
	got, err := k.Write("v2", load(t, "spec: {size: 3, colour: blue}"))
	if err != nil {
		t.Fatal(err)
	}
	want := WriteResult{Dropped: []string{"spec.colour"}, Defaulted: []Value{{"spec.delay", int64(15)}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestOpenRefuses(t *testing.T) {
	crd := load(t, definition)
	versions := crd["spec"].(map[string]any)["versions"].([]any)
	versions[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{}}}}
	if _, err := Open(crd, NewBudget()); err == nil {
		t.Error("a schema that is not structural is accepted")
	}
	if _, err := Open(map[string]any{"spec": "none"}, NewBudget()); err == nil {
		t.Error("a nil CRD is accepted")
	}
	if _, err := Open(map[string]any{}, NewBudget()); err != nil {
		t.Errorf("an empty CRD: got %v", err)
	}
}

// TestBudget validates objects until the budget for rules is exhausted.
func TestBudget(t *testing.T) {
	b := &Budget{remaining: 1}
	k, err := Open(load(t, definition), b)
	if err != nil {
		t.Fatal(err)
	}
	refused := load(t, "spec: {size: 13}")
	for i, want := range []bool{false, true, true} {
		got, err := k.Write("v1", refused)
		if err != nil || got.Unchecked != want || (len(got.Rejected) == 0) != want {
			t.Errorf("object %d: got %+v, %v", i, got, err)
		}
	}
	if got, err := k.Write("v1", load(t, "spec: {size: 101}")); err != nil || got.Unchecked || len(got.Rejected) != 1 {
		t.Errorf("the schema must be validated regardless of the budget: got %+v, %v", got, err)
	}
}
