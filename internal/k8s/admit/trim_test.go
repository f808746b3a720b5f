package admit

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/quayside/quayside/internal/k8s"
)

// schemas contains every kind of node that trimSchema keeps, descends into or removes.
const schemas = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.demo.io}
spec:
  group: demo.io
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            properties:
              note: {type: string, description: a note, maxLength: 9, enum: [a, b]}
              pair: {type: object, x-kubernetes-map-type: atomic, required: [left], properties: {left: {type: integer}}}
              sizes: {type: array, x-kubernetes-list-type: atomic, items: {type: integer}}
              kinds: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, port: {type: integer}}}
              labels: {type: object, additionalProperties: {type: string, format: date}}
              fixed: {type: object, default: {size: 1}, properties: {size: {type: integer, description: a size}}}
`

// nodes calls fn for s and each schema inside s, with the path of the schema.
func nodes(s map[string]any, at string, fn func(at string, s map[string]any)) {
	fn(at, s)
	properties := k8s.Map(s, "properties")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		nodes(k8s.Map(properties, name), at+"."+name, fn)
	}
	for _, of := range []string{"items", "additionalProperties"} {
		if inner := k8s.Map(s, of); inner != nil {
			nodes(inner, at+"."+of, fn)
		}
	}
}

// set is a change of a field in one of the schemas.
type set struct {
	at, field string
	value     any
}

// sets returns a change for every combination of a schema, a field of the API, and one of many values. The
// values include valid values and values of every type.
func sets(t *testing.T) []set {
	t.Helper()
	text, list := map[string]any{"type": "string"}, map[string]any{"type": "array"}
	values := []any{
		nil, "[", "string", "object", "array", "atomic", "set", "map", int64(3), math.Inf(1), true, false,
		[]any{"name"},
		[]any{nil},
		[]any{text},
		[]any{map[string]any{"rule": "true"}},
		map[string]any{},
		text, list,
		map[string]any{"metadata": text, "a": text},
		map[string]any{"a": list},
	}
	fields := []string{"Type", "unknown"}
	for of, i := reflect.TypeFor[apiextensionsv1.JSONSchemaProps](), 0; i < of.NumField(); i++ {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	var out []set
	nodes(root(load(t, schemas)), "", func(at string, _ map[string]any) {
		for _, field := range fields {
			for _, v := range values {
				out = append(out, set{at, field, v})
			}
		}
	})
	return out
}

func root(crd map[string]any) map[string]any {
	return k8s.Map(k8s.Items(crd, "spec", "versions")[0], "schema", "openAPIV3Schema")
}

// with returns a copy of the definition with fields set.
func with(crd map[string]any, all ...set) map[string]any {
	crd = k8s.Copy(crd)
	nodes(root(crd), "", func(at string, s map[string]any) {
		for _, f := range all {
			if f.at == at {
				s[f.field] = f.value
			}
		}
	})
	return crd
}

// TestTrimHidesNothing changes fields in the schemas of a CRD, and checks that the CRD is valid if its trimmed
// form is valid.
func TestTrimHidesNothing(t *testing.T) {
	crd := load(t, schemas)
	if faults := slices.Concat(validateDefinition(crd), validateDefinition(trimDefinition(crd))); faults != nil {
		t.Fatal(faults)
	}
	count := func(crd map[string]any) (n int) {
		nodes(root(crd), "", func(string, map[string]any) { n++ })
		return n
	}
	if whole, left := count(crd), count(trimDefinition(crd)); left >= whole {
		t.Errorf("%d of %d nodes remain after trimming", left, whole)
	}
	for i, one := range sets(t) {
		if testing.Short() && i%3 > 0 {
			continue
		}
		changed := with(crd, one)
		if validateDefinition(trimDefinition(changed)) != nil {
			continue
		}
		if faults := validateDefinition(changed); faults != nil {
			t.Errorf("%+v: only the trimmed form is valid: %v", one, faults)
		}
	}
}
