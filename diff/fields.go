package diff

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// at returns the value under path, or nil where any step is missing.
func at(m map[string]any, path ...string) any {
	var v any = m
	for _, name := range path {
		next, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = next[name]
	}
	return v
}

// fields returns the mapping under path, or nil.
func fields(m map[string]any, path ...string) map[string]any {
	v, _ := at(m, path...).(map[string]any)
	return v
}

// text returns the string under path, or "".
func text(m map[string]any, path ...string) string {
	v, _ := at(m, path...).(string)
	return v
}

// isTrue returns the boolean under path, or false.
func isTrue(m map[string]any, path ...string) bool {
	v, _ := at(m, path...).(bool)
	return v
}

// items returns the mappings of the list under path; other elements are left out.
func items(m map[string]any, path ...string) []map[string]any {
	list, _ := at(m, path...).([]any)
	out := make([]map[string]any, 0, len(list))
	for _, v := range list {
		if one, ok := v.(map[string]any); ok {
			out = append(out, one)
		}
	}
	return out
}

// texts returns the strings of the list under path; other elements are left out.
func texts(m map[string]any, path ...string) []string {
	list, _ := at(m, path...).([]any)
	out := make([]string, 0, len(list))
	for _, v := range list {
		if one, ok := v.(string); ok {
			out = append(out, one)
		}
	}
	return out
}

// number returns v as a float; ok is false for what is no number.
func number(v any) (f float64, ok bool) {
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

// show returns v as a reader wants to see it: a string as it is, else compact
// JSON with sorted keys; "" for nil. Long values are cut.
func show(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return cut(x, maxShown)
	case bool:
		return strconv.FormatBool(x)
	case []string:
		return cut(strings.Join(x, ", "), maxShown)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return cut(string(data), maxShown)
}

const maxShown = 300

// cut shortens s to at most n bytes, on a rune boundary, and marks it.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := n - len("…")
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return s[:end] + "…"
}

// names returns the sorted keys of m.
func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// union returns the sorted keys of both.
func union[V any](a, b map[string]V) []string {
	all := make(map[string]bool, len(a)+len(b))
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	return names(all)
}
