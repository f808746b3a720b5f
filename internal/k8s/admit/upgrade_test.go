package admit

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/k8s"
)

// oldSpec returns the spec of a v1beta1 CRD with the schema.
func oldSpec(schema map[string]any) map[string]any {
	return map[string]any{
		"group": "demo.io", "version": "v1", "names": map[string]any{"kind": "Widget", "plural": "widgets"},
		"validation": map[string]any{"openAPIV3Schema": schema},
	}
}

// rejections returns the faults for which the API server would reject a CRD with the spec.
func rejections(spec map[string]any) []Fault {
	return CheckCRD(map[string]any{"metadata": map[string]any{"name": "widgets.demo.io"}, "spec": spec})
}

// TestUpgradeServicePort checks that Upgrade sets the default port of v1beta1 for the Service of
// a conversion webhook.
func TestUpgradeServicePort(t *testing.T) {
	spec := oldSpec(map[string]any{"type": "object"})
	spec["preserveUnknownFields"] = false
	spec["conversion"] = load(t, "{strategy: Webhook, webhookClientConfig: {service: {name: a, namespace: b}}}")
	got, left, err := Upgrade(spec)
	if err != nil || left != nil {
		t.Fatalf("error %v, left out: %v", err, left)
	}
	if port := k8s.At(got, "conversion", "webhook", "clientConfig", "service", "port"); port != int64(443) {
		t.Errorf("port %v", port)
	}
	if faults := rejections(got); faults != nil {
		t.Error(faults)
	}
}

// TestUpgradeForms upgrades each form of schema that v1 does not have, as the schema of spec.f.
func TestUpgradeForms(t *testing.T) {
	const open = "x-kubernetes-preserve-unknown-fields: true"
	cases := []struct{ name, old, want string }{
		{"no type", "{description: d}", "{description: d, nullable: true, " + open + "}"},
		{"no type, fields", "{properties: {a: {type: string}}}", "{nullable: true, properties: {a: {type: string}}, " + open + "}"},
		{"no type, enum", "{enum: [1, x]}", "{enum: [1, x], nullable: true, " + open + "}"},
		{"no items", "{type: array}", "{type: array, items: {nullable: true, " + open + "}}"},
		{"items without type", "{type: array, items: {}}", "{type: array, items: {nullable: true, " + open + "}}"},
		{"an object keeps unknown fields", "{type: object}", "{type: object, " + open + "}"},
		{"a map has no unknown fields", "{type: object, additionalProperties: {type: string}}", "{type: object, additionalProperties: {type: string}}"},
		{"a map of anything", "{type: object, additionalProperties: true}", "{type: object, " + open + "}"},
		{"fields and anything", "{type: object, properties: {a: {type: string}}, additionalProperties: true}", "{type: object, properties: {a: {type: string}}, " + open + "}"},
		{"integer or string", "{anyOf: [{type: string, description: d}, {type: integer}], pattern: a}", "{anyOf: [{type: integer}, {type: string}], nullable: true, pattern: a, x-kubernetes-int-or-string: true}"},
		{"one of integer and string", "{oneOf: [{type: integer}, {type: string}]}", "{anyOf: [{type: integer}, {type: string}], nullable: true, x-kubernetes-int-or-string: true}"},
		{"the same types inside", "{type: string, anyOf: [{type: string, format: ipv4, description: d}, {type: string, format: ipv6}]}", "{type: string, anyOf: [{format: ipv4}, {format: ipv6}]}"},
		{"one type inside only", "{oneOf: [{type: string, format: ipv4}, {type: string, format: ipv6}]}", "{type: string, nullable: true, oneOf: [{format: ipv4}, {format: ipv6}]}"},
		{"a single part", "{description: d, allOf: [{type: object, properties: {a: {type: string}}}]}", "{description: d, nullable: true, type: object, properties: {a: {type: string}}, " + open + "}"},
		{"a nonexistent type", "{anyOf: [{type: nullable}, {type: array, items: {type: string}}]}", "{type: array, nullable: true, items: {type: string}}"},
		{
			"fields inside only", "{type: object, anyOf: [{required: [a], properties: {a: {minLength: 1}}}, {properties: {b: {items: {maximum: 3}}}}]}",
			"{type: object, anyOf: [{required: [a], properties: {a: {minLength: 1}}}, {properties: {b: {items: {maximum: 3}}}}], properties: {a: {nullable: true, " + open +
				"}, b: {nullable: true, items: {nullable: true, " + open + "}, " + open + "}}, " + open + "}",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			spec := oldSpec(map[string]any{"properties": map[string]any{"f": load(t, c.old)}})
			before, _ := json.Marshal(spec)
			got, left, err := Upgrade(spec)
			if err != nil || left != nil {
				t.Fatalf("error %v, left out: %v", err, left)
			}
			after, _ := json.Marshal(spec)
			if string(before) != string(after) {
				t.Error("the argument was modified")
			}
			v1 := got["versions"].([]any)[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
			want := map[string]any{"type": "object", "properties": map[string]any{"f": decodeWanted(t, c.want)}, "x-kubernetes-preserve-unknown-fields": true}
			if d := cmp.Diff(want, v1); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if faults := rejections(got); faults != nil {
				t.Error(faults)
			}
		})
	}
}

