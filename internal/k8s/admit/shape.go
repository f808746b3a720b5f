package admit

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/internal/k8s"
)

// Shape lists the fields of an object that do not match its type. Fields are paths such as
// "spec.template.spec.containers[0].args".
type Shape struct {
	Unknown []string // fields that the type does not have, sorted; strict decoding and server-side apply reject them, other requests drop them
	Wrong   []Fault  // values of a wrong type, sorted; the API server rejects them in every request
	Missing []Fault  // required fields that are missing, sorted; the API server rejects the object
}

// Check compares an object with the Go type of its kind, like strict decoding in the API server.
// For kinds that are not built in, it checks only the metadata.
func (t *Types) Check(object map[string]any) Shape {
	w := typeChecker{types: t}
	of := t.kind(k8s.Text(object, "apiVersion"), k8s.Text(object, "kind"))
	if of == nil {
		w.checkAt(step{name: "metadata"}, reflect.TypeFor[metav1.ObjectMeta](), object["metadata"])
	} else {
		w.required = of != reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]() // the API server's own validation checks CRDs
		w.checkValue(of, object)
	}
	return w.sortedShape()
}

// Prune returns the object without the unknown fields that [Types.Check] reports.
func (t *Types) Prune(object map[string]any) map[string]any {
	of := t.kind(k8s.Text(object, "apiVersion"), k8s.Text(object, "kind"))
	if of == nil {
		return object
	}
	object = k8s.Copy(object)
	(&typeChecker{types: t, prune: true}).checkValue(of, object)
	return object
}

// PrunePart compares value with the type of part. It returns value without unknown fields, and the
// differences. at is the path of the value. If there are no unknown fields, it returns the same
// value, not a copy.
func PrunePart[V any](t *Types, part Part, value V, at string) (V, Shape) {
	w := typeChecker{types: t}
	w.checkAt(step{name: at}, part.of, value)
	if len(w.Unknown) > 0 {
		value = k8s.Copy(value)
		(&typeChecker{types: t, prune: true}).checkAt(step{name: at}, part.of, value)
	}
	return value, w.sortedShape()
}

// typeChecker compares values with Go types.
type typeChecker struct {
	Shape
	types         *Types
	at            []step // path of the value being checked
	prune         bool   // delete unknown fields
	ignoreUnknown int    // if positive, ignore unknown fields
	required      bool   // look for missing fields
}

func (w *typeChecker) sortedShape() Shape {
	slices.Sort(w.Unknown)
	slices.SortFunc(w.Wrong, Fault.compare)
	slices.SortFunc(w.Missing, Fault.compare)
	return w.Shape
}

func (w *typeChecker) addTypeFault(want string, got any) {
	w.addFault("expected " + want + ", got " + k8s.TypeName(got))
}

func (w *typeChecker) addFault(problem string) {
	w.Wrong = append(w.Wrong, Fault{w.path(), problem})
}

// step is one step of a path, with the text around it: "." and "" for a field, "[" and "]" for a
// map key or an index.
type step struct{ before, name, after string }

// path returns the path of the value being checked, such as "spec.containers[0].args".
func (w *typeChecker) path() string {
	var b strings.Builder
	for _, s := range w.at {
		b.WriteString(s.before + s.name + s.after)
	}
	return strings.TrimPrefix(b.String(), ".")
}

// checkAt checks a value that is one step below the value at w.at.
func (w *typeChecker) checkAt(at step, of reflect.Type, v any) {
	w.at = append(w.at, at)
	w.checkValue(of, v)
	w.at = w.at[:len(w.at)-1]
}

func (w *typeChecker) checkValue(of reflect.Type, v any) {
	if v == nil {
		return // the API server decodes null as the zero value
	}
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		w.checkCustom(of, v)
		return
	}
	switch of.Kind() {
	case reflect.Struct:
		w.checkObject(of, v)
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			w.addTypeFault("an object", v)
		}
		for key, e := range m {
			w.checkAt(step{"[", key, "]"}, of.Elem(), e)
		}
	case reflect.Slice:
		w.checkList(of, v)
	default:
		w.checkScalar(of.Kind(), v)
	}
}

func (w *typeChecker) checkObject(of reflect.Type, v any) {
	m, ok := v.(map[string]any)
	if !ok {
		w.addTypeFault("an object", v)
		return
	}
	fields := w.types.fieldsOf(of)
	for key, e := range m {
		inner, known := fields[key]
		switch {
		case known:
			w.checkAt(step{".", key, ""}, inner.of, e)
		case w.ignoreUnknown > 0:
		case w.prune:
			delete(m, key)
		default:
			w.Unknown = append(w.Unknown, strings.TrimPrefix(w.path()+"."+key, "."))
		}
	}
	if w.required && w.ignoreUnknown == 0 && (len(w.at) == 0 || w.at[0].name != "status") {
		w.checkRequired(of, fields, m)
	}
}

