package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quayside/quayside/test/cluster/harness"
)

// filler creates custom resources from the schema of a CRD. If the API server rejects fields of an object, the
// filler replaces or removes these fields until the API server accepts the object.
type filler struct {
	applier *harness.Applier
	kind    schema.GroupVersionKind
	scoped  bool
	schema  map[string]any // of the version
	full    bool           // all fields, not only the required ones
	tries   map[string]int // replacements, by path
	object  map[string]any
}

// newFiller returns a filler for the storage version of a CRD.
func newFiller(a *harness.Applier, crd *unstructured.Unstructured, full bool) *filler {
	f := &filler{applier: a, full: full, tries: map[string]int{}}
	f.kind.Group, _, _ = unstructured.NestedString(crd.Object, "spec", "group")
	f.kind.Kind, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "kind")
	f.kind.Version = storageVersion(crd)
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	f.scoped = scope == "Namespaced"
	f.schema = schemaOf(crd, f.kind.Version)
	return f
}

// schemaOf returns the schema of a version of a CRD.
func schemaOf(crd *unstructured.Unstructured, version string) map[string]any {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		fields, _ := v.(map[string]any)
		if fields["name"] == version {
			found, _, _ := unstructured.NestedMap(fields, "schema", "openAPIV3Schema")
			return found
		}
	}
	return nil
}

// create creates an object with a name, and returns the stored object. If the API server rejects all attempts,
// it returns nil and the last reason.
func (f *filler) create(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	f.object = map[string]any{}
	properties, _ := f.schema["properties"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if key == "apiVersion" || key == "kind" || key == "metadata" || key == "status" || !f.full && !isRequired(f.schema, key) && key != "spec" {
			continue
		}
		f.object[key] = f.value(asSchema(properties[key]), f.full, 0)
	}
	if f.schema["x-kubernetes-preserve-unknown-fields"] == true && f.full {
		f.object["unknown"] = "kept"
	}
	var reason error
	for range 200 {
		o := f.named(namespace, name)
		if reason = f.applier.TryCreate(ctx, o); reason == nil {
			return f.createWithStatus(ctx, o)
		}
		if !f.repair(reason) {
			return nil, reason
		}
	}
	return nil, reason
}

// createWithStatus creates an object and sets its status, unless the API server rejects the status.
func (f *filler) createWithStatus(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	stored, err := f.applier.Create(ctx, o)
	properties, _ := f.schema["properties"].(map[string]any)
	status, _ := f.value(asSchema(properties["status"]), true, 0).(map[string]any)
	if err != nil || !f.full || len(status) == 0 || f.applier.SetStatus(ctx, o, status) != nil {
		return stored, err
	}
	return f.applier.Get(ctx, o)
}

func (f *filler) named(namespace, name string) *unstructured.Unstructured {
	o := (&unstructured.Unstructured{Object: f.object}).DeepCopy()
	o.SetGroupVersionKind(f.kind)
	o.SetName(name)
	if f.scoped {
		o.SetNamespace(namespace)
	}
	return o
}

// repair changes the rejected fields. It returns false if nothing can be changed.
func (f *filler) repair(reason error) bool {
	var status *apierrors.StatusError
	if !errors.As(reason, &status) || status.ErrStatus.Details == nil {
		return false
	}
	changed := false
	for _, cause := range status.ErrStatus.Details.Causes {
		path := splitPath(causeField(cause))
		if len(path) == 0 || path[0] == "metadata" {
			continue
		}
		if strings.Contains(cause.Message, "Required value") && len(path) > 1 {
			path = path[:len(path)-1]
		}
		changed = f.replace(path) || changed
	}
	return changed
}

// replace replaces the value at a path by the next candidate, or removes it if no candidate is left. Only mappings
// have candidates: first the required fields alone, and then the required fields with one other field in turn.
func (f *filler) replace(path []string) bool {
	key := strings.Join(path, "\x00")
	n := f.tries[key]
	f.tries[key]++
	at := f.schema
	for _, p := range path {
		at = childSchema(at, p)
	}
	properties, _ := at["properties"].(map[string]any)
	var optional []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !isRequired(at, name) {
			optional = append(optional, name)
		}
	}
	if len(properties) == 0 || n > len(optional) || n > 40 {
		return setAt(f.object, path, nil)
	}
	v, _ := f.value(at, false, len(path)).(map[string]any)
	if n > 0 {
		v[optional[n-1]] = f.value(asSchema(properties[optional[n-1]]), false, len(path)+1)
	}
	return setAt(f.object, path, v)
}

// value returns a value for a schema, or nil.
func (f *filler) value(s map[string]any, full bool, depth int) any {
	if list, _ := s["enum"].([]any); len(list) > 0 {
		return list[0]
	}
	if s["x-kubernetes-int-or-string"] == true {
		return int64(1)
	}
	switch s["type"] {
	case "object":
		return f.mapping(s, full, depth)
	case "array":
		item := f.value(asSchema(s["items"]), full, depth+1)
		n := 1
		if m, ok := number(s["minItems"]); ok {
			n = max(1, int(m))
		}
		return slices.Repeat([]any{item}, n)
	case "string":
		return text(s)
	case "boolean":
		return true
	case "integer":
		return int64(bounded(s))
	case "number":
		return bounded(s)
	}
	if s["x-kubernetes-preserve-unknown-fields"] == true {
		return map[string]any{"unknown": "kept"}
	}
	return nil
}