// decodeWanted decodes YAML, with numbers as in JSON.
func decodeWanted(t *testing.T, text string) map[string]any {
	t.Helper()
	m, err := toPlainJSON(load(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestUpgradeSpec upgrades the fields outside the schema.
func TestUpgradeSpec(t *testing.T) {
	got, left, err := Upgrade(load(t, `
group: demo.io
version: v1
names: {kind: Widget, plural: widgets}
subresources: {status: {}}
additionalPrinterColumns: [{name: A, type: string, JSONPath: .a}]
preserveUnknownFields: false
conversion: {strategy: Webhook, webhookClientConfig: {url: "https://c"}}
prune: later
validation:
  openAPIV3Schema:
    properties:
      apiVersion: {}
      metadata: {required: [labels], properties: {name: {type: string, maxLength: 9, example: null}, labels: {type: object, maxProperties: 1}}}
      a: {type: object, deprecated: true, readOnly: false, items: {}, properties: {b: {type: array, items: {type: string, const: x}}}}
versions:
- {name: v1, served: true, storage: true}
- {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}, additionalPrinterColumns: [{name: B, type: date, JSONPath: .b}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := decodeWanted(t, `
group: demo.io
scope: Namespaced
names: {kind: Widget, plural: widgets}
conversion: {strategy: Webhook, webhook: {clientConfig: {url: "https://c"}, conversionReviewVersions: [v1beta1]}}
versions:
- name: v1
  served: true
  storage: true
  subresources: {status: {}}
  additionalPrinterColumns: [{name: A, type: string, jsonPath: .a}]
  schema:
    openAPIV3Schema:
      type: object
      properties:
        apiVersion: {type: string}
        metadata: {type: object, properties: {name: {type: string, maxLength: 9}}}
        a: {type: object, items: {x-kubernetes-preserve-unknown-fields: true}, properties: {b: {type: array, items: {type: string}}}}
- name: v2
  served: true
  storage: false
  subresources: {status: {}}
  additionalPrinterColumns: [{name: B, type: date, jsonPath: .b}]
  schema: {openAPIV3Schema: {type: object}}
`)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff([]string{
		"spec.prune", "spec.validation.openAPIV3Schema.properties.a.deprecated", "spec.validation.openAPIV3Schema.properties.a.properties.b.items.const",
		"properties.metadata of the schema of version v1",
	}, left); d != "" {
		t.Errorf("left out: -want +got\n%s", d)
	}
	if faults := rejections(got); faults != nil {
		t.Error(faults)
	}
}

func TestUpgradeRefuses(t *testing.T) {
	cases := []struct{ name, field, want string }{
		{"two types", "{oneOf: [{type: array, items: {type: string}}, {type: object}]}", "f: type array inside anyOf"},
		{"another type within", "{type: object, properties: {a: {type: array, items: {type: string, not: {type: integer}}}}}", "f.a[*]: type integer inside anyOf"},
		{"a type of null too", "{type: object, properties: {a: {type: string, nullable: true}}, not: {properties: {a: {type: string, maxLength: 3}}}}", "f.a: type string inside"},
		{"a map within", "{type: object, anyOf: [{additionalProperties: {maxLength: 1}}]}", "f: additionalProperties inside anyOf"},
		{"a field in a map with additionalProperties within", "{type: object, additionalProperties: {type: string}, anyOf: [{properties: {a: {maxLength: 1}}}]}", "f: a field in a map with additionalProperties inside anyOf"},
		{"not a schema", "{type: object, required: true}", "cannot unmarshal bool"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := Upgrade(oldSpec(map[string]any{"properties": map[string]any{"f": load(t, c.field)}})); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestUpgradeKeepsAcceptedObjects draws schemas and objects, and checks that v1 accepts every object that
// v1beta1 accepts, and stores it unchanged.
func TestUpgradeKeepsAcceptedObjects(t *testing.T) {
	taken, upgraded := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		spec := oldSpec(map[string]any{"properties": map[string]any{"f": drawSchema(3, "").Draw(t, "schema")}})
		got, left, err := Upgrade(spec)
		if err != nil {
			return // other tests cover schemas that cannot be upgraded
		}
		upgraded++
		if left != nil {
			t.Fatalf("left out: %v", left)
		}
		if faults := rejections(got); faults != nil {
			t.Fatalf("%v\nof %v", faults, got)
		}
		before := oldValidator(t, spec)
		kind, err := Open(map[string]any{"spec": got}, NewBudget())
		if err != nil {
			t.Fatal(err)
		}
		now := kind.versions["v1"]
		for range 20 {
			object := map[string]any{"apiVersion": "demo.io/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}, "f": drawValue(3).Draw(t, "f")}
			if len(validation.ValidateCustomResource(nil, object, before)) > 0 {
				continue
			}
			taken++
			stored := runtime.DeepCopyJSON(object)
			pruning.PruneWithOptions(stored, now.structural, true, schema.UnknownFieldPathOptions{})
			defaulting.PruneNonNullableNullsWithoutDefaults(stored, now.structural)
			if d := cmp.Diff(object, stored); d != "" {
				t.Fatalf("lost: %s\nby %v", d, got)
			}
			if faults, unchecked := now.validate(stored, kind.budget); faults != nil || unchecked {
				t.Fatalf("%v of %v\nby %v", faults, stored, got)
			}
		}
	})
	t.Logf("%d schemas, %d objects", upgraded, taken)
	if upgraded < 5 || taken < 50 { // with -short, only a fifth is drawn
		t.Errorf("only %d schemas and %d objects were tested", upgraded, taken)
	}
}

// oldValidator returns the validator by which an API server validates objects of a v1beta1 CRD that preserves
// unknown fields. It uses the schema unchanged.
func oldValidator(t *rapid.T, spec map[string]any) validation.SchemaValidator {
	data, err := json.Marshal(spec["validation"])
	if err != nil {
		t.Fatal(err)
	}
	var typed apiextensionsv1.CustomResourceValidation // v1beta1 has the same types
	if err := json.Unmarshal(data, &typed); err != nil {
		t.Fatal(err)
	}
	var hub apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(&typed, &hub, nil); err != nil {
		t.Fatal(err)
	}
	v, _, err := validation.NewSchemaValidator(hub.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// drawSchema draws a schema that v1beta1 accepts. around is the type of the enclosing schema. Schemas in
// "anyOf", "oneOf", "allOf" and "not" often have this type.
func drawSchema(depth int, around string) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		s := map[string]any{}
		kind := rapid.SampledFrom([]string{"", "", around, around, "object", "array", "string", "integer", "boolean"}).Draw(t, "type")
		if kind != "" {
			s["type"] = kind
		}
		some := func(name string, one int) bool { return rapid.IntRange(1, one).Draw(t, name) == 1 }
		if some("nullable", 6) {
			s["nullable"] = true
		}
		if some("says more", 4) {
			extra := rapid.SampledFrom([]map[string]any{
				{"enum": []any{"a", int64(1)}}, {"maxLength": int64(1)}, {"minimum": int64(1)}, {"minItems": int64(1)}, {"required": []any{"a"}}, {"description": "d"},
			}).Draw(t, "more")
			for key, value := range extra {
				s[key] = value
			}
		}
		if depth == 0 {
			return s
		}
		if within := drawSchema(depth-1, ""); some("fields", 2) {
			s["properties"] = rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), within, 1, 2).Draw(t, "properties")
			if some("open", 4) {
				s["additionalProperties"] = true
			}
		} else if some("map", 3) {
			s["additionalProperties"] = rapid.SampledFrom([]any{true, within.Draw(t, "additionalProperties")}).Draw(t, "values")
		}
		if some("items", 3) {
			s["items"] = drawSchema(depth-1, "").Draw(t, "items")
		}
		if some("junctor", 3) {
			part := drawSchema(depth-1, kind)
			parts := rapid.SliceOfN(part, 1, 2).Draw(t, "parts")
			both := []map[string]any{{"type": "string"}, {"type": "integer"}}
			key := rapid.SampledFrom([]string{"anyOf", "oneOf", "allOf", "not", "either"}).Draw(t, "key")
			switch key {
			case "not":
				s["not"] = parts[0]
			case "either":
				s[rapid.SampledFrom([]string{"anyOf", "oneOf"}).Draw(t, "either")] = both
			default:
				s[key] = parts
			}
		}
		plain, _ := toPlainJSON(s)
		return plain
	})
}

// drawValue draws a JSON value.
func drawValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := []string{"null", "text", "text", "number", "flag", "list", "map", "map"}
		if depth == 0 {
			kinds = kinds[:5]
		}
		switch rapid.SampledFrom(kinds).Draw(t, "kind") {
		case "null":
			return nil
		case "number":
			return rapid.Int64Range(0, 2).Draw(t, "number")
		case "flag":
			return rapid.Bool().Draw(t, "flag")
		case "list":
			return slices.Clone(rapid.SliceOfN(drawValue(depth-1), 0, 2).Draw(t, "list"))
		case "map":
			return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "z"}), drawValue(depth-1), 0, 3).Draw(t, "map")
		default:
			return rapid.SampledFrom([]string{"", "a", "bb"}).Draw(t, "text")
		}
	})
}
