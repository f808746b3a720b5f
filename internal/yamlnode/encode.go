package yamlnode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quayside/quayside/internal/sanitize"
)

// Encode returns v as block YAML, with sorted keys, lists indented like their key, and no folded
// lines. v is a value that encoding/json decodes into an any, or a map type of such values. A
// string that a YAML 1.1 or 1.2 reader could parse as another type is quoted, so that readers of both
// versions decode v. Equal values give equal bytes.
func Encode(v any) []byte { return slices.Clone(AppendEncoded(make([]byte, 0, 4<<10), v)) }

// AppendEncoded appends Encode(v) to dst and returns the extended slice.
func AppendEncoded(dst []byte, v any) []byte {
	e := encoder{out: dst}
	if m := reflect.ValueOf(v); m.IsValid() && m.CanConvert(reflect.TypeFor[map[string]any]()) {
		v = m.Convert(reflect.TypeFor[map[string]any]()).Interface()
	}
	e.node(v, 0)
	return e.out
}

// Marshal converts v to JSON and returns the result as YAML, in the style of [Encode].
func Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	plain, err := fromJSON(data)
	if err != nil {
		return nil, err
	}
	return Encode(plain), nil
}

// fromJSON decodes a JSON value like encoding/json, with numbers as json.Number.
func fromJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// encoder appends YAML to out. A node with several lines continues in column indent and ends with a
// line break.
type encoder struct {
	out  []byte
	lock bool // style of quayside.lock: each string is on one line, as from Quote
}

func (e *encoder) node(v any, indent int) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			e.mapping(v, indent)
			return
		}
		e.raw("{}\n")
	case []any:
		if len(v) > 0 {
			e.sequence(v, indent)
			return
		}
		e.raw("[]\n")
	case string:
		e.text(v, indent)
	default:
		e.raw(valueText(v) + "\n")
	}
}

func (e *encoder) raw(s string) { e.out = append(e.out, s...) }

func (e *encoder) indent(n int) {
	for range n {
		e.out = append(e.out, ' ')
	}
}

func (e *encoder) mapping(m map[string]any, indent int) {
	for i, key := range sortedKeys(m) {
		if i > 0 {
			e.indent(indent)
		}
		e.raw(e.quoted(key))
		e.raw(":")
		e.value(m[key], indent)
	}
}

// sortedKeys returns the keys of m, sorted. It allocates only once, because a tree has many
// mappings.
func sortedKeys(m map[string]any) []string {
	keys := slices.AppendSeq(make([]string, 0, len(m)), maps.Keys(m))
	slices.Sort(keys)
	return keys
}

// value writes the value of a key in column indent, beginning after the colon.
func (e *encoder) value(v any, indent int) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			e.raw("\n")
			e.indent(indent + 2)
			e.mapping(v, indent+2)
			return
		}
	case []any:
		if len(v) > 0 {
			e.raw("\n")
			e.indent(indent)
			e.sequence(v, indent)
			return
		}
	}
	e.raw(" ")
	e.node(v, indent+2)
}

func (e *encoder) sequence(items []any, indent int) {
	for i, item := range items {
		if i > 0 {
			e.indent(indent)
		}
		e.raw("-")
		if _, list := item.([]any); list && e.lock {
			e.value(item, indent+2)
			continue
		}
		e.raw(" ")
		e.node(item, indent+2)
	}
}

// flow writes a value on one line: {a: 1, b: [x, y]}.
func (e *encoder) flow(v any) {
	separator := ""
	switch v := v.(type) {
	case map[string]any:
		e.raw("{")
		for _, key := range sortedKeys(v) {
			e.raw(separator + e.quoted(key) + ": ")
			e.flow(v[key])
			separator = ", "
		}
		e.raw("}")
	case []any:
		e.raw("[")
		for _, item := range v {
			e.raw(separator)
			e.flow(item)
			separator = ", "
		}
		e.raw("]")
	case string:
		e.raw(e.quoted(v))
	default:
		e.raw(valueText(v))
	}
}

// quoted returns a string as a scalar on one line.
func (e *encoder) quoted(s string) string {
	if e.lock {
		return Quote(s)
	}
	return encodeLoosely(s)
}

// text writes a string. A string with several lines becomes a literal block, if that preserves it
// exactly.
func (e *encoder) text(s string, indent int) {
	if e.lock || !strings.Contains(s, "\n") || !isLiteral(s) {
		e.raw(e.quoted(s) + "\n")
		return
	}
	body := strings.TrimRight(s, "\n")
	switch trailing := len(s) - len(body); trailing {
	case 0:
		e.raw("|-\n")
	case 1:
		e.raw("|\n")
	default:
		e.raw("|+\n")
		body = s[:len(s)-1]
	}
	for line := range strings.SplitSeq(body, "\n") {
		if line != "" {
			e.indent(max(indent, 2))
			e.raw(line)
		}
		e.raw("\n")
	}
}