// mapping returns an object for a schema.
func (f *filler) mapping(s map[string]any, full bool, depth int) any {
	out := map[string]any{}
	if s["x-kubernetes-embedded-resource"] == true {
		out = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "embedded"}}
	}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if isRequired(s, name) || full && depth < 14 {
			if v := f.value(asSchema(properties[name]), full, depth+1); v != nil && out[name] == nil {
				out[name] = v
			}
		}
	}
	if more := asSchema(s["additionalProperties"]); len(more) > 0 && full {
		out["key"] = f.value(more, full, depth+1)
	}
	if s["x-kubernetes-preserve-unknown-fields"] == true && full {
		out["unknown"] = "kept"
	}
	return out
}

// text returns a string for a schema. A string that does not match the schema's pattern is rejected by the API server.
func text(s map[string]any) string {
	candidates := []string{"a", "1", "1s", "1h0m0s", "1Gi", "100m", "http://example.com", "https://example.com/a", "a.example.com", "a/b", "/a", "A", "a:1", "10.0.0.1", "10.0.0.0/8", "1.2.3", "v1.2.3", "abcdefgh", "true", "2024-01-01T00:00:00Z", "s3://a/b", "10%", "a=b", "* * * * *", "sha256:" + strings.Repeat("a", 64), "registry.example.com/a:1"}
	switch s["format"] {
	case "date-time":
		return "2024-01-01T00:00:00Z"
	case "date":
		return "2024-01-01"
	case "byte":
		return "YQ=="
	case "duration":
		return "1s"
	case "uri":
		return "https://example.com/a"
	case "uuid":
		return "00000000-0000-0000-0000-000000000001"
	case "ipv4":
		return "10.0.0.1"
	case "email":
		return "a@example.com"
	case "cidr":
		return "10.0.0.0/8"
	}
	least, _ := number(s["minLength"])
	pattern, _ := s["pattern"].(string)
	matches, err := regexp.Compile(pattern)
	for _, c := range candidates {
		if err == nil && matches.MatchString(c) && len(c) >= int(least) {
			return c
		}
	}
	return strings.Repeat("a", max(1, int(least)))
}

// bounded returns a number within the bounds of a schema.
func bounded(s map[string]any) float64 {
	out := 1.0
	if least, ok := number(s["minimum"]); ok && least > out {
		out = least
	}
	if most, ok := number(s["maximum"]); ok && most < out {
		out = most
	}
	return out
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func asSchema(v any) map[string]any { m, _ := v.(map[string]any); return m }

func isRequired(s map[string]any, name string) bool {
	list, _ := s["required"].([]any)
	return slices.Contains(list, any(name))
}

// childSchema returns the schema of the field key in a mapping, or of an item in a list.
func childSchema(s map[string]any, key string) map[string]any {
	if properties, _ := s["properties"].(map[string]any); properties[key] != nil {
		return asSchema(properties[key])
	}
	if items := asSchema(s["items"]); len(items) > 0 {
		return items
	}
	return asSchema(s["additionalProperties"])
}

// causeField returns the field that the API server rejects. If a oneOf is violated, only the message names the
// field.
func causeField(c metav1.StatusCause) string {
	if c.Field != "<nil>" {
		return c.Field
	}
	if found := regexp.MustCompile(`"([a-zA-Z][^" ]*)" must `).FindStringSubmatch(c.Message); found != nil {
		return found[1]
	}
	return ""
}

// splitPath splits a field path of the API server, such as spec.a[0].b or spec.labels[app].
func splitPath(field string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(field, "[", "."), func(r rune) bool { return r == '.' || r == ']' })
}

// setAt sets the value at a path, or removes it if the value is nil. It returns false if the path does not
// exist.
func setAt(in any, path []string, value any) bool {
	last := len(path) == 1
	switch x := in.(type) {
	case map[string]any:
		if _, ok := x[path[0]]; !ok {
			return false
		}
		if !last {
			if i, err := strconv.Atoi(path[1]); err == nil && len(path) == 2 && value == nil && i >= 0 {
				delete(x, path[0]) // the list, because its only item is rejected
				return true
			}
			return setAt(x[path[0]], path[1:], value)
		}
		if value == nil {
			delete(x, path[0])
		} else {
			x[path[0]] = value
		}
		return true
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(x) {
			return false
		}
		if last {
			x[i] = value
			return true
		}
		return setAt(x[i], path[1:], value)
	}
	return false
}

// describe returns the kind and version, for messages.
func (f *filler) describe() string { return fmt.Sprintf("%s/%s", f.kind.GroupKind(), f.kind.Version) }
