package yamlnode

import (
	"fmt"
	"strings"
)

// FindUnreadable returns the first field of a value, in the order of [Encode], whose key or
// text has a character that programs on go-yaml write but do not read back, in any form:
// DEL, the C1 control characters, U+FFFE and U+FFFF. kustomize writes what it has read, so
// that one of them makes its build fail or changes the text.
func FindUnreadable(v map[string]any) (field string, char rune, found bool) {
	return findUnreadable(v, "")
}

func findUnreadable(v any, at string) (string, rune, bool) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if char, found := unreadableIn(key); found {
				return strings.TrimPrefix(fmt.Sprintf("%s[%q]", at, key), "."), char, true
			}
			if field, char, found := findUnreadable(v[key], ""); found {
				return joinField(at, key, field), char, true
			}
		}
	case []any:
		for i, item := range v {
			if field, char, found := findUnreadable(item, ""); found {
				return joinField(at, fmt.Sprintf("[%d]", i), field), char, true
			}
		}
	case string:
		if char, found := unreadableIn(v); found {
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

// unreadableIn returns the first such character of s.
func unreadableIn(s string) (rune, bool) {
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
