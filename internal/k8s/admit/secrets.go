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

// SecretRefs returns the references to Secrets in an object, in the order of their paths. In built-in kinds
// and in pods, it finds references by the types and names of fields in the Go types. In the rest of a custom
// resource, it finds references by the names of fields.
func (t *Types) SecretRefs(o k8s.Object) []SecretRef {
	w := secretWalk{types: t}
	if of := t.kind(o.APIVersion(), o.Kind()); of != nil {
		w.fields(of, o, nil)
		return w.found
	}
	pods := k8s.PodTemplates(o)
	for _, p := range pods {
		w.fields(reflect.TypeFor[corev1.PodSpec](), p.Spec, p.Path)
	}
	if !k8s.IsCRD(o) {
		w.custom(map[string]any(o), nil, pods)
	}
	return w.found
}

// custom looks up references in the fields of a custom resource, by their names: a text in a field
// called secretName, and a map with a name in a field whose name contains "secret". It omits pods.
func (w *secretWalk) custom(v any, path []string, pods []k8s.PodTemplate) {
	if slices.ContainsFunc(pods, func(p k8s.PodTemplate) bool { return slices.Equal(p.Path, path) }) {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := append(path[:len(path):len(path)], name)
			lower := strings.ToLower(name)
			text, isText := v[name].(string)
			ref, isMap := v[name].(map[string]any)
			switch {
			case isText && (strings.HasSuffix(lower, "secretname") || strings.HasSuffix(lower, "secretref")):
				w.add(at, "", text)
			case isMap && strings.Contains(lower, "secret") && k8s.Text(ref, "name") != "":
				w.add(at, k8s.Text(ref, "namespace"), k8s.Text(ref, "name"))
			}
			w.custom(v[name], at, pods)
		}
	case []any:
		for i, e := range v {
			w.custom(e, append(path[:len(path):len(path)], strconv.Itoa(i)), pods)
		}
	}
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

// value looks up references in a value. name is the name of the field that contains the value.
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
