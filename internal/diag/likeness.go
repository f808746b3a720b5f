package diag

import (
	"strings"
	"unicode"
)

// Likeness says how a name answers a word that somebody looks for, the best first.
type Likeness int

// The likenesses. Case and what stands between the words of a name do not matter.
const (
	Same   Likeness = iota // "grafana operator", of grafana-operator
	Begins                 // "grafana"
	Words                  // "operator": words of the name begin so, in that order
	Part                   // "fana"
	Unlike
)

// Like returns how name answers word. An empty word is unlike any name.
func Like(word, name string) Likeness {
	word, name = strings.ToLower(word), strings.ToLower(name)
	asked, have := strings.FieldsFunc(word, between), strings.FieldsFunc(name, between)
	joined := strings.Join(asked, "-")
	switch whole := strings.Join(have, "-"); {
	case joined == "":
		return Unlike
	case joined == whole:
		return Same
	case strings.HasPrefix(whole, joined):
		return Begins
	case inOrder(asked, have):
		return Words
	case strings.Contains(whole, joined):
		return Part
	default:
		return Unlike
	}
}

func between(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// inOrder reports whether each of asked begins one of have, behind that of the one
// before.
func inOrder(asked, have []string) bool {
	for _, h := range have {
		if len(asked) > 0 && strings.HasPrefix(h, asked[0]) {
			asked = asked[1:]
		}
	}
	return len(asked) == 0
}
