package overlay

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Edit is a JSON patch in a kustomization with a single Deployment as its target.
type Edit struct {
	Key   k8s.Key
	patch types.Patch
	ops   []op
	types *admit.Types
}

// op is one operation of a JSON patch.
type op struct {
	name  string // "add", "replace" or "remove"
	path  []string
	value any
}

// maxOps is the maximum number of operations of one patch. Each operation copies the value that it
// changes.
const maxOps = 1000

// parseTargets returns the targets of patches. It returns nil unless each patch has exactly one
// Deployment as its target.
func parseTargets(patches []types.Patch) []Edit {
	var out []Edit
	for _, p := range patches {
		if p.Target == nil || p.Options != nil {
			return nil
		}
		name := strings.ReplaceAll(p.Target.Name, `\.`, ".")
		key := k8s.Key{Group: p.Target.Group, Kind: p.Target.Kind, Namespace: p.Target.Namespace, Name: name}
		plain := *p.Target
		plain.Group, plain.Version, plain.Kind, plain.Namespace, plain.Name = "", "", "", "", ""
		literal := regexp.QuoteMeta(name) == p.Target.Name && regexp.QuoteMeta(key.Namespace) == key.Namespace
		// In kustomize, an object without a namespace also matches the namespace "default".
		if plain != (types.Selector{}) || !literal || name == "" || key.Namespace == "" || key.Namespace == "default" ||
			key.Group != "apps" || p.Target.Version != "v1" || key.Kind != "Deployment" {
			return nil
		}
		out = append(out, Edit{Key: key, patch: p})
	}
	return out
}

// Edits returns the changes that building o makes to the listed objects, in order. It
// returns false if the build makes other changes, or if only kustomize can determine the changes.
func (o *Overlay) Edits() ([]Edit, bool) {
	var out []Edit
	plain := true
	o.visitChildrenFirst(map[*Overlay]bool{}, func(k *Overlay) {
		if !plain || k.onlyLists {
			return
		}
		if plain = k.targets != nil && k.fileCount == o.fileCount; !plain {
			return
		}
		for _, e := range k.targets {
			text := []byte(e.patch.Patch)
			if e.patch.Path != "" {
				text = k.ownFiles[k.path(e.patch.Path)]
			}
			var ok bool
			e.ops, ok = parseOperations(text)
			e.types, plain = o.types, plain && ok
			out = append(out, e)
		}
	})
	return out, plain
}

// parseOperations parses a JSON patch. It returns false if it does not support one of the
// operations.
func parseOperations(text []byte) ([]op, bool) {
	list, ok := decodeList(text)
	if !ok || len(list) == 0 || len(list) > maxOps {
		return nil, false
	}
	out := make([]op, len(list))
	for i, v := range list {
		if out[i], ok = parseOperation(v); !ok {
			return nil, false
		}
	}
	return out, true
}

// parseOperation parses an operation that changes the spec of an object, or an annotation without a
// meaning for kustomize. It returns false for any other operation.
func parseOperation(v any) (op, bool) {
	operation, _ := v.(map[string]any)
	x := op{name: k8s.Text(operation, "op"), path: strings.Split(k8s.Text(operation, "path"), "/")}
	value, has := operation["value"]
	x.value = value
	if !slices.Contains([]string{"add", "replace", "remove"}, x.name) || x.name != "remove" && !isPlainValue(value) {
		return op{}, false
	}
	if known := len(operation) == 2 || len(operation) == 3 && has; !known || len(x.path) < 3 || x.path[0] != "" {
		return op{}, false
	}
	x.path = x.path[1:]
	for i, step := range x.path {
		x.path[i] = unescapeStep(step)
	}
	if x.path[0] == "spec" {
		return x, true
	}
	_, isText := value.(string)
	annotation := len(x.path) == 3 && x.path[0] == "metadata" && x.path[1] == "annotations"
	return x, annotation && isText && x.name != "remove" && !strings.Contains(x.path[2], "k8s.io") && !strings.Contains(x.path[2], "kubernetes.io")
}

// unescapeStep returns one step of a JSON pointer with its escapes replaced.
func unescapeStep(step string) string {
	return strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
}

// decodeList decodes a YAML list. It returns false for anything else.
func decodeList(text []byte) ([]any, bool) {
	docs, err := yamlnode.Objects("", slices.Concat([]byte("list:\n"), text), yamlnode.Limits{})
	if err != nil || len(docs) != 1 || len(docs[0]) != 1 {
		return nil, false
	}
	list, ok := docs[0]["list"].([]any)
	return list, ok
}

