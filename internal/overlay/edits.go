package overlay

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/quayside/quayside/internal/admit"
	"github.com/quayside/quayside/internal/blockyaml"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Edit is what a kustomization changes of one Deployment, by the operations of a
// JSON patch.
type Edit struct {
	Key   kobj.Key
	patch types.Patch
	ops   []op
	types *admit.Types
}

// op is an operation of a JSON patch.
type op struct {
	name  string // add, replace or remove
	path  []string
	value any
}

// maxOps bounds the operations of one patch, for each copies what it changes.
const maxOps = 1000

// targets returns what patches are for, where each is for one Deployment, whose
// name it says in full; else nil.
func targets(patches []types.Patch) []Edit {
	var out []Edit
	for _, p := range patches {
		if p.Target == nil || p.Options != nil {
			return nil
		}
		name := strings.ReplaceAll(p.Target.Name, `\.`, ".")
		key := kobj.Key{Group: p.Target.Group, Kind: p.Target.Kind, Namespace: p.Target.Namespace, Name: name}
		plain := *p.Target
		plain.Group, plain.Version, plain.Kind, plain.Namespace, plain.Name = "", "", "", "", ""
		literal := regexp.QuoteMeta(name) == p.Target.Name && regexp.QuoteMeta(key.Namespace) == key.Namespace
		// What has no namespace is in the one called default to kustomize.
		if plain != (types.Selector{}) || !literal || name == "" || key.Namespace == "" || key.Namespace == "default" ||
			key.Group != "apps" || p.Target.Version != "v1" || key.Kind != "Deployment" {
			return nil
		}
		out = append(out, Edit{Key: key, patch: p})
	}
	return out
}

// Edits returns what a build of o changes of the objects that it lists, in order,
// where it does nothing else, and false where it does or where that is not plain to
// see: then kustomize has to be asked.
func (o *Overlay) Edits() ([]Edit, bool) {
	var out []Edit
	plain := true
	o.inOrder(map[*Overlay]bool{}, func(k *Overlay) {
		if !plain || k.lists {
			return
		}
		if plain = k.targets != nil && k.files == o.files; !plain {
			return
		}
		for _, e := range k.targets {
			text := []byte(e.patch.Patch)
			if e.patch.Path != "" {
				text = k.own[k.path(e.patch.Path)]
			}
			e.ops, e.types = operations(text), o.types
			plain = plain && e.ops != nil
			out = append(out, e)
		}
	})
	return out, plain
}

// operations reads a JSON patch that changes the spec of an object, or sets
// annotations that mean nothing to kustomize; nil for any other.
func operations(text []byte) []op {
	list, ok := listed(text)
	if !ok || len(list) > maxOps {
		return nil
	}
	var out []op
	for _, v := range list {
		said, _ := v.(map[string]any)
		name, at := kobj.Text(said, "op"), kobj.Text(said, "path")
		raw, has := said["value"]
		fields := 2
		if has {
			fields++
		}
		value, plain := integers(raw)
		steps := strings.Split(at, "/")
		if len(said) != fields || name != "remove" && !plain || !slices.Contains([]string{"add", "replace", "remove"}, name) || len(steps) < 3 || steps[0] != "" {
			return nil
		}
		for i := range steps {
			steps[i] = strings.ReplaceAll(strings.ReplaceAll(steps[i], "~1", "/"), "~0", "~")
		}
		annotation := len(steps) == 4 && steps[1] == "metadata" && steps[2] == "annotations" && name != "remove" && !strings.Contains(steps[3], "k8s.io") && !strings.Contains(steps[3], "kubernetes.io")
		if _, isText := value.(string); steps[1] != "spec" && (!annotation || !isText) {
			return nil
		}
		out = append(out, op{name, steps[1:], value})
	}
	return out
}

// listed returns the list that a text in YAML is, and false where it is none. What
// quayside writes is read by the fast parser.
func listed(text []byte) ([]any, bool) {
	if docs, ok := blockyaml.Decode(text, func(string) (any, bool) { return nil, false }); ok && len(docs) == 1 {
		list, is := docs[0].([]any)
		return list, is
	}
	const field = "list:\n"
	docs, err := yamlnode.Documents("", slices.Concat([]byte(field), text), yamlnode.Limits{})
	if err != nil || len(docs) != 1 {
		return nil, false
	}
	data, err := yamlnode.JSON(docs[0])
	if err != nil {
		return nil, false
	}
	var said struct{ List []any }
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	return said.List, dec.Decode(&said) == nil
}

// integers returns v with its numbers as int64, and false where one is none, or
// where there is a null.
func integers(v any) (any, bool) {
	whole := true
	switch v := v.(type) {
	case nil:
		return nil, false
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		return n, err == nil
	case map[string]any:
		for key, e := range v {
			x, is := integers(e)
			v[key], whole = x, whole && is
		}
		return v, whole
	case []any:
		for i, e := range v {
			x, is := integers(e)
			v[i], whole = x, whole && is
		}
		return v, whole
	}
	return v, true
}

// Apply returns the Deployment as the edit has it, and false where that takes
// kustomize to say. The object is not modified, and shares with what is returned
// what is the same.
func (e Edit) Apply(object map[string]any) (map[string]any, bool) {
	have, there := kobj.At(object, "metadata", "annotations").(map[string]any)
	if there && len(have) == 0 || kobj.Text(object, "apiVersion") != "apps/v1" || fractions(object) {
		return nil, false
	}
	var v any = object
	for _, op := range e.ops {
		var ok bool
		if v, ok = op.apply(v, op.path); !ok {
			return nil, false
		}
	}
	// Of what is not of its type, kustomize refuses some.
	out, ok := v.(map[string]any)
	return out, ok && len(e.types.Check(out).Wrong) == 0
}

// fractions reports whether there is a number in v that is no integer, which
// kustomize may write otherwise.
func fractions(v any) bool {
	switch v := v.(type) {
	case float64:
		return true
	case map[string]any:
		for _, e := range v {
			if fractions(e) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, fractions)
	}
	return false
}

// apply returns v with the value at a path changed.
func (x op) apply(v any, path []string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return x.inObject(v, path)
	case []any:
		return x.inList(v, path)
	default:
		return nil, false
	}
}

func (x op) inObject(v map[string]any, path []string) (any, bool) {
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

func (x op) inList(v []any, path []string) (any, bool) {
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
