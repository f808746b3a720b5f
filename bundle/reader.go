package bundle

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
)

// reader extracts typed fields from decoded YAML. For a value of a wrong type it adds a fault with
// file and field, and returns the zero value.
type reader struct {
	file          string
	errs          *diag.List
	types         *admit.Types
	fieldWarnings []diag.Warning // warnings about unknown fields, from readTyped
}

func (r *reader) pos() diag.Pos { return diag.Pos{File: r.file} }

func (r *reader) addTypeFault(field, want string, got any) {
	r.errs.Addf(r.pos(), "%s: expected %s, got %s", field, want, k8s.TypeName(got))
}

// fieldOf returns the field m[key] as a T, or the zero value if the field is missing or null. at is the path
// of m for messages. want describes the expected type, such as "a whole number".
func fieldOf[T any](r *reader, m map[string]any, at, key, want string) T {
	v, ok := m[key].(T)
	if !ok && m[key] != nil {
		r.addTypeFault(diag.Member(at, key), want, m[key])
	}
	return v
}

func (r *reader) str(m map[string]any, at, key string) string {
	return fieldOf[string](r, m, at, key, "a string")
}

func (r *reader) object(m map[string]any, at, key string) map[string]any {
	return fieldOf[map[string]any](r, m, at, key, "an object")
}

func (r *reader) list(m map[string]any, at, key string) []any {
	return fieldOf[[]any](r, m, at, key, "a list")
}

func (r *reader) integer(m map[string]any, at, key string) int64 {
	return fieldOf[int64](r, m, at, key, "a whole number")
}

func (r *reader) flag(m map[string]any, at, key string) bool {
	return fieldOf[bool](r, m, at, key, "a boolean")
}

// texts returns the field m[key], a list of strings.
func (r *reader) texts(m map[string]any, at, key string) []string {
	var out []string
	for i, v := range r.list(m, at, key) {
		s, ok := v.(string)
		if !ok {
			r.addTypeFault(diag.Item(diag.Member(at, key), i), "a string", v)
			continue
		}
		out = append(out, s)
	}
	return out
}

// strings returns the field m[key], a map of strings. The result is never nil. Values that YAML
// decodes as other scalars are converted.
func (r *reader) strings(m map[string]any, at, key string) map[string]string {
	fields := r.object(m, at, key)
	out := make(map[string]string, len(fields))
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		switch v := fields[k].(type) {
		case string:
			out[k] = v
		case nil:
			out[k] = ""
		case []any, map[string]any:
			r.errs.Addf(r.pos(), "%s[%q]: expected a string, got %s", diag.Member(at, key), k, k8s.TypeName(v))
		default:
			out[k] = fmt.Sprint(v)
		}
	}
	return out
}

// readTyped returns value without fields that are unknown to its API type. It adds a warning for
// each dropped field, and a fault for each value of a wrong type.
func readTyped[V any](r *reader, part admit.Part, value V, at string) V {
	value, shape := admit.PrunePart(r.types, part, value, at)
	for _, f := range shape.Wrong {
		r.errs.Addf(r.pos(), "%s: %s", f.Field, f.Message)
	}
	for _, field := range shape.Unknown {
		r.fieldWarnings = append(r.fieldWarnings, diag.Warning{Pos: r.pos(), Code: "unknown-field-dropped", Msg: fmt.Sprintf(
			"%s is dropped: neither the API nor OLM has this field", field)})
	}
	return value
}

// objects calls the function each for every object in the list m[key]. The argument at is the object's field path.
func (r *reader) objects(m map[string]any, at, key string, each func(at string, fields map[string]any)) {
	for i, v := range r.list(m, at, key) {
		here := diag.Item(diag.Member(at, key), i)
		fields, ok := v.(map[string]any)
		if !ok {
			r.addTypeFault(here, "an object", v)
			continue
		}
		each(here, fields)
	}
}
