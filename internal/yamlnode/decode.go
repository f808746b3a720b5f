package yamlnode

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
)

// Decode decodes n into the struct that into points to, by its json tags. Unknown fields and values
// of a wrong type are faults. The error is a diag.List of all faults, up to [MaxFaults].
//
// Null leaves a field unchanged. A json.RawMessage accepts any value, as canonical JSON. A *yaml.Node
// accepts any node. An encoding.TextUnmarshaler accepts a string. A struct with a
// [ShortForm] also accepts a string. In a field tagged `yamlnode:"open"`, unknown fields are
// ignored.
func Decode(file string, n *yaml.Node, into any) error { return decode(file, n, into, false) }

// DecodeOpen is Decode for documents that may have fields of other programs: unknown fields are
// ignored.
func DecodeOpen(file string, n *yaml.Node, into any) error { return decode(file, n, into, true) }

func decode(file string, n *yaml.Node, into any, open bool) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic(fmt.Sprintf("yamlnode: Decode into %T", into))
	}
	d := decoder{file: file}
	d.value(n, v.Elem(), "", open)
	if len(d.errs) > MaxFaults {
		d.errs = d.errs[:MaxFaults]
		d.errs.Addf(At(file, n), "more than %d faults: the rest is omitted", MaxFaults)
	}
	return d.errs.Err()
}

type decoder struct {
	file string
	errs diag.List
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, path string, open bool) {
	switch v.Interface().(type) {
	case json.RawMessage:
		raw, err := JSON(n)
		if err != nil {
			d.errs.Add(At(d.file, n), shiftError(err, d.file, 0))
			return
		}
		v.SetBytes(raw)
		return
	case *yaml.Node:
		v.Set(reflect.ValueOf(n))
		return
	}
	if IsNull(n) {
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if text, ok := Text(n); !ok {
			d.addTypeFault(n, path, "a string")
		} else {
			d.errs.Add(At(d.file, n), u.UnmarshalText([]byte(text)))
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path, open)
	case reflect.Struct:
		d.object(n, v, path, open)
	case reflect.Map:
		d.mapping(n, v, path, open)
	case reflect.Slice:
		d.list(n, v, path, open)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) object(n *yaml.Node, v reflect.Value, path string, open bool) {
	known := shapeOf(v.Type())
	short, isShort := known.shortForm()
	text, isText := Text(n)
	switch {
	case isShort && isText:
		v.FieldByIndex(short.Index).SetString(text)
		return
	case isShort && n.Kind != yaml.MappingNode:
		d.addTypeFault(n, path, "a string or a mapping")
		return
	case n.Kind != yaml.MappingNode:
		d.addTypeFault(n, path, "a mapping")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := keyText(n.Content[i])
		if err != nil {
			d.errs.Add(At(d.file, n.Content[i]), err)
			continue
		}
		at, ok := known.byName[key]
		if !ok { // a field named "on": YAML 1.1 decodes this key as true
			if at, ok = known.byName[n.Content[i].Value]; ok {
				key = n.Content[i].Value
			}
		}
		switch {
		case ok:
			f := known.fields[at]
			d.value(n.Content[i+1], v.FieldByIndex(f.Index), diag.Member(path, key), open || f.Tag.Get("yamlnode") == "open")
		case !open:
			d.errs.Addf(At(d.file, n.Content[i]), "unknown field %q%s%s", sanitize.Truncate(n.Content[i].Value, maxShown), fieldPrefix(path), diag.DidYouMean(key, known.names()))
		}
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string, open bool) {
	if n.Kind != yaml.MappingNode {
		d.addTypeFault(n, path, "a mapping")
		return
	}
	m := reflect.MakeMapWithSize(v.Type(), len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := keyText(n.Content[i])
		if err != nil {
			d.errs.Add(At(d.file, n.Content[i]), err)
			continue
		}
		elem := reflect.New(v.Type().Elem()).Elem()
		d.value(n.Content[i+1], elem, diag.Member(path, key), open)
		m.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), elem)
	}
	v.Set(m)
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string, open bool) {
	if n.Kind != yaml.SequenceNode {
		d.addTypeFault(n, path, "a list")
		return
	}
	s := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, c := range n.Content {
		d.value(c, s.Index(i), diag.Item(path, i), open)
	}
	v.Set(s)
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	s, err := resolve(n)
	if err != nil {
		d.errs.Addf(At(d.file, n), "%s%w", fieldLabel(path), err)
		return
	}
	switch v.Kind() {
	case reflect.String:
		if s.kind != kindString {
			d.addTypeFault(n, path, "a string")
			return
		}
		v.SetString(s.text)
	case reflect.Bool:
		if s.kind != kindBool {
			d.addTypeFault(n, path, "true or false")
			return
		}
		v.SetBool(s.text == "true")
	case reflect.Int, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(s.text, 10, v.Type().Bits())
		if s.kind != kindInt || err != nil {
			d.addTypeFault(n, path, "an integer")
			return
		}
		v.SetInt(i)
	default:
		panic(fmt.Sprintf("yamlnode: no way to decode into %s", v.Type()))
	}
}