// isLiteral reports whether a string with several lines can be a literal block: it begins with
// neither a space nor a line break, and every YAML reader keeps all of its characters.
func isLiteral(s string) bool {
	if first := s[0]; first == ' ' || first == '\t' || first == '\n' {
		return false
	}
	if strings.Contains(s, "\n\t") || hasDirectives(s) {
		return false
	}
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && !isPrintable(r) })
}

// isPrintable reports whether r is visible, and every YAML reader keeps r and does not treat r as
// a line break.
func isPrintable(r rune) bool {
	return r >= ' ' && r < 0x7f || r > 0xa0 && r != utf8.RuneError && unicode.IsPrint(r) && !sanitize.IsInvisible(r)
}

// hasDirectives reports whether s contains text that must be escaped for display, such as a command
// for a CI system. Such escapes are possible only in double quotes.
func hasDirectives(s string) bool {
	return (strings.Contains(s, "##") || strings.Contains(s, "::")) && sanitize.Lines(s) != s
}

// encodeLoosely returns s without quotes if that is safe in block style, otherwise in double
// quotes. It quotes fewer strings than [Quote], because its output is the rendered tree, which people read
// and which has no checksum.
func encodeLoosely(s string) string {
	if canBePlain(s) {
		return s
	}
	return doubleQuoted(s, isPrintable, true)
}

// canBePlain reports whether every YAML reader parses s without quotes as a string.
func canBePlain(s string) bool {
	if s == "" || len(s) > 1024 && strings.ContainsAny(s, "\"'") || !unquotedStart(s) || isReserved(s) || isNumeric(s) || hasDirectives(s) {
		return false
	}
	previous := rune(0)
	for _, r := range s {
		if !isPrintable(r) || r == '#' && previous == ' ' || r == ' ' && previous == ':' {
			return false
		}
		previous = r
	}
	return previous != ' ' && previous != ':'
}

func unquotedStart(s string) bool {
	switch c := s[0]; {
	case strings.IndexByte(" ,[]{}#&*!|>'\"%@`=~<?:", c) >= 0:
		return false
	case c == '-':
		return len(s) > 1 && (s[1] == '-' || isWordByte(s[1])) && !strings.HasPrefix(s, "---")
	default:
		return true
	}
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// isReserved reports whether some YAML reader parses s as a boolean or null.
func isReserved(s string) bool {
	if len(s) > 5 {
		return false
	}
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	}
	return false
}

// isNumeric reports whether s may be a number, a time or a date in YAML 1.1 or 1.2: s begins like such a
// value, and has only characters that such values may have.
func isNumeric(s string) bool {
	if c := s[0]; c != '+' && c != '-' && c != '.' && (c < '0' || c > '9') {
		return false
	}
	return strings.Trim(s, "0123456789abcdefABCDEFxXoO+-.:_ tTzZinIN") == ""
}

func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case int:
		return strconv.Itoa(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case json.Number:
		return v.String()
	default:
		panic(fmt.Sprintf("yamlnode: cannot encode %T", v))
	}
}

// Append appends a document to a stream of YAML documents. It adds a marker before the document
// unless the stream is empty.
func Append(stream, document []byte) []byte {
	if len(stream) == 0 {
		return document
	}
	out := bytes.Clone(stream)
	if out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	return append(append(out, "---\n"...), document...)
}

// DeleteDocuments returns a stream without the documents that contain one of the given lines. The
// first line is 1.
func DeleteDocuments(stream []byte, lines []int) []byte {
	var out []byte
	var doc []byte
	first, n := 1, 0
	flush := func() {
		remove := slices.ContainsFunc(lines, func(line int) bool { return line >= first && line <= n })
		if !remove {
			out = append(out, doc...)
		}
		doc, first = nil, n+1
	}
	for line := range bytes.Lines(stream) {
		if n++; bytes.HasPrefix(line, []byte("---")) && (len(bytes.TrimSpace(line)) == 3 || line[3] == ' ') {
			n--
			flush()
			n++
		}
		doc = append(doc, line...)
	}
	flush()
	if rest, ok := bytes.CutPrefix(out, []byte("---\n")); ok && !bytes.HasPrefix(stream, []byte("---\n")) {
		return rest
	}
	return out
}

// HasDocuments reports whether a stream contains a document, and not only comments.
func HasDocuments(stream []byte) bool {
	for line := range bytes.Lines(stream) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && string(line) != "---" {
			return true
		}
	}
	return false
}

// Quote returns s as a YAML scalar on one line. It omits quotes if every YAML reader parses the plain scalar
// as the string s. Otherwise, it uses double quotes. The result is valid in flow and block style.
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

// isPlainKey reports whether the key s needs no quotes. It is stricter than the YAML specification,
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
