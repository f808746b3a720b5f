package yamlnode

import (
	"fmt"
	"strings"
)

// FindUnreadable finds a character in v that go-yaml writes but cannot parse: DEL, a C1 control character,
// U+FFFE or U+FFFF. It returns this character, and the first field in the order of [Encode] whose key or
// text contains it. kustomize parses its own output with go-yaml, so such a character makes a build fail or
// changes the text.
func FindUnreadable(v map[string]any) (field string, char rune, found bool) {
	return findUnreadable(v, "")
}

func findUnreadable(v any, at string) (string, rune, bool) {
	switch v := v.(type) {
	case map[string]any:
		field, char, found, first := "", rune(0), false, ""
		for key, value := range v { // unsorted: nearly all values have no such character
			if found && key > first {
				continue
			}
			if c, inKey := firstUnreadable(key); inKey {
				field, char, found, first = strings.TrimPrefix(fmt.Sprintf("%s[%q]", at, key), "."), c, true, key
			} else if f, c, below := findUnreadable(value, ""); below {
				field, char, found, first = joinField(at, key, f), c, true, key
			}
		}
		return field, char, found
	case []any:
		for i, item := range v {
			if field, char, found := findUnreadable(item, ""); found {
				return joinField(at, fmt.Sprintf("[%d]", i), field), char, true
			}
		}
	case string:
		if char, found := firstUnreadable(v); found {
			return at, char, true
		}
	}
	return "", 0, false
}

func joinField(parts ...string) string {
	out := ""
	for _, part := range parts {
		if out != "" && part != "" && part[0] != '[' {
			out += "."
		}
		out += part
	}
	return out
}

// firstUnreadable returns the first character of s that go-yaml cannot parse, and whether there is
// one.
func firstUnreadable(s string) (rune, bool) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < 0x7f:
		case c == 0x7f:
			return 0x7f, true
		case c == 0xc2 && i+1 < len(s) && s[i+1] < 0xa0:
			return rune(s[i+1]), true
		case c == 0xef && strings.HasPrefix(s[i:], "\uFFFE"):
			return 0xfffe, true
		case c == 0xef && strings.HasPrefix(s[i:], "\uFFFF"):
			return 0xffff, true
		}
	}
	return 0, false
}
