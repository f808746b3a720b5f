package diag

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// maxNear is the maximum length of words for Nearest in bytes. The comparison takes quadratic time,
// and suggestions for longer words are not useful.
const maxNear = 128

// minLike is the minimum length of a word that is searched in longer names.
const minLike = 3

// Nearest returns up to three names of the list among: those most similar to word, most similar first. If
// some names differ from word only in case, it returns only these names. Otherwise the order is:
//   - names that begin with word
//   - names that differ from word in a few letters
//   - names whose beginning differs from word in a few letters
//   - names that contain all parts of word, in the same order (see [Words])
//
// It returns nil if no name is similar.
func Nearest(word string, among []string) []string {
	type scored struct {
		name       string
		rank, dist int
	}
	if word == "" || len(word) > maxNear {
		return nil
	}
	lower := strings.ToLower(word)
	limit := max(1, len(word)/3)
	var near []scored
	for _, name := range among {
		if name == word || len(name) > maxNear {
			continue
		}
		dist, like := editDistance(lower, strings.ToLower(name), limit), Like(word, name)
		begin := editDistance(lower, strings.ToLower(firstWords(name, word)), limit)
		switch {
		case dist == 0:
			near = append(near, scored{name, 0, 0})
		case like <= Begins && len(word) >= minLike:
			near = append(near, scored{name, 1, len(name)})
		case dist <= limit:
			near = append(near, scored{name, 2, dist})
		case begin <= limit && len(word) > minLike:
			near = append(near, scored{name, 3, begin})
		case like <= Words && len(word) >= minLike:
			near = append(near, scored{name, 4, len(name)})
		}
	}
	slices.SortFunc(near, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.dist, b.dist), strings.Compare(a.name, b.name))
	})
	near = slices.Compact(near)
	if len(near) > 0 && near[0].rank == 0 { // these names differ only in case
		near = slices.DeleteFunc(near, func(s scored) bool { return s.rank > 0 })
	}
	var names []string
	for _, s := range near[:min(3, len(near))] {
		names = append(names, s.name)
	}
	return names
}

// firstWords returns the beginning of name, with as many words as word has. "-" separates words.
func firstWords(name, word string) string {
	words := strings.Split(name, "-")
	return strings.Join(words[:min(len(words), strings.Count(word, "-")+1)], "-")
}

// DidYouMean returns a message suffix with the names of the list among that are similar to word: ` (did you
// mean "a" or "b"?)`. It returns "" if no name is similar.
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

// editDistance returns the number of letters to insert, delete, replace or swap with their
// neighbour to get from a to b. If it exceeds limit, the result is some number above limit.
func editDistance(a, b string, limit int) int {
	if max(len(a), len(b))-min(len(a), len(b)) > limit {
		return limit + 1
	}
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

// Likeness is the degree of similarity between a name and a search term. Lower is more similar.
type Likeness int

// The degrees of similarity. Case, and separators between words, are ignored.
const (
	Same   Likeness = iota // the whole name: "grafana operator" for grafana-operator
	Begins                 // the beginning of the name: "grafana"
	Words                  // beginnings of words of the name, in the same order: "operator"
	Part                   // any other part: "fana"
	Unlike
)

// Like returns the similarity between a name and a search term. An empty term is not similar to any name.
func Like(word, name string) Likeness {
	word, name = strings.ToLower(word), strings.ToLower(name)
	queryWords, nameWords := strings.FieldsFunc(word, isSeparator), strings.FieldsFunc(name, isSeparator)
	joined := strings.Join(queryWords, "-")
	switch whole := strings.Join(nameWords, "-"); {
	case joined == "":
		return Unlike
	case joined == whole:
		return Same
	case strings.HasPrefix(whole, joined):
		return Begins
	case inOrder(queryWords, nameWords):
		return Words
	case strings.Contains(whole, joined):
		return Part
	default:
		return Unlike
	}
}

func isSeparator(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// inOrder reports whether queryWords are beginnings of words in nameWords, in the same order.
func inOrder(queryWords, nameWords []string) bool {
	for _, h := range nameWords {
		if len(queryWords) > 0 && strings.HasPrefix(h, queryWords[0]) {
			queryWords = queryWords[1:]
		}
	}
	return len(queryWords) == 0
}
