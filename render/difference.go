package render

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/quayside/quayside/internal/k8s"
)

// appendPatch appends JSON patch operations that change a to b. It compares objects by field, and lists of equal
// length by item. It replaces other values as a whole. If a and b share a map or list in memory, it does not
// compare the content. The paths in the operations start with at.
func appendPatch(ops []any, at string, a, b any) []any {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		if reflect.ValueOf(x).UnsafePointer() == reflect.ValueOf(y).UnsafePointer() {
			return ops
		}
		for _, key := range keysOf(x, y) {
			here := at + "/" + k8s.EscapePointer(key)
			from, had := x[key]
			to, has := y[key]
			switch {
			case !has:
				ops = append(ops, map[string]any{"op": "remove", "path": here})
			case !had:
				ops = append(ops, map[string]any{"op": "add", "path": here, "value": to})
			default:
				ops = appendPatch(ops, here, from, to)
			}
		}
		return ops
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		if len(x) == 0 || &x[0] == &y[0] {
			return ops
		}
		for i := range x {
			ops = appendPatch(ops, at+"/"+strconv.Itoa(i), x[i], y[i])
		}
		return ops
	}
	if k8s.Equal(a, b) {
		return ops
	}
	return append(ops, map[string]any{"op": "replace", "path": at, "value": b})
}

// keysOf returns the sorted keys of both objects.
func keysOf(a, b map[string]any) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}
