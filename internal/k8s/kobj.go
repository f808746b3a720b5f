// Package k8s handles Kubernetes objects without Go types: keys, built-in kinds, CRDs, label selectors,
// permissions of subjects, and Pod Security levels. The rules are the same as in Kubernetes.
//
// An object is decoded YAML or JSON, in which any field may be missing or of a wrong type. For such a field,
// getters return the zero value. Getters never fail. Functions that change an object return a changed copy,
// so objects can share parts. The package does not depend on operators and does not access clusters. It never
// guesses permissions. A binding to an unknown role becomes a grant with only the name of the role. A role is
// known if it is given or built in.
//
// Start from [Object], [Text] and [Items]. For kinds, start from [KindFaults], [ParseCRD] and [IsReserved].
// For permissions, start from [NewPermissions]. For selectors, start from [SelectorOf].
package k8s

import (
	"maps"
	"slices"
)

// At returns the value at a path of keys, or nil if it does not exist.
func At(m map[string]any, path ...string) any {
	if len(path) == 0 {
		return m
	}
	return Map(m, path[:len(path)-1]...)[path[len(path)-1]]
}

// Map returns the map at a path of keys, or nil if there is none.
func Map(m map[string]any, path ...string) map[string]any {
	for _, key := range path {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// Text returns the string at a path of keys, or "" if there is none.
func Text(m map[string]any, path ...string) string {
	s, _ := At(m, path...).(string)
	return s
}

// True reports whether the value at a path of keys is true.
func True(m map[string]any, path ...string) bool { return At(m, path...) == true }

// List returns the list at a path of keys, or nil if there is none.
func List(m map[string]any, path ...string) []any {
	list, _ := At(m, path...).([]any)
	return list
}

// Items returns the maps in the list at a path of keys. Elements of other types are omitted.
func Items(m map[string]any, path ...string) []map[string]any {
	return filterType[map[string]any](List(m, path...))
}

// Texts returns the strings in the list at a path of keys. Elements of other types are omitted.
func Texts(m map[string]any, path ...string) []string { return filterType[string](List(m, path...)) }

func filterType[T any](list []any) []T {
	out := make([]T, 0, len(list))
	for _, v := range list {
		if t, ok := v.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

// TextMap returns the map at a path of keys as a map of strings. A value of another type becomes
// "".
func TextMap(m map[string]any, path ...string) map[string]string {
	in := Map(m, path...)
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[k], _ = v.(string)
	}
	return out
}

// Ensure returns the map at a path of keys. If it is missing, Ensure adds it to m.
func Ensure(m map[string]any, path ...string) map[string]any {
	for _, key := range path {
		next, ok := m[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[key] = next
		}
		m = next
	}
	return m
}

// With returns a copy of m in which the value at a path of keys is v. Only the maps on the path are
// copied.
func With[M ~map[string]any](m M, v any, path ...string) M {
	out := maps.Clone(m)
	if out == nil {
		out = M{}
	}
	if len(path) > 1 {
		v = With(Map(m, path[0]), v, path[1:]...)
	}
	out[path[0]] = v
	return out
}

// Merge returns a map with the fields of both maps. It merges two mappings with the same key. In other cases,
// the field of over takes precedence. The result is never nil, and shares values with both arguments.
func Merge(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range over {
		a, aOK := out[k].(map[string]any)
		b, bOK := v.(map[string]any)
		if aOK && bOK {
			v = Merge(a, b)
		}
		out[k] = v
	}
	return out
}

// Without returns a copy of m without the value at a path of keys. If there is no value, it returns
// m.
func Without[M ~map[string]any](m M, path ...string) M {
	above, last := path[:len(path)-1], path[len(path)-1]
	parent := Map(m, above...)
	if _, ok := parent[last]; !ok {
		return m
	}
	parent = maps.Clone(parent)
	delete(parent, last)
	if len(above) == 0 {
		return parent
	}
	return With(m, any(parent), above...)
}

// Copy returns a deep copy of a value.
func Copy[T any](v T) T { return deepCopy(v).(T) }

func deepCopy(v any) any {
	switch v := v.(type) {
	case Object:
		return Object(deepCopy(map[string]any(v)).(map[string]any))
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = deepCopy(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = deepCopy(e)
		}
		return out
	default:
		return v
	}
}

// Equal reports whether two decoded values are equal. Numbers of different Go types are not equal.
func Equal(a, b any) bool {
	if o, ok := a.(Object); ok {
		a = map[string]any(o)
	}
	if o, ok := b.(Object); ok {
		b = map[string]any(o)
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, Equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

// Values returns strings as a []any.
func Values(in ...string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}

// TypeName returns the type of a decoded value for messages, such as "a list".
func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
