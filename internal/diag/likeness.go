package diag

import (
	"strings"
	"unicode"
)

// Likeness is the degree of similarity between a name and a search word, best first.
type Likeness int

// The likenesses. Case and the separators between words are ignored.
const (
	Same   Likeness = iota // "grafana operator", of grafana-operator
	Begins                 // "grafana"
	Words                  // "operator": prefixes of words of the name, in this order
	Part                   // "fana"
	Unlike
)

// Like returns the likeness of name to word. An empty word is unlike any name.
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

// inOrder reports whether queryWords are prefixes of words in nameWords, in this order.
func inOrder(queryWords, nameWords []string) bool {
	for _, h := range nameWords {
		if len(queryWords) > 0 && strings.HasPrefix(h, queryWords[0]) {
			queryWords = queryWords[1:]
		}
	}
	return len(queryWords) == 0
}
