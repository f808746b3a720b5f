package admit

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/quayside/quayside/internal/k8s"
)

// Canonical returns an object as the API server stores it, but without defaults. It removes:
//   - the status
//   - null values
//   - empty values of fields with omitempty
//   - empty lists where the API server stores null
//   - target ports that stand for the port of the Service
//
// Quantities and base64 get their canonical form. Unknown fields, values of a wrong type, and the defaults
// and examples in schemas of CRDs do not change. Objects of kinds that are not built in are returned
// unchanged.
func (t *Types) Canonical(object k8s.Object) k8s.Object {
	of := t.kind(object.APIVersion(), object.Kind())
	if of == nil {
		return object
	}
	object = k8s.Without(object, "status")
	return k8s.Object((&canonicalizer{types: t}).object(of, object))
}

// Repeat is a group of list items with the same key. Server-side apply rejects such
// items.
type Repeat struct {
	List  string           // path of the list, such as "spec.template.spec.containers[0].env"
	Key   string           // such as `name="MODE"`, or the value of an item that is no mapping
	Count int              // number of items
	Items []map[string]any // in the order of the list; nil if the items are no mappings
}

// Distinct removes list items that server-side apply rejects, because another item has the same key. It returns
// the object and the repeats. If the items of a repeat are mappings, the item that keep returns remains, at the
// position of the last item. In kinds that are not built in, Distinct changes only the metadata, because the
// API server rejects every request with repeats in other fields of such kinds.
func (t *Types) Distinct(object k8s.Object, keep func(Repeat) map[string]any) (k8s.Object, []Repeat) {
	c := canonicalizer{types: t, keep: keep}
	out := object
	if of := t.kind(object.APIVersion(), object.Kind()); of != nil {
		out = c.object(of, object)
	} else if metadata := k8s.Map(object, "metadata"); metadata != nil {
		out = k8s.With(object, c.below(step{".", "metadata", ""}, reflect.TypeFor[metav1.ObjectMeta](), metadata), "metadata")
	}
	if len(c.repeats) == 0 {
		return object, nil
	}
	slices.SortFunc(c.repeats, func(a, b Repeat) int { return strings.Compare(a.List+" "+a.Key, b.List+" "+b.Key) })
	return out, c.repeats
}

// canonicalizer builds the canonical form of values of Go types. If keep is not nil, it only removes repeats.
type canonicalizer struct {
	types   *Types
	at      []step                      // path of the value
	keep    func(Repeat) map[string]any // if not nil, only repeats are removed
	repeats []Repeat
}

// below returns the canonical form of v, which is one step below the value at c.at.
func (c *canonicalizer) below(at step, of reflect.Type, v any) any {
	c.at = append(c.at, at)
	defer func() { c.at = c.at[:len(c.at)-1] }()
	return c.value(of, v)
}

// value returns the canonical form of a value.
func (c *canonicalizer) value(of reflect.Type, v any) any {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of.Kind() < reflect.Array || of.Kind() == reflect.String: // a scalar
		return v
	case of == reflect.TypeFor[resource.Quantity]():
		return c.quantity(v)
	case isSchema(of) && c.keep == nil:
		of = reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()
		if list, isList := v.([]any); isList {
			return c.value(reflect.SliceOf(of), list)
		}
	case isSchema(of), reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		if of.Kind() == reflect.Struct {
			return c.object(of, v)
		}
		if of.Kind() == reflect.Map {
			out := v
			for key, e := range v {
				if now := c.below(step{"[", key, "]"}, of.Elem(), e); !isSame(e, now) {
					out = copyIfSame(v, out)
					out[key] = now
				}
			}
			return out
		}
	case []any:
		if of.Kind() == reflect.Slice {
			out := v
			for i, e := range v {
				if now := c.below(step{"[", strconv.Itoa(i), "]"}, of.Elem(), e); !isSame(e, now) {
					if isSame(v, out) {
						out = slices.Clone(v)
					}
					out[i] = now
				}
			}
			return out
		}
	case string:
		if c.keep == nil && of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Uint8 {
			if data, err := base64.StdEncoding.DecodeString(v); err == nil {
				return base64.StdEncoding.EncodeToString(data)
			}
		}
	}
	return v
}

func (c *canonicalizer) object(of reflect.Type, m map[string]any) map[string]any {
	fields := c.types.fieldsOf(of)
	out := m
	for key, e := range m {
		field, known := fields[key]
		if !known {
			continue
		}
		now := c.below(step{".", key, ""}, field.of, e)
		if list, isList := now.([]any); isList && c.keep != nil && field.keys != nil {
			now = c.distinct(key, field.keys, list)
		}
		if c.keep == nil && (now == nil || isDropped(field, now)) {
			out = copyIfSame(m, out)
			delete(out, key)
		} else if !isSame(e, now) {
			out = copyIfSame(m, out)
			out[key] = now
		}
	}
	return out
}

