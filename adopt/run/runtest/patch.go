package runtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/adopt/run"
	"github.com/quayside/quayside/internal/kobj"
)

// patched returns an object as a patch makes it.
func patched(o kobj.Object, p run.Patch) (kobj.Object, error) {
	if p.JSON == nil {
		return kobj.Object(merged(map[string]any(o), p.Merge).(map[string]any)), nil
	}
	var doc any = kobj.Copy(map[string]any(o))
	for _, op := range p.JSON {
		var keys []string
		for _, key := range strings.Split(strings.TrimPrefix(op.Path, "/"), "/") {
			keys = append(keys, strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~"))
		}
		var err error
		if doc, err = operated(doc, keys, op); err != nil {
			return nil, fmt.Errorf("%s %s: %w", op.Op, op.Path, err)
		}
	}
	return kobj.Object(doc.(map[string]any)), nil
}

// merged is a merge patch.
func merged(old, patch any) any {
	with, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	was, _ := old.(map[string]any)
	out := kobj.Copy(was)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range with {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = merged(out[k], v)
		}
	}
	return out
}

// operated is one operation of a JSON patch on what lies below doc.
func operated(doc any, keys []string, op run.Operation) (any, error) {
	if len(keys) == 0 {
		if op.Op == "test" && !kobj.Equal(doc, op.Value) {
			return nil, fmt.Errorf("it is %v, not %v", doc, op.Value)
		}
		if op.Op == "test" {
			return doc, nil
		}
		return op.Value, nil
	}
	last := len(keys) == 1
	switch in := doc.(type) {
	case map[string]any:
		old, there := in[keys[0]]
		if !there && !(last && op.Op == "add") {
			return nil, fmt.Errorf("there is no %s", keys[0])
		}
		if last && op.Op == "remove" {
			delete(in, keys[0])
			return in, nil
		}
		v, err := operated(old, keys[1:], op)
		in[keys[0]] = v
		return in, err
	case []any:
		i, err := strconv.Atoi(keys[0])
		if err != nil || i < 0 || i >= len(in) {
			return nil, fmt.Errorf("there is no item %s", keys[0])
		}
		if last && op.Op == "remove" {
			return slices.Delete(in, i, i+1), nil
		}
		v, err := operated(in[i], keys[1:], op)
		in[i] = v
		return in, err
	}
	return nil, fmt.Errorf("%s lies in nothing", keys[0])
}