func (d *decoder) addTypeFault(n *yaml.Node, path, want string) {
	hint := ""
	if s, err := resolve(n); want == "a string" && err == nil && s.kind != kindString {
		hint = " (put it in quotes)"
	}
	d.errs.Addf(At(d.file, n), "%sexpected %s, got %s%s", fieldLabel(path), want, describeNode(n), hint)
}

func fieldLabel(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

func fieldPrefix(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

// Fields returns the fields of a struct that have a JSON name, in order. Name is set to the JSON name.
// Fields of an embedded struct, and of a field tagged `json:",inline"`, are included. The caller must not
// modify the result.
func Fields(t reflect.Type) []reflect.StructField { return shapeOf(t).fields }

// ShortForm returns the field tagged `yamlnode:"text"`. [Decode] sets this field if the YAML has a string
// instead of a mapping. It returns false if the struct has no such field.
func ShortForm(t reflect.Type) (reflect.StructField, bool) { return shapeOf(t).shortForm() }

// shape describes the fields of a struct type.
type shape struct {
	fields []reflect.StructField
	byName map[string]int // name → index of the last field with this name
	short  int            // index of the field of the short form, or -1
}

// shapes caches the shape of each type. Without the cache, reading a lock spent a third of its time on
// parsing struct tags.
var shapes sync.Map //nolint:gochecknoglobals // a cache of struct types, which never change

func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape)
	}
	out := &shape{fields: structFields(t, nil), byName: map[string]int{}}
	for i, f := range out.fields {
		out.byName[f.Name] = i
	}
	out.short = slices.IndexFunc(out.fields, func(f reflect.StructField) bool { return f.Tag.Get("yamlnode") == "text" })
	known, _ := shapes.LoadOrStore(t, out)
	return known.(*shape)
}

func (s *shape) shortForm() (reflect.StructField, bool) {
	if s.short < 0 {
		return reflect.StructField{}, false
	}
	return s.fields[s.short], true
}

// names returns the JSON names of the fields, in order.
func (s *shape) names() []string {
	out := make([]string, len(s.fields))
	for i, f := range s.fields {
		out[i] = f.Name
	}
	return out
}

// Required reports whether the tag "form" of a field contains "required".
func Required(f reflect.StructField) bool {
	return slices.Contains(strings.Fields(f.Tag.Get("form")), "required")
}

func structFields(t reflect.Type, above []int) []reflect.StructField {
	out := make([]reflect.StructField, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		f.Index = append(slices.Clip(above), i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case option == "inline", f.Anonymous && name == "":
			out = append(out, structFields(f.Type, f.Index)...)
		case name != "" && name != "-":
			f.Name = name
			out = append(out, f)
		}
	}
	return out
}
