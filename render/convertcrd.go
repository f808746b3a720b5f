package render

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quayside/quayside/internal/kobj"
)

// convertCRD turns a v1beta1 CRD into v1: what stood once for all versions
// goes to each, and a schema is made structural. Where v1beta1 kept fields
// that the schema does not know, v1 is told to keep them too.
func convertCRD(o Object) (Object, error) {
	spec := maps.Clone(kobj.Map(o, "spec"))
	if spec == nil {
		return nil, fmt.Errorf("spec is missing")
	}
	versions := kobj.Items(spec, "versions")
	if len(versions) == 0 {
		if kobj.Text(spec, "version") == "" {
			return nil, fmt.Errorf("it names no version")
		}
		versions = []map[string]any{{"name": spec["version"], "served": true, "storage": true}}
	}
	keep := spec["preserveUnknownFields"] != false
	var out []any
	for _, v := range versions {
		version, err := convertVersion(v, spec, keep)
		if err != nil {
			return nil, fmt.Errorf("version %q: %w", kobj.Text(v, "name"), err)
		}
		out = append(out, version)
	}
	if conversion := convertConversion(kobj.Map(spec, "conversion")); conversion != nil {
		spec["conversion"] = conversion
	}
	for _, key := range []string{"version", "validation", "subresources", "additionalPrinterColumns", "preserveUnknownFields"} {
		delete(spec, key)
	}
	spec["versions"] = out
	if kobj.Text(spec, "scope") == "" {
		spec["scope"] = "Namespaced"
	}
	names := maps.Clone(kobj.Map(spec, "names"))
	if names == nil {
		return nil, fmt.Errorf("spec.names is missing")
	}
	spec["names"] = names
	return kobj.With(kobj.Without(o, "status"), spec, "spec"), nil
}

// convertVersion returns one entry of spec.versions with what the whole CRD
// said before.
func convertVersion(v, spec map[string]any, keep bool) (map[string]any, error) {
	out := maps.Clone(v)
	for _, key := range []string{"subresources", "additionalPrinterColumns"} {
		if _, own := out[key]; !own && spec[key] != nil {
			out[key] = spec[key]
		}
	}
	if columns := kobj.Items(out, "additionalPrinterColumns"); len(columns) > 0 {
		renamed := make([]any, len(columns))
		for i, c := range columns {
			c = maps.Clone(c)
			if path, ok := c["JSONPath"]; ok {
				c["jsonPath"] = path
				delete(c, "JSONPath")
			}
			renamed[i] = c
		}
		out["additionalPrinterColumns"] = renamed
	}
	schema := kobj.Map(out, "schema", "openAPIV3Schema")
	if schema == nil {
		schema = kobj.Map(spec, "validation", "openAPIV3Schema")
	}
	structural, err := structuralSchema(schema, keep)
	if err != nil {
		return nil, err
	}
	out["schema"] = map[string]any{"openAPIV3Schema": structural}
	return out, nil
}

const schemaRoot = "openAPIV3Schema"

func structuralSchema(schema map[string]any, keep bool) (map[string]any, error) {
	if schema == nil {
		schema = map[string]any{}
	}
	s, err := structural(schema, keep, schemaRoot)
	if err != nil {
		return nil, err
	}
	s["type"] = "object"
	if keep {
		s["x-kubernetes-preserve-unknown-fields"] = true
	}
	return s, nil
}

// structural returns a copy of a schema in which every value has a type.
func structural(schema map[string]any, keep bool, at string) (map[string]any, error) {
	out := maps.Clone(schema)
	if _, ok := out["$ref"]; ok {
		return nil, fmt.Errorf("%s: $ref is not allowed in a structural schema", at)
	}
	if kobj.Text(out, "type") == "" {
		if err := inferType(out, at); err != nil {
			return nil, err
		}
	}
	properties, has := out["properties"].(map[string]any)
	if has {
		converted := make(map[string]any, len(properties))
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			p, ok := properties[name].(map[string]any)
			if !ok {
				return nil, fmt.Errorf("%s.properties[%q] is not a schema", at, name)
			}
			c, err := structural(p, keep && !(at == schemaRoot && name == "metadata"), at+"."+name)
			if err != nil {
				return nil, err
			}
			converted[name] = c
		}
		out["properties"] = converted
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if nested, ok := out[key].(map[string]any); ok {
			c, err := structural(nested, keep, at+"."+key)
			if err != nil {
				return nil, err
			}
			out[key] = c
		}
	}
	if extra, ok := out["additionalProperties"].(bool); ok && has {
		delete(out, "additionalProperties")
		keep = keep || extra
		if !extra {
			return nil, fmt.Errorf("%s: additionalProperties: false beside properties is not allowed in a structural schema", at)
		}
	}
	if _, open := out["additionalProperties"]; keep && !open && kobj.Text(out, "type") == "object" {
		out["x-kubernetes-preserve-unknown-fields"] = true
	}
	return out, nil
}

// inferType gives a schema without a type the one that its fields imply.
func inferType(out map[string]any, at string) error {
	_, properties := out["properties"]
	_, additional := out["additionalProperties"]
	_, itemsSet := out["items"]
	switch {
	case out["x-kubernetes-int-or-string"] == true || out["x-kubernetes-preserve-unknown-fields"] == true:
	case properties || additional:
		out["type"] = "object"
	case itemsSet:
		out["type"] = "array"
	case isTyped(out["anyOf"], out["oneOf"], out["allOf"]) || out["enum"] != nil || out["not"] != nil:
		return fmt.Errorf("%s: its type is not said", at)
	default: // any value
		out["x-kubernetes-preserve-unknown-fields"] = true
	}
	return nil
}

func isTyped(alternatives ...any) bool {
	return slices.ContainsFunc(alternatives, func(v any) bool { return v != nil })
}

// convertConversion moves a conversion webhook to where v1 has it.
func convertConversion(c map[string]any) map[string]any {
	if c == nil {
		return nil
	}
	out := maps.Clone(c)
	client, ok := out["webhookClientConfig"]
	versions := out["conversionReviewVersions"]
	delete(out, "webhookClientConfig")
	delete(out, "conversionReviewVersions")
	if !ok {
		return out
	}
	if versions == nil {
		versions = kobj.Values("v1beta1")
	}
	out["webhook"] = map[string]any{"clientConfig": client, "conversionReviewVersions": versions}
	return out
}
