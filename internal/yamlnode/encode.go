package yamlnode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/kobj"
)

// Encode returns v, a [kobj.Object] or what one may hold, as block YAML: keys
// sorted, lists as deep as their key, no line folded. Strings that a YAML 1.1 or
// 1.2 reader could take for something else are quoted. The same value gives the
// same bytes, and both kinds of reader give the value back.
func Encode(v any) []byte {
	e := encoder{out: make([]byte, 0, 4<<10)}
	if o, ok := v.(kobj.Object); ok {
		v = map[string]any(o)
	}
	e.node(v, 0)
	if len(e.out)+len(e.out)/4 < cap(e.out) { // many are kept
		return slices.Clone(e.out)
	}
	return e.out
}

// Marshal returns what encoding/json makes of v, as Encode writes it.
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

// fromJSON returns a JSON value as encoding/json does, with its numbers as they are
// written.
func fromJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// encoder appends YAML to out. A node is written where the cursor stands; one
// of several lines continues at indent and ends with a line break.
type encoder struct {
	out  []byte
	lock bool // as the lock has it: each string is one line, as Quote returns it
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

// sortedKeys allocates once: a tree has many mappings.
func sortedKeys(m map[string]any) []string {
	keys := slices.AppendSeq(make([]string, 0, len(m)), maps.Keys(m))
	slices.Sort(keys)
	return keys
}

// value writes what stands behind the colon of a key in column indent.
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

// quoted returns a string on one line.
func (e *encoder) quoted(s string) string {
	if e.lock {
		return Quote(s)
	}
	return loose(s)
}

// text writes a string: lines as a literal block where that is exact.
func (e *encoder) text(s string, indent int) {
	if e.lock || !strings.Contains(s, "\n") || !literal(s) {
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

// literal reports whether a string of several lines can stand as a block: it
// begins with neither blank nor break, and holds only what readers keep.
func literal(s string) bool {
	if first := s[0]; first == ' ' || first == '\t' || first == '\n' {
		return false
	}
	if strings.Contains(s, "\n\t") || commands(s) {
		return false
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && !printable(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}

// printable leaves out what some reader takes for a line break or drops, and
// what nobody sees.
func printable(r rune) bool {
	return r >= ' ' && r < 0x7f || r > 0xa0 && r != utf8.RuneError && unicode.IsPrint(r) && !inert.Unseen(r)
}

// commands reports whether s holds what must be escaped where it is shown: that
// is possible in double quotes only.
func commands(s string) bool {
	return (strings.Contains(s, "##") || strings.Contains(s, "::")) && inert.Lines(s) != s
}

// loose returns s as it is where that is safe in a block, else in double quotes.
// It quotes less than [Quote]: the tree is for people to read, and no checksum
// is taken of it.
func loose(s string) string {
	if unquoted(s) {
		return s
	}
	return doubleQuoted(s, printable, true)
}

// unquoted reports whether s can stand without quotes and stays a string for
// every reader.
func unquoted(s string) bool {
	if s == "" || len(s) > 1024 && strings.ContainsAny(s, "\"'") || !unquotedStart(s) || reserved(s) || numeric(s) || commands(s) {
		return false
	}
	previous := rune(0)
	for _, r := range s {
		if !printable(r) || r == '#' && previous == ' ' || r == ' ' && previous == ':' {
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

// reserved reports whether some reader takes s for a boolean or null.
func reserved(s string) bool {
	if len(s) > 5 {
		return false
	}
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	}
	return false
}

// numeric reports whether s might be a number, a time or a date in YAML 1.1
// or 1.2: it begins as one and holds nothing that none of them can.
func numeric(s string) bool {
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

// Append returns a stream of YAML documents with another document behind it, after
// a marker unless the stream is empty.
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
