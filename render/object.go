package render

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Object is a Kubernetes object: string, bool, int64, float64, json.Number,
// nil, []any and map[string]any. Functions that change one change a copy.
type Object map[string]any

// APIVersion returns apiVersion.
func (o Object) APIVersion() string { return str(o, "apiVersion") }

// Kind returns kind.
func (o Object) Kind() string { return str(o, "kind") }

// Group returns the API group, "" for the core group.
func (o Object) Group() string {
	if group, _, ok := strings.Cut(o.APIVersion(), "/"); ok {
		return group
	}
	return ""
}

// Name returns metadata.name.
func (o Object) Name() string { return str(sub(o, "metadata"), "name") }

// Namespace returns metadata.namespace, "" for a cluster-scoped object.
func (o Object) Namespace() string { return str(sub(o, "metadata"), "namespace") }

// Is reports whether o is of the group and kind, whatever the version.
func (o Object) Is(group, kind string) bool { return o.Kind() == kind && o.Group() == group }

// Key names an object within a cluster.
type Key struct{ Group, Kind, Namespace, Name string }

// Key returns what identifies o.
func (o Object) Key() Key { return Key{o.Group(), o.Kind(), o.Namespace(), o.Name()} }

// String returns "Kind namespace/name", with the group where there is one.
func (k Key) String() string {
	kind, name := k.Kind, k.Name
	if k.Group != "" {
		kind += "." + k.Group
	}
	if k.Namespace != "" {
		name = k.Namespace + "/" + name
	}
	return kind + " " + name
}

// Compare orders by kind, group, namespace, name.
func (k Key) Compare(l Key) int {
	return cmp.Or(strings.Compare(k.Kind, l.Kind), strings.Compare(k.Group, l.Group),
		strings.Compare(k.Namespace, l.Namespace), strings.Compare(k.Name, l.Name))
}

// sub returns the object at a path of keys, nil where there is none.
func sub(m map[string]any, path ...string) map[string]any {
	for _, key := range path {
		m, _ = m[key].(map[string]any)
	}
	return m
}

func str(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// items returns the objects of the list at key.
func items(m map[string]any, key string) []map[string]any {
	list, _ := m[key].([]any)
	out := make([]map[string]any, 0, len(list))
	for _, v := range list {
		if item, ok := v.(map[string]any); ok {
			out = append(out, item)
		}
	}
	return out
}

// with returns a copy of m in which the value at the path of keys is v. Only
// the maps on the path are copied.
func with(m map[string]any, v any, path ...string) map[string]any {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]any{}
	}
	if len(path) == 1 {
		out[path[0]] = v
		return out
	}
	out[path[0]] = with(sub(m, path[0]), v, path[1:]...)
	return out
}

// without returns a copy of m without the value at the path of keys.
func without(m map[string]any, path ...string) map[string]any {
	parent := sub(m, path[:len(path)-1]...)
	last := path[len(path)-1]
	if _, ok := parent[last]; !ok {
		return m
	}
	parent = maps.Clone(parent)
	delete(parent, last)
	if len(path) == 1 {
		return parent
	}
	return with(m, parent, path[:len(path)-1]...)
}

// deepCopy returns a copy that shares no map and no list with v.
func deepCopy[T any](v T) T {
	return copyAny(any(v)).(T)
}

func copyAny(v any) any {
	switch v := v.(type) {
	case Object:
		return Object(copyAny(map[string]any(v)).(map[string]any))
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = copyAny(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = copyAny(e)
		}
		return out
	default:
		return v
	}
}

// equal reports whether two decoded values are the same.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	default:
		switch b.(type) {
		case map[string]any, []any:
			return false
		}
		return a == b
	}
}

// texts returns strings as a list of values.
func texts(in ...string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}

// values returns a map of strings as a map of values.
func values(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}

// newObject returns an object with its head filled in. An empty namespace
// stays out.
func newObject(apiVersion, kind, namespace, name string) Object {
	meta := map[string]any{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return Object{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
}

// annotate returns a copy of o with more annotations; those that are there win.
func annotate(o Object, more map[string]string) Object { return meta(o, "annotations", more) }

// label returns a copy of o with more labels; those that are there win.
func label(o Object, more map[string]string) Object { return meta(o, "labels", more) }

func meta(o Object, field string, more map[string]string) Object {
	merged := values(more)
	maps.Copy(merged, sub(o, "metadata", field))
	if len(merged) == 0 {
		return o
	}
	return with(o, merged, "metadata", field)
}
