package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v2"

	"github.com/quayside/quayside/internal/blockyaml"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
)

const (
	maxDepth = 100       // of one document
	maxNodes = 4_000_000 // of one file, aliases expanded
)

// decodeObjects decodes a file of YAML or JSON documents. Lists are taken
// apart; empty documents are left out. The error is a diag.List.
func decodeObjects(file string, data []byte) ([]Object, error) {
	docs, err := decodeDocuments(file, data)
	if err != nil {
		return nil, err
	}
	var errs diag.List
	var objects []Object
	for i, doc := range docs {
		if where, ok := mergeKey(doc); ok {
			at{file, i + 1, where}.faultf(&errs, "a key %q, which YAML tools take for a merge", "<<")
			continue
		}
		for _, item := range flatten(at{file, i + 1, ""}, doc, &errs) {
			objects = append(objects, Object{File: file, Document: len(objects), Object: item})
		}
	}
	return objects, errs.Err()
}

// at is a place in a file of manifests: a field of a document.
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

// flatten returns the objects of a list, in lists of lists too, and any other
// object as it is. A list is what kustomize takes for one, whatever it is called,
// for what it builds must be what is read here: an object with items whose kind
// ends in List.
func flatten(a at, doc any, errs *diag.List) []map[string]any {
	m, ok := doc.(map[string]any)
	if !ok {
		a.faultf(errs, "not an object")
		return nil
	}
	kind := kobj.Text(m, "kind")
	value, listed := m["items"]
	items, ok := value.([]any)
	switch {
	case !strings.HasSuffix(kind, "List"):
		podPath(a, kind, m, errs)
		return []map[string]any{m}
	case listed && !ok:
		at{a.file, a.document, join(a.field, "items")}.faultf(errs, "want the list of a %s, got %s", kind, kobj.TypeName(value))
		return nil
	case kind == "ResourceList", kind == "List" && !listed:
		a.faultf(errs, "a %s is no object of a cluster", kind)
		return nil
	case !listed:
		return []map[string]any{m}
	}
	var out []map[string]any
	for i, item := range items {
		out = append(out, flatten(at{a.file, a.document, index(join(a.field, "items"), i)}, item, errs)...)
	}
	return out
}

// podPath wants objects where a kind that runs pods has them. kustomize looks into
// these fields by the kind alone, whatever the API (its namereference.go), and
// builds nothing of a tree in which one of them is anything else.
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
		a.field = join(a.field, field)
		value, ok := m[field]
		if !ok || value == nil {
			return
		}
		if m, ok = value.(map[string]any); !ok {
			a.faultf(errs, "want an object, got %s", kobj.TypeName(value))
			return
		}
	}
}

// mergeKey returns the first place where a key "<<" is left in a decoded value.
// Whoever reads it again merges what stands there, quoted or not.
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
				first(index("", i) + "." + where)
			}
		}
	}
	return place, found
}

// decodeDocuments decodes every document that is not empty.
func decodeDocuments(file string, data []byte) ([]any, error) {
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		if docs, err := decodeJSON(data); err == nil {
			return docs, nil
		}
	}
	return decodeYAML(file, data)
}

func decodeJSON(data []byte) ([]any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var docs []any
	for {
		var v any
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		c := converter{}
		if v, err = c.value(v, 0); err != nil {
			return nil, err
		}
		docs = append(docs, v)
	}
}

// decodeYAML reads block style by a parser made for it, and everything else by
// the one that the API server uses.
func decodeYAML(file string, data []byte) ([]any, error) {
	data, err := yamlnode.Condense(data)
	if err != nil {
		return nil, diag.Errorf(diag.Pos{File: file}, "%w", err)
	}
	if docs, ok := decodeBlock(data); ok {
		return docs, nil
	}
	return decodeFull(file, data)
}

func decodeBlock(data []byte) ([]any, bool) {
	return blockyaml.Decode(data, func(text string) (any, bool) {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			return nil, false
		}
		v, err := scalar(v)
		return v, err == nil
	})
}

func decodeFull(file string, data []byte) ([]any, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	c := converter{}
	var docs []any
	for {
		var v any
		err := decodeNext(dec, &v)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, yamlError(file, err)
		}
		if v == nil {
			continue
		}
		if v, err = c.value(v, 0); err != nil {
			return nil, diag.Errorf(diag.Pos{File: file}, "%w", err)
		}
		docs = append(docs, v)
	}
}

// decodeNext turns a panic of the YAML library, which hostile text can cause,
// into an error.
func decodeNext(dec *yaml.Decoder, v *any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("not readable as YAML: %v", r)
		}
	}()
	return dec.Decode(v)
}

// yamlError moves the line that the library names into the position.
func yamlError(file string, err error) error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	pos := diag.Pos{File: file}
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(msg); m != nil {
		pos.Line, _ = strconv.Atoi(m[1])
		msg = strings.TrimPrefix(msg, m[0])
	}
	return diag.Errorf(pos, "%s", msg)
}

// converter turns what the decoders yield into the types that Object documents.
type converter struct{ nodes int }

func (c *converter) value(v any, depth int) (any, error) {
	if c.nodes++; c.nodes > maxNodes {
		return nil, fmt.Errorf("more than %d values", maxNodes)
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case map[any]any:
		return c.untypedMap(v, depth)
	case map[string]any:
		for k, e := range v {
			var err error
			if v[k], err = c.value(e, depth+1); err != nil {
				return nil, err
			}
		}
		return v, nil
	case []any:
		for i, e := range v {
			var err error
			if v[i], err = c.value(e, depth+1); err != nil {
				return nil, err
			}
		}
		return v, nil
	default:
		return scalar(v)
	}
}

func (c *converter) untypedMap(v map[any]any, depth int) (any, error) {
	out := make(map[string]any, len(v))
	for k, e := range v {
		key, err := keyText(k)
		if err != nil {
			return nil, err
		}
		if _, ok := out[key]; ok {
			return nil, fmt.Errorf("key %q appears twice", key)
		}
		if out[key], err = c.value(e, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keyText spells a key as the API server's YAML reader does, which refuses
// integers beyond int64.
func keyText(k any) (string, error) {
	switch k := k.(type) {
	case string:
		return k, nil
	case int:
		return strconv.Itoa(k), nil
	case int64:
		return strconv.FormatInt(k, 10), nil
	case bool:
		return strconv.FormatBool(k), nil
	case float64:
		switch s := strconv.FormatFloat(k, 'g', -1, 32); s {
		case "+Inf":
			return ".inf", nil
		case "-Inf":
			return "-.inf", nil
		case "NaN":
			return ".nan", nil
		default:
			return s, nil
		}
	default:
		return "", fmt.Errorf("a key of type %T", k)
	}
}

func scalar(v any) (any, error) {
	switch v := v.(type) {
	case nil, string, bool, int64:
		return v, nil
	case int:
		return int64(v), nil
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v), nil
		}
		return json.Number(strconv.FormatUint(v, 10)), nil
	case float64:
		return float(v)
	case json.Number:
		return number(v)
	default:
		return nil, fmt.Errorf("a value of type %T", v)
	}
}

// float returns a whole number as an integer, as the API server reads it.
func float(v float64) (any, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, fmt.Errorf("%v is not a number that JSON can hold", v)
	}
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return int64(v), nil
	}
	return v, nil
}

func number(n json.Number) (any, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	if !strings.ContainsAny(n.String(), ".eE") {
		return n, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, fmt.Errorf("number %s: %w", n, err)
	}
	return float(f)
}
