package diag

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns up to three of the names that word may have been meant for,
// best first: equal but for case, then by edit distance (a swap of neighbours
// counts one), then by name. It is empty where none is near.
func Nearest(word string, among []string) []string {
	type candidate struct {
		name string
		dist int
	}
	var near []candidate
	folded := strings.ToLower(word)
	for _, name := range among {
		other := strings.ToLower(name)
		limit := max(1, min(len(folded), len(other))/3)
		if d := distance(folded, other, limit); d <= limit && name != word {
			near = append(near, candidate{name, d})
		} else if len(folded) >= 3 && name != word && strings.HasPrefix(other, folded) {
			near = append(near, candidate{name, limit + 1})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.dist, b.dist), strings.Compare(a.name, b.name))
	})
	near = slices.Compact(near)
	names := make([]string, min(3, len(near)))
	for i := range names {
		names[i] = near[i].name
	}
	return names
}

// distance returns the number of insertions, deletions, substitutions and
// swaps of neighbouring bytes that turn a into b, or limit+1 where that is
// more than limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	var before []int
	prev, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, make([]int, len(b)+1)
	}
	return min(prev[len(b)], limit+1)
}
