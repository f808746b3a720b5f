package plan

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/quayside/quayside/internal/jsonschema"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Schema returns the JSON schema of a plan file.
func Schema() []byte {
	return jsonschema.Of("https://quayside.dev/schema/adoption-plan.schema.json", "quayside adoption plan", Plan{})
}

// Format encodes a plan as YAML, with fields in the order of their definition and one action per line. Parse
// decodes the YAML to an equal plan. Equal plans have equal encodings.
func Format(p *Plan) []byte {
	w := &writer{}
	w.WriteString("# Written by quayside adopt plan. Review and commit it, and execute it with quayside adopt run.\n")
	w.writeFields(reflect.ValueOf(*p), "")
	return w.Bytes()
}

// writer writes values as YAML.
type writer struct{ bytes.Buffer }

// writeFields writes the fields of a struct, one per line.
func (w *writer) writeFields(v reflect.Value, indent string) {
	for i, f := range encodedFields(v) {
		if i > 0 {
			w.WriteString(indent)
		}
		w.WriteString(f.Name + ":")
		value := v.FieldByIndex(f.Index)
		if text, ok := formatScalar(value); ok {
			w.WriteString(" " + text + "\n")
			continue
		}
		w.writeList(value, indent)
	}
}

// writeList writes a list. The key and its colon are already written.
func (w *writer) writeList(v reflect.Value, indent string) {
	if v.Len() == 0 {
		w.WriteString(" []\n")
		return
	}
	w.WriteByte('\n')
	for i := range v.Len() {
		w.WriteString(indent + "- ")
		item := v.Index(i)
		if text, ok := formatScalar(item); ok {
			w.WriteString(text + "\n")
			continue
		}
		switch item.Interface().(type) {
		case Action, Workload, State:
			w.writeFlow(item)
			w.WriteByte('\n')
		default:
			w.writeFields(item, indent+"  ")
		}
	}
}

// writeFlow writes a value on one line, in YAML's flow style.
func (w *writer) writeFlow(v reflect.Value) {
	sep := ""
	next := func() { w.WriteString(sep); sep = ", " }
	switch v.Kind() { //nolint:exhaustive // a plan contains no values of other kinds
	case reflect.Struct:
		w.WriteByte('{')
		for _, f := range encodedFields(v) {
			next()
			w.WriteString(f.Name + ": ")
			if text, ok := formatScalar(v.FieldByIndex(f.Index)); ok {
				w.WriteString(text)
			} else {
				w.writeFlow(v.FieldByIndex(f.Index))
			}
		}
		w.WriteByte('}')
	case reflect.Map:
		w.WriteByte('{')
		set, _ := v.Interface().(map[string]string)
		for _, key := range slices.Sorted(maps.Keys(set)) {
			next()
			w.WriteString(yamlnode.Quote(key) + ": " + yamlnode.Quote(set[key]))
		}
		w.WriteByte('}')
	case reflect.Slice:
		w.WriteByte('[')
		for i := range v.Len() {
			next()
			text, _ := formatScalar(v.Index(i))
			w.WriteString(text)
		}
		w.WriteByte(']')
	}
}

// encodedFields returns the fields of a struct to write. These are required fields, fields that are not empty,
// and lists and maps that are not nil.
func encodedFields(v reflect.Value) []reflect.StructField {
	return slices.DeleteFunc(slices.Clone(yamlnode.Fields(v.Type())), func(f reflect.StructField) bool {
		value := v.FieldByIndex(f.Index)
		if kind := value.Kind(); kind == reflect.Slice || kind == reflect.Map {
			return value.IsNil()
		}
		return value.IsZero() && !yamlnode.Required(f)
	})
}

// formatScalar returns a scalar or a k8s.Ref as YAML. It returns false if the value is a list, a map or another
// struct.
func formatScalar(v reflect.Value) (string, bool) {
	switch x := v.Interface().(type) {
	case k8s.Ref:
		return yamlnode.Quote(x.String()), true
	case bool:
		return strconv.FormatBool(x), true
	case int, int64:
		return fmt.Sprint(x), true
	}
	return yamlnode.Quote(v.String()), v.Kind() == reflect.String
}