// isPlainValue reports whether v contains neither null nor a number of another type than int64.
func isPlainValue(v any) bool {
	return !containsValue(v, func(v any) bool { return v == nil || isFraction(v) })
}

// Apply returns the patched object, which shares unchanged values with object. It returns false if
// only kustomize can determine the result. object is not modified.
func (e Edit) Apply(object map[string]any) (map[string]any, bool) {
	have, there := k8s.At(object, "metadata", "annotations").(map[string]any)
	if there && len(have) == 0 || k8s.Text(object, "apiVersion") != "apps/v1" || hasFractions(object) {
		return nil, false
	}
	var v any = object
	for _, op := range e.ops {
		var ok bool
		if v, ok = op.apply(v, op.path); !ok {
			return nil, false
		}
	}
	// kustomize rejects some objects with a value of a wrong type here.
	out, ok := v.(map[string]any)
	return out, ok && len(e.types.Check(out).Wrong) == 0
}

// hasFractions reports whether v contains a number that is not an integer. kustomize may format it
// differently.
func hasFractions(v any) bool { return containsValue(v, isFraction) }

func isFraction(v any) bool {
	switch v.(type) {
	case float64, json.Number:
		return true
	}
	return false
}

// containsValue reports whether predicate returns true for v or for a value inside v.
func containsValue(v any, predicate func(any) bool) bool {
	if predicate(v) {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if containsValue(e, predicate) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return containsValue(e, predicate) })
	}
	return false
}

// apply returns a copy of v with the operation applied at a path. It returns false if only
// kustomize can determine the result.
func (x op) apply(v any, path []string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return x.applyToMap(v, path)
	case []any:
		return x.applyToList(v, path)
	default:
		return nil, false
	}
}

func (x op) applyToMap(v map[string]any, path []string) (any, bool) {
	old, there := v[path[0]]
	if !there && (len(path) > 1 || x.name != "add") {
		return nil, false
	}
	v = maps.Clone(v)
	switch {
	case len(path) > 1:
		changed, ok := x.apply(old, path[1:])
		v[path[0]] = changed
		return v, ok
	case x.name == "remove":
		delete(v, path[0])
	default:
		v[path[0]] = x.value
	}
	return v, true
}

func (x op) applyToList(v []any, path []string) (any, bool) {
	i, err := strconv.Atoi(path[0])
	if err != nil || strconv.Itoa(i) != path[0] || i < 0 || i >= len(v) {
		return nil, false
	}
	v = slices.Clone(v)
	switch {
	case len(path) > 1:
		changed, ok := x.apply(v[i], path[1:])
		v[i] = changed
		return v, ok
	case x.name == "replace":
		v[i] = x.value
		return v, true
	default:
		return nil, false
	}
}

// patchPosition returns the position for an error message of kustomize. If the message names the target of a
// patch, such as "Deployment.v1.apps/web.shop", the result is the position of the patch. Otherwise it is the
// file of the kustomization in which the error occurred or, if unknown, the file of o.
func (o *Overlay) patchPosition(message string) diag.Pos {
	for _, k := range o.sortedKustomizations() {
		for i, p := range k.kustomization.Patches {
			file, text := k.path(p.Path), k.ownFiles[k.path(p.Path)]
			if p.Path == "" {
				file, text = k.File, []byte(p.Patch)
			}
			docs, _ := yamlnode.Documents(file, text, yamlnode.Limits{}) // ignore the error: kustomize has parsed the file
			for _, doc := range docs {
				_, kind := yamlnode.Field(doc, "kind")
				_, meta := yamlnode.Field(doc, "metadata")
				if kind == nil || meta == nil {
					continue
				}
				_, name := yamlnode.Field(meta, "name")
				if name == nil || !strings.Contains(message, kind.Value+".") || !strings.Contains(message, "/"+name.Value+".") {
					continue
				}
				if p.Path == "" {
					return k.position(fmt.Sprintf("patches[%d].patch", i))
				}
				return yamlnode.At(file, name)
			}
		}
	}
	if m := accumulationPath.FindAllStringSubmatch(message, -1); m != nil {
		for _, k := range o.sortedKustomizations() {
			if k.Dir == m[len(m)-1][1] {
				return diag.Pos{File: k.File}
			}
		}
	}
	return diag.Pos{File: o.File}
}

// accumulationPath matches the directories in an error message of kustomize. kustomize lists the directories
// that it was processing, outermost first.
var accumulationPath = regexp.MustCompile(`accumulation of path '/([^']+)'`)
