package diag

import (
	"strings"
	"unicode"
)

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
