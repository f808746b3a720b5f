package admit

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/quayside/quayside/internal/k8s"
)

// SecretRef is a reference to a Secret.
type SecretRef struct {
	Path            []string // of the field that refers to it; an element of a list has its index
	Namespace, Name string   // Namespace is empty for the namespace of the object
}

// SecretRefs returns the references to Secrets in an object of a built-in kind, and in the pods of a
// custom resource, in the order of their paths. They are found by the types and names of fields in
// the Go types.
func (t *Types) SecretRefs(o k8s.Object) []SecretRef {
	w := secretWalk{types: t}
	if of := t.kind(o.APIVersion(), o.Kind()); of != nil {
		w.fields(of, o, nil)
		return w.found
	}
	for _, p := range k8s.PodTemplates(o) {
		w.fields(reflect.TypeFor[corev1.PodSpec](), p.Spec, p.Path)
	}
	return w.found
}

type secretWalk struct {
	types *Types
	found []SecretRef
}

// fields looks up references in the fields of a struct.
func (w *secretWalk) fields(of reflect.Type, m map[string]any, path []string) {
	known := w.types.fieldsOf(of)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		field, ok := known[name]
		if !ok {
			continue
		}
		at := append(path[:len(path):len(path)], name)
		if text, is := m[name].(string); is && strings.HasSuffix(strings.ToLower(name), "secretname") {
			namespace, _ := m["secretNamespace"].(string)
			w.add(at, namespace, text)
			continue
		}
		w.value(field.of, m[name], name, at)
	}
}

// value looks up references in a value, which is in the field with this name.
func (w *secretWalk) value(of reflect.Type, v any, name string, path []string) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if of.Kind() == reflect.Slice {
				w.value(of.Elem(), e, name, append(path[:len(path):len(path)], strconv.Itoa(i)))
			}
		}
	case map[string]any:
		switch isReference := strings.HasSuffix(of.Name(), "Reference") && strings.Contains(strings.ToLower(name), "secret"); {
		case of.Kind() == reflect.Map:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				w.value(of.Elem(), v[key], name, append(path[:len(path):len(path)], key))
			}
		case of.Kind() != reflect.Struct:
		case isReference, strings.HasPrefix(of.Name(), "Secret") && of.PkgPath() == "k8s.io/api/core/v1":
			w.add(path, k8s.Text(v, "namespace"), k8s.Text(v, "name")+k8s.Text(v, "secretName"))
		default:
			w.fields(of, v, path)
		}
	}
}

func (w *secretWalk) add(path []string, namespace, name string) {
	if name != "" {
		w.found = append(w.found, SecretRef{path, namespace, name})
	}
}
