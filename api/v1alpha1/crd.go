package v1alpha1

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CRD returns the CustomResourceDefinition of Installation, generated from the types of this package. The result
// has no owner labels. The caller may modify it.
func CRD() map[string]any {
	root := schemaOf(reflect.TypeFor[Installation]())
	root["description"] = "Installation is one rendered pin of quayside.lock, with its state in the cluster as observed by the reporter."
	properties := root["properties"].(map[string]any)
	properties["apiVersion"], properties["kind"] = map[string]any{"type": "string"}, map[string]any{"type": "string"}
	properties["metadata"] = map[string]any{"type": "object"}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": Resource + "." + Group},
		"spec": map[string]any{
			"group": Group,
			"names": map[string]any{
				"kind": Kind, "listKind": ListKind, "plural": Resource, "singular": "installation",
				"shortNames": []any{"inst"}, "categories": []any{"quayside"},
			},
			"scope": "Namespaced",
			"versions": []any{map[string]any{
				"name": Version, "served": true, "storage": true,
				"subresources":             map[string]any{"status": map[string]any{}},
				"additionalPrinterColumns": printerColumns(),
				"schema":                   map[string]any{"openAPIV3Schema": root},
			}},
		},
	}
}

// printerColumns returns the additionalPrinterColumns of the CRD, the columns of kubectl get.
func printerColumns() []any {
	var out []any
	for _, c := range [][3]string{
		{"Package", "string", ".spec.package"},
		{"Version", "string", ".spec.version"},
		{"Ready", "string", `.status.conditions[?(@.type=="` + Ready + `")].status`},
		{"Message", "string", `.status.conditions[?(@.type=="` + Ready + `")].message`},
		{"Age", "date", ".metadata.creationTimestamp"},
	} {
		out = append(out, map[string]any{"name": c[0], "type": c[1], "jsonPath": c[2]})
	}
	return out
}

// schemaOf returns the structural OpenAPI schema of t, a type of this package. Fields without
// omitempty are required.
func schemaOf(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[*metav1.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[metav1.Condition]():
		return conditionSchema()
	case t == reflect.TypeFor[metav1.ObjectMeta]():
		return map[string]any{"type": "object"}
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer", "format": t.Kind().String()}
	case reflect.Slice:
		out := map[string]any{"type": "array", "items": schemaOf(t.Elem())}
		if t.Elem() == reflect.TypeFor[metav1.Condition]() {
			out["x-kubernetes-list-type"], out["x-kubernetes-list-map-keys"] = "map", []any{"type"}
		}
		return out
	case reflect.Struct:
		return structSchema(t)
	default:
		panic(fmt.Sprintf("v1alpha1: no schema for %s", t))
	}
}

func structSchema(t reflect.Type) map[string]any {
	properties := map[string]any{}
	var required []any
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue // TypeMeta: its fields are inlined
		}
		s := schemaOf(f.Type)
		if doc := f.Tag.Get("doc"); doc != "" {
			s["description"] = doc
		}
		properties[name] = s
		if options == "" {
			required = append(required, name)
		}
	}
	out := map[string]any{"type": "object", "properties": properties}
	if required != nil {
		out["required"] = required
	}
	return out
}

// conditionSchema returns the schema of metav1.Condition.
func conditionSchema() map[string]any {
	text := func(more map[string]any) map[string]any {
		more["type"] = "string"
		return more
	}
	return map[string]any{
		"type":     "object",
		"required": []any{"lastTransitionTime", "message", "reason", "status", "type"},
		"properties": map[string]any{
			"type":               text(map[string]any{"maxLength": int64(316)}),
			"status":             text(map[string]any{"enum": []any{"True", "False", "Unknown"}}),
			"reason":             text(map[string]any{"minLength": int64(1), "maxLength": int64(1024)}),
			"message":            text(map[string]any{"maxLength": int64(32768)}),
			"lastTransitionTime": text(map[string]any{"format": "date-time"}),
			"observedGeneration": map[string]any{"type": "integer", "format": "int64", "minimum": int64(0)},
		},
	}
}
