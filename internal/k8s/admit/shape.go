package admit

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/internal/k8s"
)

// Shape is the difference between an object and its type. Fields are paths:
// "spec.template.spec.containers[0].args".
type Shape struct {
	Unknown []string // fields that the type does not have, sorted; strict decoding and server-side apply reject them, other requests drop them
	Wrong   []Fault  // values of a wrong type, sorted; every request with them is rejected
}

// Check compares an object with the type of its kind, as the API server's strict decoding does.
// For kinds that are not built in, it checks only the metadata, which all kinds share.
func (t *Types) Check(object map[string]any) Shape {
	w := typeChecker{types: t}
	of := t.kind(k8s.Text(object, "apiVersion"), k8s.Text(object, "kind"))
	if of == nil {
		w.checkValue(reflect.TypeFor[metav1.ObjectMeta](), object["metadata"], "metadata")
	} else {
		w.checkValue(of, object, "")
	}
	return w.sortedShape()
}

// Prune returns an object without the unknown fields that [Types.Check] finds.
func (t *Types) Prune(object map[string]any) map[string]any {
	of := t.kind(k8s.Text(object, "apiVersion"), k8s.Text(object, "kind"))
	if of == nil {
		return object
	}
	object = k8s.Copy(object)
	(&typeChecker{types: t, prune: true}).checkValue(of, object, "")
	return object
}

// PrunePart compares the value at a path with the type of a part, and returns it without unknown
// fields. If there are none, it returns the value itself.
func PrunePart[V any](t *Types, part Part, value V, at string) (V, Shape) {
	w := typeChecker{types: t}
	w.checkValue(part.of, value, at)
	if len(w.Unknown) > 0 {
		value = k8s.Copy(value)
		(&typeChecker{types: t, prune: true}).checkValue(part.of, value, at)
	}
	return value, w.sortedShape()
}

// typeChecker compares values with their types.
type typeChecker struct {
	Shape
	types         *Types
	prune         bool // unknown fields are deleted
	ignoreUnknown int  // unknown fields are ignored if positive
}

func (w *typeChecker) sortedShape() Shape {
	slices.Sort(w.Unknown)
	slices.SortFunc(w.Wrong, Fault.compare)
	return w.Shape
}

func (w *typeChecker) addTypeFault(at, want string, got any) {
	w.Wrong = append(w.Wrong, Fault{at, "expected " + want + ", got " + k8s.TypeName(got)})
}

func (w *typeChecker) checkValue(of reflect.Type, v any, at string) {
	if v == nil {
		return // the API server decodes null as the zero value
	}
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		w.checkCustom(of, v, at)
		return
	}
	switch of.Kind() {
	case reflect.Struct:
		w.checkObject(of, v, at)
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			w.addTypeFault(at, "an object", v)
		}
		for key, e := range m {
			w.checkValue(of.Elem(), e, fmt.Sprintf("%s[%s]", at, key))
		}
	case reflect.Slice:
		w.checkList(of, v, at)
	default:
		w.checkScalar(of.Kind(), v, at)
	}
}

func (w *typeChecker) checkObject(of reflect.Type, v any, at string) {
	m, ok := v.(map[string]any)
	if !ok {
		w.addTypeFault(at, "an object", v)
		return
	}
	fields := w.types.fieldsOf(of)
	for key, e := range m {
		here := key
		if at != "" {
			here = at + "." + key
		}
		inner, known := fields[key]
		switch {
		case known:
			w.checkValue(inner, e, here)
		case w.ignoreUnknown > 0:
		case w.prune:
			delete(m, key)
		default:
			w.Unknown = append(w.Unknown, here)
		}
	}
}

func (w *typeChecker) checkList(of reflect.Type, v any, at string) {
	if of.Elem().Kind() == reflect.Uint8 {
		text, ok := v.(string)
		if !ok {
			w.addTypeFault(at, "text in base64", v)
		} else if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			w.Wrong = append(w.Wrong, Fault{at, err.Error()})
		}
		return
	}
	list, ok := v.([]any)
	if !ok {
		w.addTypeFault(at, "a list", v)
	}
	for i, e := range list {
		w.checkValue(of.Elem(), e, fmt.Sprintf("%s[%d]", at, i))
	}
}

func (w *typeChecker) checkScalar(kind reflect.Kind, v any, at string) {
	switch kind {
	case reflect.String:
		if _, ok := v.(string); !ok {
			w.addTypeFault(at, "a string", v)
		}
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			w.addTypeFault(at, "a boolean", v)
		}
	case reflect.Float64:
		switch v.(type) {
		case int64, float64, json.Number:
		default:
			w.addTypeFault(at, "a number", v)
		}
	default: // the API has no other integer types
		w.checkInteger(kind == reflect.Int32, v, at)
	}
}

func (w *typeChecker) checkInteger(small bool, v any, at string) {
	var n float64
	switch v := v.(type) {
	case int64:
		n = float64(v)
	case float64:
		n = v
	default:
		w.addTypeFault(at, "a whole number", v)
		return
	}
	if n != math.Trunc(n) || math.Abs(n) > math.MaxInt64 || small && (n < math.MinInt32 || n > math.MaxInt32) {
		w.Wrong = append(w.Wrong, Fault{at, fmt.Sprintf("expected a whole number in the range of the field, got %v", v)})
	}
}

// checkCustom checks a value whose type has its own JSON decoding, which is not strict.
func (w *typeChecker) checkCustom(of reflect.Type, v any, at string) {
	schema := reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()
	w.ignoreUnknown++
	defer func() { w.ignoreUnknown-- }()
	object, isObject := v.(map[string]any)
	switch list, isList := v.([]any); {
	case of == reflect.TypeFor[apiextensionsv1.JSON]():
	case isObject && (of == reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]() || of == reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]() || of == reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray]()):
		w.checkValue(schema, object, at)
	case isList && of == reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():
		w.checkValue(reflect.SliceOf(schema), list, at)
	default:
		data, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(data, reflect.New(of).Interface())
		}
		if err != nil {
			w.Wrong = append(w.Wrong, Fault{at, err.Error()})
		}
	}
}
