package diag

import (
	"cmp"
	"slices"
	"strings"
)

// maxNear is the longest word that Nearest looks at, in bytes: suggestions for
// longer ones are noise, and the comparison is quadratic.
const maxNear = 128

// Nearest returns those of among that word was probably meant to be, best
// first, at most three: few edits away, or equal but for case. It returns nil
// when nothing is near.
func Nearest(word string, among []string) []string {
	type scored struct {
		name string
		dist int
	}
	if word == "" || len(word) > maxNear {
		return nil
	}
	lower := strings.ToLower(word)
	limit := max(1, len(word)/3)
	var near []scored
	for _, name := range among {
		if name == word || len(name) > maxNear || abs(len(name)-len(word)) > limit {
			continue
		}
		if d := edits(lower, strings.ToLower(name), limit); d <= limit {
			near = append(near, scored{name, d})
		}
	}
	slices.SortFunc(near, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.dist, b.dist), strings.Compare(a.name, b.name))
	})
	near = slices.Compact(near)
	var names []string
	for _, s := range near[:min(3, len(near))] {
		names = append(names, s.name)
	}
	return names
}

// DidYouMean returns ` (did you mean "a" or "b"?)`, or nothing when no name in
// among is near word. It is meant to end a message.
func DidYouMean(word string, among []string) string {
	near := Nearest(word, among)
	if len(near) == 0 {
		return ""
	}
	quoted := make([]string, len(near))
	for i, n := range near {
		quoted[i] = `"` + n + `"`
	}
	return " (did you mean " + strings.Join(quoted, " or ") + "?)"
}

// edits returns how many insertions, deletions, replacements and swaps of
// neighbours turn a into b, or limit+1 once it is sure to exceed limit.
func edits(a, b string, limit int) int {
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		best := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			best = min(best, row[j])
		}
		if best > limit {
			return limit + 1
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
