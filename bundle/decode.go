package bundle

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// maxNodes is the maximum number of YAML nodes in a file after expansion of aliases.
const maxNodes = 4_000_000

// decodeDocuments decodes the non-empty documents of a file. If a key is repeated, the last value
// wins: some published bundles repeat keys.
func decodeDocuments(file string, data []byte) ([]map[string]any, error) {
	return yamlnode.Objects(file, data, yamlnode.Limits{Nodes: maxNodes, Repeated: true})
}

// decodeObjects decodes a file of YAML or JSON documents. It splits Lists and skips empty
// documents. The error is a diag.List.
func decodeObjects(file string, data []byte) ([]ManifestObject, error) {
	docs, err := decodeDocuments(file, data)
	if err != nil {
		return nil, err
	}
	var errs diag.List
	var objects []ManifestObject
	for i, doc := range docs {
		if where, ok := findMergeKey(doc); ok {
			fieldPosition{file, i + 1, where}.faultf(&errs, "key %q is a YAML merge key, which is not supported in manifests", "<<")
			continue
		}
		for _, item := range flatten(fieldPosition{file, i + 1, ""}, doc, &errs) {
			objects = append(objects, ManifestObject{File: file, Document: len(objects), Object: item})
		}
	}
	return objects, errs.Err()
}

// fieldPosition is a position in a manifest file: a field of a document.
type fieldPosition struct {
	file     string
	document int    // from 1
	field    string // "items[2]"; empty for the document itself
}

func (a fieldPosition) faultf(errs *diag.List, format string, args ...any) {
	where := fmt.Sprintf("document %d: ", a.document)
	if a.field != "" {
		where += a.field + ": "
	}
	errs.Addf(diag.Pos{File: a.file}, "%s%s", where, fmt.Sprintf(format, args...))
}

// flatten returns the objects in a List and in its nested Lists. For any other object, it returns only this
// object. An object is a List if it has items and its kind ends in List. kustomize has the same rule: both
// programs must find the same objects.
func flatten(a fieldPosition, m map[string]any, errs *diag.List) []map[string]any {
	kind := k8s.Text(m, "kind")
	value, listed := m["items"]
	items, ok := value.([]any)
	switch {
	case !strings.HasSuffix(kind, "List"):
		checkPodPath(a, kind, m, errs)
		return []map[string]any{m}
	case listed && !ok:
		fieldPosition{a.file, a.document, diag.Member(a.field, "items")}.faultf(errs, "expected a list of objects, got %s", k8s.TypeName(value))
		return nil
	case kind == "ResourceList", kind == "List" && !listed:
		a.faultf(errs, "%s is not a Kubernetes object", kind)
		return nil
	case !listed:
		return []map[string]any{m}
	}
	var out []map[string]any
	for i, item := range items {
		here := fieldPosition{a.file, a.document, diag.Item(diag.Member(a.field, "items"), i)}
		if m, ok := item.(map[string]any); ok {
			out = append(out, flatten(here, m, errs)...)
		} else {
			here.faultf(errs, "not an object")
		}
	}
	return out
}

// checkPodPath adds a fault if a field on the path to an object's pod spec is not itself an object. kustomize
// follows this path in all objects of the kind, in any API group (see its namereference.go), and fails at a
// string or a list.
func checkPodPath(a fieldPosition, kind string, m map[string]any, errs *diag.List) {
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
			a.faultf(errs, "expected an object, got %s", k8s.TypeName(value))
			return
		}
	}
}

// findMergeKey returns the path of the first YAML merge key "<<" in a decoded value. found is false if there is
// no such key. Other YAML decoders would interpret such a key in the rendered output as a merge, even if the
// key is quoted.
func findMergeKey(v any) (place string, found bool) {
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
			} else if where, ok := findMergeKey(e); ok {
				first(key + "." + where)
			}
		}
	case []any:
		for i, e := range v {
			if where, ok := findMergeKey(e); ok {
				first(diag.Item("", i) + "." + where)
			}
		}
	}
	return place, found
}
