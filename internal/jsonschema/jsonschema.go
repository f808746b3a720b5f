// Package jsonschema derives the published JSON schemas from Go structs. The program decodes its files into
// these structs, and encodes its output from them. Schemas and code are therefore always consistent.
//
// The tags of a field describe it: json is the name, doc is the description, default is the default, and form
// holds further rules, separated by blanks: required, nonempty, enum=a|b, const=…, pattern=…, format=date. A
// string type can also define its pattern or enum with a method Pattern or Enum.
//
// Start from [Of] and [Output].
package jsonschema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/quayside/quayside/internal/yamlnode"
)

// Of returns the schema (draft 2020-12) of the struct v as indented JSON.
func Of(id, title string, v any) []byte {
	return encodeSchema(id, title, new(schemaBuilder).object(reflect.TypeOf(v)))
}

// Output returns the schema of an output of the program. The output has the type of one of the documents,
// and is encoded by encoding/json. Fields without omitempty or omitzero are required, and lists are never
// null. For a field of type any, the schema also permits the type of each document.
func Output(id, title string, documents ...any) []byte {
	m := &schemaBuilder{output: true, open: map[reflect.Type]bool{}, recursive: map[string]any{}}
	var either []any
	for _, d := range documents {
		either = append(either, m.typeOf(reflect.TypeOf(d)))
	}
	root := map[string]any{"anyOf": either}
	if len(m.recursive) > 0 {
		root["$defs"] = m.recursive
	}
	return encodeSchema(id, title, root)
}

func encodeSchema(id, title string, root map[string]any) []byte {
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = id
	root["title"] = title
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		panic(fmt.Sprintf("jsonschema: %s: %v", title, err))
	}
	return b.Bytes()
}

// schemaBuilder builds the schemas of types.
type schemaBuilder struct {
	output    bool                  // whether it is a schema for Output
	open      map[reflect.Type]bool // structs whose schema is being built; nil unless output
	recursive map[string]any        // schemas of recursive structs by name; nil until complete
}

func (m *schemaBuilder) object(t reflect.Type) map[string]any {
	if m.open[t] {
		m.recursive[t.Name()] = nil
	}
	if _, ok := m.recursive[t.Name()]; ok {
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	}
	if m.output {
		m.open[t] = true
		defer delete(m.open, t)
	}
	properties := map[string]any{}
	var required []string
	for _, f := range yamlnode.Fields(t) {
		properties[f.Name] = m.field(f)
		if yamlnode.Required(f) || m.output && !strings.Contains(f.Tag.Get("json"), ",omit") {
			required = append(required, f.Name)
		}
	}
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if _, short := yamlnode.ShortForm(t); short && !m.output {
		out["type"] = []string{"string", "object"}
	}
	if required != nil {
		out["required"] = required
	}
	if _, ok := m.recursive[t.Name()]; ok {
		m.recursive[t.Name()] = out
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	}
	return out
}

func (m *schemaBuilder) field(f reflect.StructField) map[string]any {
	s := m.typeOf(f.Type)
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
	target := s // a rule on a list applies to its items
	if items, ok := s["items"].(map[string]any); ok {
		target = items
	}
	if f.Tag.Get("yamlnode") == "open" {
		target["additionalProperties"] = true
	}
	for _, rule := range strings.Fields(f.Tag.Get("form")) {
		key, value, _ := strings.Cut(rule, "=")
		switch key {
		case "required":
		case "nonempty":
			target["minLength"] = 1
		case "enum":
			target["enum"] = strings.Split(value, "|")
		case "const":
			target["const"] = value
		case "pattern", "format":
			target[key] = value
		default:
			panic(fmt.Sprintf("jsonschema: rule %q of field %s", rule, f.Name))
		}
	}
	return s
}

// patterned is a string type with a pattern.
type patterned interface{ Pattern() string }

// enumerated is a string type with a fixed set of values.
type enumerated interface{ Enum() []string }

// formatted is a type that is encoded as a string with a format. Types of Kubernetes implement it.
type formatted interface{ OpenAPISchemaFormat() string }

func (m *schemaBuilder) typeOf(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	case t.Implements(reflect.TypeFor[formatted]()):
		return map[string]any{"type": "string", "format": reflect.Zero(t).Interface().(formatted).OpenAPISchemaFormat()}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()), m.output && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return map[string]any{"type": "string"}
	case t.Implements(reflect.TypeFor[patterned]()):
		return map[string]any{"type": "string", "pattern": reflect.Zero(t).Interface().(patterned).Pattern()}
	case t.Implements(reflect.TypeFor[enumerated]()):
		return map[string]any{"type": "string", "enum": reflect.Zero(t).Interface().(enumerated).Enum()}
	}
	switch t.Kind() { //nolint:exhaustive // the rest has no schema and panics below
	case reflect.Pointer:
		return m.typeOf(t.Elem())
	case reflect.Struct:
		return m.object(t)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": m.typeOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": m.typeOf(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Interface: // a field of type any is a nested document
		return map[string]any{"$ref": "#"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	}
	panic(fmt.Sprintf("jsonschema: no schema for %s", t))
}