// copyIfSame returns a copy of m if out is m itself, and otherwise out. Only changed maps are copied, because
// schemas of CRDs are large.
func copyIfSame(m, out map[string]any) map[string]any {
	if isSame(m, out) {
		return maps.Clone(m)
	}
	return out
}

// isSame reports whether two values are the same mapping, list or scalar.
func isSame(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, isMap := b.(map[string]any)
		return isMap && reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
	case []any:
		b, isList := b.([]any)
		return isList && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	}
	return a == b
}

// isSchema reports whether a type is a schema of a CRD, or the type of a field with one or several schemas.
func isSchema(of reflect.Type) bool {
	switch of {
	case reflect.TypeFor[apiextensionsv1.JSONSchemaProps](), reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray](),
		reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool](), reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray]():
		return true
	}
	return false
}

// isDropped reports whether the API server does not store the value of a field. Such values are zero values
// that encoding/json omits, empty lists (protobuf does not store them), and a 0 or "" that stands for the
// default of an integer or name.
func isDropped(field typeField, v any) bool {
	kind := field.of.Kind()
	list, isList := v.([]any)
	switch {
	case field.of == reflect.TypeFor[intstr.IntOrString]():
		return field.omitEmpty && (v == int64(0) || v == "")
	case kind == reflect.Slice && isList && len(list) == 0:
		return true
	case !field.omitEmpty, kind == reflect.Pointer, kind == reflect.Struct, kind == reflect.Interface:
		return false
	}
	m, isMap := v.(map[string]any)
	return isMap && len(m) == 0 || v == "" || v == false || v == int64(0) || v == float64(0)
}

// quantity returns a quantity in its canonical form. Other values are returned as they are.
func (c *canonicalizer) quantity(v any) any {
	if c.keep != nil {
		return v
	}
	switch v.(type) {
	case string, int64, float64:
		if q, err := resource.ParseQuantity(fmt.Sprint(v)); err == nil {
			return q.String()
		}
	}
	return v
}

// distinct returns a list with one item for each key. If keys is empty, an item is its own key.
func (c *canonicalizer) distinct(field string, keys []string, list []any) []any {
	groups := map[string][]any{}
	for _, v := range list {
		key := itemKey(keys, v)
		groups[key] = append(groups[key], v)
	}
	var out []any
	for _, v := range slices.Backward(list) {
		key := itemKey(keys, v)
		switch items := groups[key]; {
		case len(items) > 1 && key != "":
			r := Repeat{List: strings.TrimPrefix((&typeChecker{at: c.at}).path()+"."+field, "."), Key: key, Count: len(items)}
			for _, item := range items {
				if m, isMap := item.(map[string]any); isMap {
					r.Items = append(r.Items, m)
				}
			}
			c.repeats = append(c.repeats, r)
			if r.Items != nil {
				v = c.keep(r)
			}
			out = append(out, v)
			groups[key] = nil
		case items != nil:
			out = append(out, v)
		}
	}
	slices.Reverse(out)
	return out
}

// itemKey returns the key of an item, or "" if the API server rejects an item of this type anyway.
func itemKey(keys []string, v any) string {
	m, isMap := v.(map[string]any)
	if len(keys) == 0 || !isMap {
		if isMap || len(keys) > 0 {
			return ""
		}
		return fmt.Sprintf("%#v", v)
	}
	var parts []string
	for _, key := range keys {
		key, value, _ := strings.Cut(key, "=")
		if set := m[key]; set != nil {
			value = fmt.Sprint(set)
		}
		parts = append(parts, fmt.Sprintf("%s=%q", key, value))
	}
	return strings.Join(parts, ", ")
}

// listKeysText has a line for each list of the API whose items must have different keys in
// server-side apply: the Go type, the field, and the keys, with their default values. Without keys, the
// items themselves must differ.
// TestGoldenListKeys compares the file with the schema of the API. With -update, it writes the file.
//
//go:embed listkeys.txt
var listKeysText string

// listKeys returns the keys of lists by Go type and field.
var listKeys = sync.OnceValue(func() map[string]map[string][]string { //nolint:gochecknoglobals // parsed once
	out := map[string]map[string][]string{}
	for line := range strings.Lines(listKeysText) {
		words := strings.Fields(line)
		if out[words[0]] == nil {
			out[words[0]] = map[string][]string{}
		}
		out[words[0]][words[1]] = words[2:]
	}
	return out
})
