package admit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// filled returns what after has and before has not, topmost fields only, in
// the order of fields.
func filled(at string, before, after any) []Value {
	switch b := after.(type) {
	case map[string]any:
		a, _ := before.(map[string]any)
		var out []Value
		for _, name := range slices.Sorted(maps.Keys(b)) {
			where := strings.TrimPrefix(at+"."+name, ".")
			if old, had := a[name]; had && (old != nil || b[name] == nil) {
				out = append(out, filled(where, old, b[name])...)
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
				out = append(out, filled(fmt.Sprintf("%s[%d]", at, i), a[i], b[i])...)
			}
		}
		return out
	}
	return nil
}
