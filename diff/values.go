package diff

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/sanitize"
)

// parseNumber converts v to a float. It returns false if v is not a number.
func parseNumber(v any) (f float64, ok bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	case float64:
		return n, true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	}
	return 0, false
}

// formatValue formats v for display, cut to maxShown bytes: a string unchanged, nil as "", and
// other values as compact JSON with sorted keys.
func formatValue(v any) string { return sanitize.Truncate(formatLong(v), maxShown) }

// formatBoth formats two different values for display. Long values are cut so that they begin
// shortly before the first difference.
func formatBoth(before, after any) (was, is string) {
	a, b := formatLong(before), formatLong(after)
	if max(len(a), len(b)) > maxShown {
		same := 0
		for same < min(len(a), len(b)) && a[same] == b[same] {
			same++
		}
		if same > maxShown/2 {
			a, b = "…"+strings.ToValidUTF8(a[same-40:], ""), "…"+strings.ToValidUTF8(b[same-40:], "")
		}
	}
	return sanitize.Truncate(a, maxValue), sanitize.Truncate(b, maxValue)
}

// formatLong formats v like formatValue, but without cutting it.
func formatLong(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case bool:
		return strconv.FormatBool(x)
	case []string:
		return strings.Join(x, ", ")
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(data)
}

// maxShown is the maximum length of a displayed value in bytes.
const maxShown = 300

// sortedKeys returns the keys of m, sorted.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// unionKeys returns the keys of a and b, sorted and without duplicates.
func unionKeys[A, B any](a map[string]A, b map[string]B) []string {
	all := make(map[string]bool, len(a)+len(b))
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	return sortedKeys(all)
}
