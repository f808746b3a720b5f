package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/quayside/quayside/internal/admit"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
)

// reader takes typed values out of decoded maps. A value of the wrong type is
// a fault that names file and field; the reader goes on with the zero value.
type reader struct {
	file    string
	errs    *diag.List
	types   *admit.Types
	dropped []diag.Warning // what typed left out
}

func (r *reader) pos() diag.Pos { return diag.Pos{File: r.file} }

func (r *reader) wrong(field, want string, got any) {
	r.errs.Addf(r.pos(), "%s: want %s, got %s", field, want, kobj.TypeName(got))
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

func index(at string, i int) string { return at + "[" + strconv.Itoa(i) + "]" }

// fieldOf returns a field of the type that want names, its zero value where it is
// absent or null.
func fieldOf[T any](r *reader, m map[string]any, at, key, want string) T {
	v, ok := m[key].(T)
	if !ok && m[key] != nil {
		r.wrong(join(at, key), want, m[key])
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

func (r *reader) whole(m map[string]any, at, key string) int64 {
	return fieldOf[int64](r, m, at, key, "a whole number")
}

func (r *reader) flag(m map[string]any, at, key string) bool {
	return fieldOf[bool](r, m, at, key, "a boolean")
}

// texts returns a list of strings.
func (r *reader) texts(m map[string]any, at, key string) []string {
	var out []string
	for i, v := range r.list(m, at, key) {
		s, ok := v.(string)
		if !ok {
			r.wrong(index(join(at, key), i), "a string", v)
			continue
		}
		out = append(out, s)
	}
	return out
}

// strings returns a map of strings, never nil. Scalars that YAML did not read
// as strings are spelled as they were meant.
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
			r.errs.Addf(r.pos(), "%s[%q]: want a string, got %s", join(at, key), k, kobj.TypeName(v))
		default:
			out[k] = fmt.Sprint(v)
		}
	}
	return out
}

// typed returns a value without what its type does not know.
func typed[V any](r *reader, part admit.Part, value V, at string) V {
	value, shape := admit.Read(r.types, part, value, at)
	for _, f := range shape.Wrong {
		r.errs.Addf(r.pos(), "%s: %s", f.Field, f.Message)
	}
	for _, field := range shape.Unknown {
		r.dropped = append(r.dropped, diag.Warning{Pos: r.pos(), Code: "unknown-field-dropped", Msg: fmt.Sprintf(
			"%s is left out, for the API knows no such field, and neither does OLM", field)})
	}
	return value
}

// objects calls each for the objects of a list, with the field's path.
func (r *reader) objects(m map[string]any, at, key string, each func(at string, fields map[string]any)) {
	for i, v := range r.list(m, at, key) {
		here := index(join(at, key), i)
		fields, ok := v.(map[string]any)
		if !ok {
			r.wrong(here, "an object", v)
			continue
		}
		each(here, fields)
	}
}
