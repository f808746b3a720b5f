package admit

import (
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/quayside/quayside/internal/k8s"
)

// Normal returns the normal form of an object, for comparisons. It is the canonical form (see Canonical)
// with the API server's defaults, and with one spelling of each field or value that has several spellings.
// Normal also converts the pods in a custom resource, but adds no defaults to them. It keeps unknown fields
// and values of a wrong type.
func (t *Types) Normal(o k8s.Object) k8s.Object {
	if k8s.IsCRD(o) {
		return normalCRD(o)
	}
	o = k8s.MapPods(t.Canonical(o), t.normalPod)
	if t.kind(o.APIVersion(), o.Kind()) == nil {
		return o
	}
	stored, err := t.Stored(o)
	if err != nil {
		return o
	}
	return fillMap(k8s.Without(o, "stringData"), k8s.MapPods(stored, t.normalPod)) // stringData is converted to data
}

// normalCRD returns a CRD with the defaults of spec.conversion and spec.names. It does not decode the
// schemas, which are large. It keeps the status, because the status has the versions of stored objects.
func normalCRD(crd k8s.Object) k8s.Object {
	if kind := k8s.Text(crd, "spec", "names", "kind"); kind != "" {
		names := fillMap(k8s.Map(crd, "spec", "names"), map[string]any{"singular": strings.ToLower(kind), "listKind": kind + "List"})
		crd = k8s.With(crd, any(names), "spec", "names")
	}
	conversion := k8s.At(crd, "spec", "conversion")
	ext, err := decodeDefinition(map[string]any{"spec": map[string]any{"conversion": conversion}})
	if err != nil || k8s.Map(crd, "spec") == nil {
		return crd
	}
	stored, err := toPlainJSON(ext)
	if err != nil {
		return crd
	}
	defaults := k8s.Map(stored, "spec", "conversion")
	if conversion != nil {
		return k8s.With(crd, fillValue(conversion, defaults), "spec", "conversion")
	}
	return k8s.With(crd, any(defaults), "spec", "conversion")
}

// normalPod returns a pod spec in the canonical form, with the name of its ServiceAccount in one field. The
// names of capabilities are spelled as by linuxCapabilities, because container runtimes accept several
// spellings.
func (t *Types) normalPod(pod map[string]any) map[string]any {
	out := (&canonicalizer{types: t}).object(reflect.TypeFor[corev1.PodSpec](), pod)
	if old, ok := out["serviceAccount"].(string); ok {
		if delete(out, "serviceAccount"); k8s.Text(out, "serviceAccountName") == "" {
			out["serviceAccountName"] = old
		}
	}
	for _, list := range k8s.ContainerLists() {
		for i, c := range k8s.List(out, list) {
			for _, field := range []string{"add", "drop"} {
				at := []string{"securityContext", "capabilities", field}
				m, _ := c.(map[string]any)
				if names := k8s.List(m, at...); names != nil {
					c = k8s.With(m, any(linuxCapabilities(names)), at...)
				}
			}
			out[list].([]any)[i] = c
		}
	}
	return out
}

// linuxCapabilities returns names of capabilities in upper case, without the prefix CAP_.
func linuxCapabilities(names []any) []any {
	out := make([]any, len(names))
	for i, name := range names {
		out[i] = name
		if text, ok := name.(string); ok {
			out[i] = strings.TrimPrefix(strings.ToUpper(text), "CAP_")
		}
	}
	return out
}

// fillMap returns a copy of m. It adds, at any depth, the fields in defaults that m lacks and that are not
// empty.
func fillMap[M ~map[string]any](m, defaults M) M {
	out := maps.Clone(m)
	for name, d := range defaults {
		if v, has := m[name]; has {
			out[name] = fillValue(v, d)
		} else if d = withoutEmpty(d); d != nil {
			out[name] = d
		}
	}
	return out
}

// withoutEmpty returns v without empty texts, maps and lists. It returns nil if nothing remains.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			if e = withoutEmpty(e); e != nil {
				out[name] = e
			}
		}
		if len(out) > 0 {
			return out
		}
		return nil
	case []any:
		if len(v) == 0 {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	}
	return v
}

func fillValue(v, defaults any) any {
	switch v := v.(type) {
	case map[string]any:
		if more, ok := defaults.(map[string]any); ok {
			return fillMap(v, more)
		}
	case []any:
		more, ok := defaults.([]any)
		if !ok || len(more) != len(v) {
			return v
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = fillValue(v[i], more[i])
		}
		return out
	case int64: // such as targetPort: 0
		if d, ok := defaults.(int64); ok && v == 0 {
			return d
		}
	}
	return v
}
