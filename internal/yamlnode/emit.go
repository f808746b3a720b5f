package yamlnode

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/sanitize"
)

// Quote returns s as a YAML scalar on one line: without quotes if every YAML reader parses that as
// the string s, otherwise in double quotes. The result is valid in flow and block style.
func Quote(s string) string {
	if isPlainKey(s) {
		return s
	}
	return doubleQuoted(s, isVisible, false)
}

// isVisible reports whether r needs no escape. It returns false for invisible characters. These
// include all characters that some YAML reader rejects or treats as a line break.
func isVisible(r rune) bool { return !sanitize.IsInvisible(r) }

// doubleQuoted returns s in double quotes. It escapes the characters for which asIs returns false.
// If short is true, it uses escapes with two digits where possible.
func doubleQuoted(s string, asIs func(rune) bool, short bool) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case asIs(r):
			b.WriteRune(r)
		case short && r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// isPlainKey reports whether key s needs no quotes. It is stricter than the YAML specification,
// because decoders differ.
func isPlainKey(s string) bool {
	if s == "" || !isBareByte(s[0], "/_.") || !isBareByte(s[len(s)-1], "/_.@+=-") {
		return false
	}
	for i := range len(s) {
		if !isBareByte(s[i], "/_.:@+= -") {
			return false
		}
	}
	if strings.Contains(s, ": ") || strings.Contains(s, "  ") || strings.HasPrefix(s, "...") {
		return false
	}
	return plainScalar(s).kind == kindString && !looksNumeric(s)
}

func isBareByte(c byte, others string) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte(others, c) >= 0
}

// looksNumeric reports whether some YAML reader might parse s as a date or as a number in base 60.
func looksNumeric(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != ':' && r != '-' && r != '_' && r != ' ' })
}