// checkRequired adds a fault for each required field that m lacks. A field is required if requiredFields
// contains it with the value true. A field that is missing there is required unless it has omitempty. Numbers
// and booleans are not checked, because a missing value means the zero value.
func (w *typeChecker) checkRequired(of reflect.Type, fields map[string]typeField, m map[string]any) {
	rules := w.types.requiredFields()[of]
	for name, f := range fields {
		demanded, known := rules[name]
		list, _ := m[name].([]any)
		empty := demanded && list != nil && len(list) == 0
		if v, set := m[name]; set && v != nil && v != "" && !empty || name == "status" || name == "metadata" {
			continue
		}
		at := step{".", name, ""}
		switch kind := f.of.Kind(); {
		case kind == reflect.Struct && !reflect.PointerTo(f.of).Implements(reflect.TypeFor[json.Unmarshaler]()):
			w.checkAt(at, f.of, map[string]any{}) // decoded as an empty struct
		case known && !demanded, !known && f.omitEmpty:
		case kind == reflect.String, kind == reflect.Slice, kind == reflect.Pointer:
			w.at = append(w.at, at)
			w.Missing = append(w.Missing, Fault{w.path(), "is required"})
			w.at = w.at[:len(w.at)-1]
		}
	}
}

// requiredText has a line for each tested field. The line begins with "+" if the API server rejects an object
// that lacks only this field, and with "-" if not. TestRequired of test/cluster compares the file with an API
// server. With -update, it writes the file.
//
//go:embed required.txt
var requiredText string

// requiredFields returns the content of requiredText, by Go type and field. The value is true if the API server
// demands the field in every tested object.
func (t *Types) requiredFields() map[reflect.Type]map[string]bool {
	if t.required != nil {
		return t.required
	}
	t.required = map[reflect.Type]map[string]bool{}
	for line := range strings.Lines(requiredText) {
		words := strings.Fields(line) // sign, apiVersion, kind, path
		path := strings.Split(words[3], ".")
		of, last := t.kind(words[1], words[2]), len(path)-1
		for _, step := range path[:last] {
			if of.Kind() == reflect.Struct { // otherwise a map, whose keys are no fields
				of = t.fieldsOf(of)[strings.TrimSuffix(step, "[]")].of
			}
			for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
				of = of.Elem()
			}
		}
		if t.required[of] == nil {
			t.required[of] = map[string]bool{}
		}
		always, seen := t.required[of][path[last]]
		t.required[of][path[last]] = words[0] == "+" && (always || !seen)
	}
	return t.required
}

func (w *typeChecker) checkList(of reflect.Type, v any) {
	if of.Elem().Kind() == reflect.Uint8 {
		text, ok := v.(string)
		if !ok {
			w.addTypeFault("text in base64", v)
		} else if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			w.addFault(err.Error())
		}
		return
	}
	list, ok := v.([]any)
	if !ok {
		w.addTypeFault("a list", v)
	}
	for i, e := range list {
		at := step{"[", strconv.Itoa(i), "]"}
		if e == nil && !w.isArguments() { // decoded as an object without key, or as an empty name
			w.at = append(w.at, at)
			w.addFault("expected " + map[bool]string{true: "an object", false: "a value"}[of.Elem().Kind() == reflect.Struct] + ", got null")
			w.at = w.at[:len(w.at)-1]
		}
		w.checkAt(at, of.Elem(), e)
	}
}

// isArguments reports whether the value being checked is a list of a container's arguments, which may be empty.
func (w *typeChecker) isArguments() bool {
	name := w.at[len(w.at)-1].name
	return name == "args" || name == "command"
}

func (w *typeChecker) checkScalar(kind reflect.Kind, v any) {
	switch kind {
	case reflect.String:
		if _, ok := v.(string); !ok {
			w.addTypeFault("a string", v)
		}
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			w.addTypeFault("a boolean", v)
		}
	case reflect.Float64:
		switch v.(type) {
		case int64, float64, json.Number:
		default:
			w.addTypeFault("a number", v)
		}
	default: // the API uses no other integer types
		name := w.at[len(w.at)-1].name
		w.checkInteger(kind == reflect.Int32, name == "port" || strings.HasSuffix(name, "Port"), v)
	}
}

func (w *typeChecker) checkInteger(small, port bool, v any) {
	var n float64
	switch v := v.(type) {
	case int64:
		n = float64(v)
	case float64:
		n = v
	default:
		w.addTypeFault("a whole number", v)
		return
	}
	if n != math.Trunc(n) || math.Abs(n) > math.MaxInt64 || small && (n < math.MinInt32 || n > math.MaxInt32) {
		w.addFault(fmt.Sprintf("expected a whole number in the range of the field, got %v", v))
	} else if small && port && (n < 0 || n > math.MaxUint16) {
		w.addFault(fmt.Sprintf("expected a port from 1 to 65535, got %v", v))
	}
}

// checkCustom checks a value whose type has its own UnmarshalJSON, which is not strict.
func (w *typeChecker) checkCustom(of reflect.Type, v any) {
	schema := reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()
	w.ignoreUnknown++
	defer func() { w.ignoreUnknown-- }()
	object, isObject := v.(map[string]any)
	switch list, isList := v.([]any); {
	case of == reflect.TypeFor[apiextensionsv1.JSON]():
	case isObject && (of == reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]() || of == reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]() || of == reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray]()):
		w.checkValue(schema, object)
	case isList && of == reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():
		w.checkValue(reflect.SliceOf(schema), list)
	default:
		data, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(data, reflect.New(of).Interface())
		}
		if err != nil {
			w.addFault(err.Error())
		}
	}
}
