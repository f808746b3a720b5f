package admit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// listDefaulted returns the values in after that are missing in before, sorted. Of an added object,
// it returns only the whole object.
func listDefaulted(at string, before, after any) []Value {
	switch b := after.(type) {
	case map[string]any:
		a, _ := before.(map[string]any)
		var out []Value
		for _, name := range slices.Sorted(maps.Keys(b)) {
			where := strings.TrimPrefix(at+"."+name, ".")
			if old, had := a[name]; had && (old != nil || b[name] == nil) {
				out = append(out, listDefaulted(where, old, b[name])...)
			} else {
				out = append(out, Value{where, b[name]})
			}
		}
		return out
	case []any:
		a, _ := before.([]any)
		var out []Value
		for i := range b {
			if i < len(a) {
				out = append(out, listDefaulted(fmt.Sprintf("%s[%d]", at, i), a[i], b[i])...)
			}
		}
		return out
	}
	return nil
}
