package admit

import (
	"slices"

	"github.com/quayside/quayside/internal/k8s"
)

// trimDefinition returns a CRD without the parts of its schemas that cannot contain a fault, mostly types and
// descriptions, so that validation takes less time. If the CRD has a fault, the result has the same fault,
// possibly at another position.
func trimDefinition(crd map[string]any) map[string]any {
	var versions []any
	for _, version := range k8s.List(crd, "spec", "versions") {
		if v, ok := version.(map[string]any); ok {
			if s := k8s.Map(v, "schema", "openAPIV3Schema"); s != nil {
				s, _ = trimSchema(s, false, "apiVersion", "kind", "metadata")
				version = k8s.With(v, s, "schema", "openAPIV3Schema")
			}
		}
		versions = append(versions, version)
	}
	return k8s.With(crd, versions, "spec", "versions")
}

// trimSchema returns a schema without descriptions and without properties whose schemas are always valid. It keeps the
// properties whose names are in named, and properties with unknown fields. It keeps all properties if all is true, or
// if a rule or default may refer to any property. plain reports whether the whole schema is always valid.
func trimSchema(s map[string]any, all bool, named ...string) (out map[string]any, plain bool) {
	all = all || s["x-kubernetes-validations"] != nil || s["default"] != nil
	out, plain = make(map[string]any, len(s)), !all && (s["type"] != nil || s["x-kubernetes-preserve-unknown-fields"] != nil)
	for key, v := range s {
		inner, _ := v.(map[string]any)
		switch {
		case key == "properties" && inner != nil && s["additionalProperties"] == nil:
			kept := map[string]any{}
			for name, p := range inner {
				property, ok := p.(map[string]any)
				if !ok || slices.Contains(named, name) {
					kept[name], plain = p, false
				} else if less, isPlain := trimSchema(property, all); !isPlain {
					kept[name], plain = less, false
				}
			}
			out[key] = kept
		case (key == "items" || key == "additionalProperties") && inner != nil:
			less, isPlain := trimSchema(inner, all, k8s.Texts(s, "x-kubernetes-list-map-keys")...)
			out[key], plain = less, plain && isPlain
		case isKeptWhole(key) && v != nil && v != "atomic":
			out[key], plain = v, false
		case !isPlainField(s, key, v):
			return s, false
		case key != "description":
			out[key] = v
		}
	}
	return out, plain
}

// isKeptWhole reports whether a field of a schema is valid or invalid regardless of the properties
// that trimSchema removes.
func isKeptWhole(key string) bool {
	return slices.Contains([]string{"default", "pattern", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-validations"}, key)
}

// isPlainField reports whether a field of a schema has the right type and is valid in any context.
func isPlainField(s map[string]any, key string, v any) bool {
	switch key {
	case "description", "title", "format":
		_, ok := v.(string)
		return ok
	case "nullable":
		_, ok := v.(bool)
		return ok
	case "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		_, ok := v.(int64)
		return ok
	case "enum", "required":
		list, ok := v.([]any)
		return ok && len(k8s.Texts(s, key)) == len(list)
	case "type":
		return v == "array" && s["items"] != nil || slices.Contains([]any{"boolean", "integer", "number", "object", "string"}, v)
	case "x-kubernetes-list-type":
		return v == "atomic" && s["type"] == "array"
	case "x-kubernetes-map-type":
		return v == "atomic" && s["type"] == "object"
	case "x-kubernetes-preserve-unknown-fields":
		return v == true
	default:
		return false
	}
}
