// Package jsonschema derives the JSON schemas that are shipped for editors from
// the very structs the parsers decode into, so that the two cannot drift.
//
// A field is described by its tags: json gives the name, doc the description,
// default the default, and form further rules, separated by blanks: required,
// nonempty, enum=a|b, pattern=…, format=date. A type of strings may also bring
// its pattern or its enum, by a method of that name.
//
// Start from [Of].
package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Of returns the schema (draft 2020-12) of the struct that v is, indented, with
// a newline at its end.
func Of(id, title string, v any) []byte {
	root := object(reflect.TypeOf(v))
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = id
	root["title"] = title
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		panic(fmt.Sprintf("jsonschema: %T: %v", v, err))
	}
	return b.Bytes()
}

func object(t reflect.Type) map[string]any {
	properties := map[string]any{}
	var required []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		properties[name] = field(f)
		if has(f, "required") {
			required = append(required, name)
		}
	}
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if required != nil {
		out["required"] = required
	}
	return out
}

func has(f reflect.StructField, rule string) bool {
	for _, r := range strings.Fields(f.Tag.Get("form")) {
		if r == rule {
			return true
		}
	}
	return false
}

func field(f reflect.StructField) map[string]any {
	s := typeOf(f.Type)
	if d := f.Tag.Get("doc"); d != "" {
		s["description"] = d
	}
	if d, ok := f.Tag.Lookup("default"); ok {
		var v any
		if err := json.Unmarshal([]byte(d), &v); err != nil {
			panic(fmt.Sprintf("jsonschema: default %q of field %s: %v", d, f.Name, err))
		}
		s["default"] = v
	}
	where := s // a rule on a list is one on its members
	if items, ok := s["items"].(map[string]any); ok {
		where = items
	}
	if f.Tag.Get("yamlnode") == "open" {
		where["additionalProperties"] = true
	}
	for _, rule := range strings.Fields(f.Tag.Get("form")) {
		key, value, _ := strings.Cut(rule, "=")
		switch key {
		case "required":
		case "nonempty":
			where["minLength"] = 1
		case "enum":
			where["enum"] = strings.Split(value, "|")
		case "const":
			where["const"] = value
		case "pattern", "format":
			where[key] = value
		default:
			panic(fmt.Sprintf("jsonschema: rule %q of field %s", rule, f.Name))
		}
	}
	return s
}

// patterned is a type of strings that knows the pattern they match.
type patterned interface{ Pattern() string }

// enumerated is a type of strings that knows all of them.
type enumerated interface{ Enum() []string }

func typeOf(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	case t == reflect.TypeFor[*yaml.Node]():
		return map[string]any{}
	case t.Implements(reflect.TypeFor[patterned]()):
		return map[string]any{"type": "string", "pattern": reflect.Zero(t).Interface().(patterned).Pattern()}
	case t.Implements(reflect.TypeFor[enumerated]()):
		return map[string]any{"type": "string", "enum": reflect.Zero(t).Interface().(enumerated).Enum()}
	}
	switch t.Kind() { //nolint:exhaustive // the rest has no schema and panics below
	case reflect.Pointer:
		return typeOf(t.Elem())
	case reflect.Struct:
		return object(t)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": typeOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": typeOf(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	}
	panic(fmt.Sprintf("jsonschema: no schema for %s", t))
}
