package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff"
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

// formatValue formats v for a report: a string unchanged, nil as "", and other values as compact JSON with
// sorted keys.
func formatValue(v any) string {
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

// Limits for displayed values in bytes. They do not apply to the JSON report.
const (
	maxShown   = 300 // longer values are shown as hunks
	hunkMargin = 40  // equal text on both sides of a hunk
	minHunk    = 200 // bytes of a hunk that are always shown
)

// shownValues returns the values of the finding for display. Of long values, it returns only the parts that
// differ, each with some surrounding text. If the parts are together longer than limit bytes, it cuts the
// middle of each part. If the parts still do not fit, the second result ends with the number of omitted parts.
func (f Finding) shownValues(limit int) (before, after string) {
	a, b := f.Before, f.After
	if max(len(a), len(b)) <= maxShown {
		return a, b
	}
	hunks := changedParts(a, b)
	fit := max(1, limit/minHunk)
	size := max(minHunk, limit/len(hunks))
	var was, is []string
	for _, h := range hunks[:min(len(hunks), fit)] {
		was, is = append(was, cutMiddle(h[0], size)), append(is, cutMiddle(h[1], size))
	}
	if left := len(hunks) - fit; left > 0 {
		is = append(is, pluralize(left, "more change", "more changes"))
	}
	return strings.Join(was, " … "), strings.Join(is, " … ")
}

// changedParts returns the parts in which a and b differ, with some surrounding text, as pairs (part of a, part
// of b).
func changedParts(a, b string) [][2]string {
	type span struct{ a0, a1, b0, b1 int }
	var spans []span
	shift := 0
	for _, e := range wordEdits(a, b) {
		s := span{e.Start, e.End, e.Start + shift, e.Start + shift + len(e.New)}
		shift += len(e.New) - (e.End - e.Start)
		if n := len(spans); n > 0 && s.a0-spans[n-1].a1 < hunkMargin {
			spans[n-1].a1, spans[n-1].b1 = s.a1, s.b1
			continue
		}
		spans = append(spans, s)
	}
	cut := func(s string, from, to int) string {
		return strings.ToValidUTF8(s[max(0, from-hunkMargin):min(len(s), to+hunkMargin)], "")
	}
	var out [][2]string
	for _, s := range spans {
		if a == "" || b == "" {
			return [][2]string{{a, b}}
		}
		out = append(out, [2]string{cut(a, s.a0, s.a1), cut(b, s.b0, s.b1)})
	}
	if out == nil {
		return [][2]string{{a, b}}
	}
	return out
}

// wordEdits returns the edits that turn a into b, in order: ranges of a with their replacements. To find
// unchanged text, it looks for sequences of words that occur exactly once in a and exactly once in b.
func wordEdits(a, b string) []udiff.Edit {
	const sequence = 4 // words
	x, y := splitWords(a), splitWords(b)
	unique := func(text string, starts []int) map[string]int {
		out := map[string]int{}
		for i := 0; i+sequence < len(starts); i++ {
			words := text[starts[i]:starts[i+sequence]]
			if _, twice := out[words]; twice {
				out[words] = -1
				continue
			}
			out[words] = i
		}
		return out
	}
	in, of := unique(a, x), unique(b, y)
	var out []udiff.Edit
	i, j := 0, 0
	add := func(toI, toJ int) {
		word := func(text string, starts []int, i int) string { return text[starts[i]:starts[i+1]] }
		for i < toI && j < toJ && word(a, x, i) == word(b, y, j) {
			i, j = i+1, j+1
		}
		endI, endJ := toI, toJ
		for endI > i && endJ > j && word(a, x, endI-1) == word(b, y, endJ-1) {
			endI, endJ = endI-1, endJ-1
		}
		if i < endI || j < endJ {
			out = append(out, udiff.Edit{Start: x[i], End: x[endI], New: b[y[j]:y[endJ]]})
		}
		i, j = toI, toJ
	}
	for at := 0; at+sequence < len(x); at++ {
		words := a[x[at]:x[at+sequence]]
		if to, ok := of[words]; ok && in[words] >= 0 && at >= i && to >= j {
			add(at, to)
		}
	}
	add(len(x)-1, len(y)-1)
	return out
}

// splitWords returns the offset of each word and of each other character in s, followed by the length of s.
func splitWords(s string) []int {
	var starts []int
	word := false
	for i, r := range s {
		is := r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
		if !word || !is {
			starts = append(starts, i)
		}
		word = is
	}
	return append(starts, len(s))
}

// cutMiddle replaces the middle of s by the number of omitted bytes, if s is longer than limit bytes.
func cutMiddle(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	half := limit / 2
	return fmt.Sprintf("%s … (%d bytes) … %s", strings.ToValidUTF8(s[:half], ""), len(s)-2*half, strings.ToValidUTF8(s[len(s)-half:], ""))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// unionKeys returns the keys of a and b, sorted and without duplicates.
func unionKeys[A, B any](a map[string]A, b map[string]B) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}
