package bundle

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/yamlnode"
	"github.com/quayside/quayside/internal/k8s"
)

// maxNodes limits the values of one file after expansion of aliases.
const maxNodes = 4_000_000

// decodeDocuments decodes every non-empty document. The last value of a repeated key wins:
// some published bundles repeat keys.
func decodeDocuments(file string, data []byte) ([]map[string]any, error) {
	return yamlnode.Objects(file, data, yamlnode.Limits{Nodes: maxNodes, Repeated: true})
}

// decodeObjects decodes a file of YAML or JSON documents. It splits lists and skips empty
// documents. The error is a diag.List.
func decodeObjects(file string, data []byte) ([]Object, error) {
	docs, err := decodeDocuments(file, data)
	if err != nil {
		return nil, err
	}
	var errs diag.List
	var objects []Object
	for i, doc := range docs {
		if where, ok := mergeKey(doc); ok {
			at{file, i + 1, where}.faultf(&errs, "key %q, which YAML tools treat as a merge", "<<")
			continue
		}
		for _, item := range flatten(at{file, i + 1, ""}, doc, &errs) {
			objects = append(objects, Object{File: file, Document: len(objects), Object: item})
		}
	}
	return objects, errs.Err()
}

// at is a position in a manifest file: a field of a document.
type at struct {
	file     string
	document int    // from 1
	field    string // "items[2]"; empty: the document itself
}

func (a at) faultf(errs *diag.List, format string, args ...any) {
	where := fmt.Sprintf("document %d: ", a.document)
	if a.field != "" {
		where += a.field + ": "
	}
	errs.Addf(diag.Pos{File: a.file}, "%s%s", where, fmt.Sprintf(format, args...))
}

// flatten returns the objects of a list, including nested lists, and any other object
// unchanged. A list is any object with items and a kind that ends in List.
// This is kustomize's rule, and both must see the same objects.
func flatten(a at, m map[string]any, errs *diag.List) []map[string]any {
	kind := k8s.Text(m, "kind")
	value, listed := m["items"]
	items, ok := value.([]any)
	switch {
	case !strings.HasSuffix(kind, "List"):
		podPath(a, kind, m, errs)
		return []map[string]any{m}
	case listed && !ok:
		at{a.file, a.document, diag.Member(a.field, "items")}.faultf(errs, "want a list of objects, got %s", k8s.TypeName(value))
		return nil
	case kind == "ResourceList", kind == "List" && !listed:
		a.faultf(errs, "a %s is not an object of a cluster", kind)
		return nil
	case !listed:
		return []map[string]any{m}
	}
	var out []map[string]any
	for i, item := range items {
		here := at{a.file, a.document, diag.Item(diag.Member(a.field, "items"), i)}
		if m, ok := item.(map[string]any); ok {
			out = append(out, flatten(here, m, errs)...)
		} else {
			here.faultf(errs, "not an object")
		}
	}
	return out
}

// podPath refuses values other than objects on the path to a pod's spec. kustomize selects
// these paths only by kind, regardless of the API group (its namereference.go), and fails to build
// a tree with any other value there.
func podPath(a at, kind string, m map[string]any, errs *diag.List) {
	var path []string
	switch kind {
	case "Pod":
		path = []string{"spec"}
	case "PodTemplate":
		path = []string{"template", "spec"}
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job":
		path = []string{"spec", "template", "spec"}
	case "CronJob":
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	for _, field := range path {
		a.field = diag.Member(a.field, field)
		value, ok := m[field]
		if !ok || value == nil {
			return
		}
		if m, ok = value.(map[string]any); !ok {
			a.faultf(errs, "want an object, got %s", k8s.TypeName(value))
			return
		}
	}
}

// mergeKey returns the first path with a remaining key "<<" in a decoded value. A second
// decoder would interpret the key as a merge, quoted or not.
func mergeKey(v any) (place string, found bool) {
	first := func(where string) {
		if !found || where < place {
			place, found = where, true
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			if key == "<<" {
				first(key)
			} else if where, ok := mergeKey(e); ok {
				first(key + "." + where)
			}
		}
	case []any:
		for i, e := range v {
			if where, ok := mergeKey(e); ok {
				first(diag.Item("", i) + "." + where)
			}
		}
	}
	return place, found
}
