package bundle

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v2"
)

// blockParser reads the block style that tools write manifests in: mappings
// with plain or quoted keys, sequences, scalars of every style. It is several
// times as fast as the full parser, gives the same values, and knows when a
// text is beyond it: then it gives up, and the full parser reads the whole.
type blockParser struct {
	data []byte
	off  int // of the content that is next
	col  int // its column
	end  bool
	bad  bool // beyond this parser
	deep int
}

// decodeBlock returns the documents of data that are not empty. It reports
// false where the text is beyond it, or wrong.
func decodeBlock(data []byte) ([]any, bool) {
	if !simpleText(data) {
		return nil, false
	}
	var docs []any
	for len(data) > 0 {
		var doc []byte
		doc, data = cutDocument(data)
		p := &blockParser{data: doc}
		p.line(0)
		if p.end {
			continue
		}
		v := p.block(-1)
		if p.bad || !p.end {
			return nil, false
		}
		if v != nil {
			docs = append(docs, v)
		}
	}
	return docs, true
}

// simpleText reports whether data holds nothing that counts as a line break
// but "\n", no control characters and nothing that is not UTF-8.
func simpleText(data []byte) bool {
	if !utf8.Valid(data) || bytes.HasPrefix(data, []byte("\ufeff")) || len(data) > 0 && data[len(data)-1] != '\n' {
		return false
	}
	for i, c := range data {
		switch {
		case c < ' ' && c != '\n' && c != '\t', c == 0x7f:
			return false
		case c == 0xc2 && data[i+1] < 0xa0, c == 0xe2 && data[i+1] == 0x80 && (data[i+2] == 0xa8 || data[i+2] == 0xa9), c == 0xef && data[i+1] == 0xbb || c == 0xef && data[i+1] == 0xbf:
			return false
		}
	}
	return true
}

// cutDocument returns the text up to the next line that is "---", and what
// follows it.
func cutDocument(data []byte) (doc, rest []byte) {
	at := 0
	for at < len(data) {
		end := at + bytes.IndexByte(data[at:], '\n') + 1
		if bytes.Equal(bytes.TrimRight(data[at:end], " \n"), []byte("---")) {
			return data[:at], data[end:]
		}
		at = end
	}
	return data, nil
}

// line moves to the next content at or after the line that begins at off.
func (p *blockParser) line(off int) {
	for off < len(p.data) {
		start := off
		for p.data[off] == ' ' {
			off++
		}
		switch c := p.data[off]; {
		case c == '\n':
			off++
		case c == '#':
			off += bytes.IndexByte(p.data[off:], '\n') + 1
		default:
			p.off, p.col = off, off-start
			if c == '\t' || p.col == 0 && marker(p.data[off:]) {
				p.bad = true
			}
			return
		}
	}
	p.off, p.col, p.end = len(p.data), -1, true
}

// marker reports whether a line marks the beginning or end of a document, or
// is a directive.
func marker(line []byte) bool {
	return bytes.HasPrefix(line, []byte("---")) || bytes.HasPrefix(line, []byte("...")) || line[0] == '%'
}

// fail gives up.
func (p *blockParser) fail() any {
	p.bad, p.end = true, true
	return nil
}

// block reads the node at the cursor, which belongs to one in column parent.
func (p *blockParser) block(parent int) any {
	if p.deep++; p.deep > maxDepth {
		return p.fail()
	}
	defer func() { p.deep-- }()
	if p.dash() {
		return p.sequence(p.col)
	}
	if _, _, ok := p.key(); ok {
		return p.mapping(p.col)
	}
	return p.scalar(parent)
}

// dash reports whether a sequence's item begins at the cursor.
func (p *blockParser) dash() bool {
	return !p.end && p.data[p.off] == '-' && (p.data[p.off+1] == ' ' || p.data[p.off+1] == '\n')
}

func (p *blockParser) sequence(col int) any {
	out := []any{}
	for !p.end && !p.bad && p.col == col && p.dash() {
		start := p.off
		p.off++
		if p.rest() {
			p.line(p.off)
			if !p.end && p.col > col {
				out = append(out, p.block(col))
			} else {
				out = append(out, nil)
			}
			continue
		}
		p.col = col + p.off - start
		out = append(out, p.block(col))
	}
	if !p.end && p.col > col {
		return p.fail()
	}
	return out
}

// rest skips blanks and reports whether the line ends, with or without a
// comment; then the cursor is at its end.
func (p *blockParser) rest() bool {
	from := p.off
	for p.data[p.off] == ' ' {
		p.off++
	}
	switch c := p.data[p.off]; {
	case c == '\n':
		return true
	case c == '#' && p.off > from:
		p.off += bytes.IndexByte(p.data[p.off:], '\n')
		return true
	case c == '\t':
		p.fail()
	}
	return false
}

func (p *blockParser) mapping(col int) any {
	out := map[string]any{}
	for !p.end && !p.bad && p.col == col {
		name, next, ok := p.key()
		if _, twice := out[name]; !ok || twice {
			return p.fail()
		}
		p.off = next
		if !p.rest() {
			out[name] = p.scalar(col)
			continue
		}
		p.line(p.off)
		switch {
		case !p.end && p.col > col, !p.end && p.col == col && p.dash():
			out[name] = p.block(col)
		default:
			out[name] = nil
		}
	}
	if !p.end && p.col > col {
		return p.fail()
	}
	return out
}

// key returns the key at the cursor and the offset behind its colon. A key
// that is not surely a string is none.
func (p *blockParser) key() (name string, next int, ok bool) {
	if p.end {
		return "", 0, false
	}
	i := p.off
	if q := p.data[i]; q == '"' || q == '\'' {
		line := p.data[i+1 : i+bytes.IndexByte(p.data[i:], '\n')]
		length := bytes.IndexByte(line, q)
		if length < 0 || bytes.IndexByte(line[:length], '\\') >= 0 {
			return "", 0, false
		}
		end := i + 1 + length
		name = string(line[:length])
		i = end + 1
	} else {
		for keyByte(p.data[i]) {
			i++
		}
		name = string(p.data[p.off:i])
		if name == "" || !certain(name) {
			return "", 0, false
		}
	}
	if p.data[i] != ':' || p.data[i+1] != ' ' && p.data[i+1] != '\n' || i-p.off > 1000 {
		return "", 0, false
	}
	return name, i + 1, true
}

func keyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c == '/' || c == '$'
}

// certain reports whether a plain text can be nothing but a string.
func certain(s string) bool {
	c := s[0]
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
		if len(s) > 5 || strings.IndexByte("yYnNtTfFoO", c) < 0 {
			return true
		}
		switch s {
		case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF",
			"true", "True", "TRUE", "false", "False", "FALSE", "null", "Null", "NULL":
			return false
		}
		return true
	}
	return c == '$' || c == '_' || c == '/'
}

// scalar reads the value at the cursor, which belongs to a node in column
// parent, and moves to the next content.
func (p *blockParser) scalar(parent int) any {
	if p.bad {
		return nil
	}
	switch c := p.data[p.off]; c {
	case '|', '>':
		return p.blockScalar(parent)
	case '"':
		return p.quoted(parent, '"')
	case '\'':
		return p.quoted(parent, '\'')
	case '{', '[':
		return p.emptyFlow(c)
	case '&', '*', '!', '%', '@', '`', '#', ',', ']', '}':
		return p.fail()
	case '-', '?', ':':
		if next := p.data[p.off+1]; next == ' ' || next == '\n' {
			return p.fail()
		}
	}
	return p.plain(parent)
}

// emptyFlow reads {} and []; other flow collections are beyond this parser.
func (p *blockParser) emptyFlow(open byte) any {
	closing := byte('}')
	var v any = map[string]any{}
	if open == '[' {
		closing, v = ']', []any{}
	}
	if p.data[p.off+1] != closing {
		return p.fail()
	}
	p.off += 2
	if !p.rest() {
		return p.fail()
	}
	p.line(p.off)
	return v
}

// plain reads a plain scalar, which goes on in the lines that are deeper than
// parent.
func (p *blockParser) plain(parent int) any {
	end := p.off + bytes.IndexByte(p.data[p.off:], '\n')
	first, more, ok := plainLine(p.data[p.off:end])
	if !ok {
		return p.fail()
	}
	if !more {
		p.line(end)
		if !p.end && p.col > parent {
			return p.fail() // a comment in the middle of a scalar
		}
		return p.resolve(first)
	}
	var text strings.Builder
	text.WriteString(first)
	breaks, lines := 0, 1
	for at := end + 1; ; {
		p.off, p.end, p.col = at, at >= len(p.data), -1
		if p.end {
			break
		}
		lineEnd := at + bytes.IndexByte(p.data[at:], '\n')
		line := bytes.TrimLeft(p.data[at:lineEnd], " ")
		if len(line) == 0 {
			breaks, at = breaks+1, lineEnd+1
			continue
		}
		if indent := lineEnd - at - len(line); indent <= parent || indent == 0 {
			p.line(at)
			break
		}
		next, goesOn, ok := plainLine(line)
		if !ok || line[0] == '#' || !goesOn {
			return p.fail()
		}
		fold(&text, breaks)
		text.WriteString(next)
		breaks, lines, at = 0, lines+1, lineEnd+1
	}
	if lines == 1 {
		return p.resolve(first)
	}
	return text.String()
}

// fold writes what stands for the break between two lines of a scalar, with
// blank lines in between.
func fold(text *strings.Builder, blank int) {
	if blank == 0 {
		text.WriteByte(' ')
	}
	for range blank {
		text.WriteByte('\n')
	}
}

// plainLine returns one line of a plain scalar without trailing blanks. more
// is false where a comment ends it, ok where the line is no such thing.
func plainLine(line []byte) (text string, more, ok bool) {
	more = true
	for i, c := range line {
		switch {
		case c == '\t', c == ':' && (i+1 == len(line) || line[i+1] == ' '):
			return "", false, false
		case c == '#' && i > 0 && line[i-1] == ' ':
			return string(bytes.TrimRight(line[:i], " ")), false, true
		}
	}
	return string(bytes.TrimRight(line, " ")), more, true
}

// resolve returns what a plain scalar of one line means.
func (p *blockParser) resolve(s string) any {
	if certain(s) {
		return s
	}
	switch s {
	case "true":
		return true
	case "false":
		return false
	case "null", "~":
		return nil
	}
	if c := s[0]; len(s) < 18 && (c >= '1' && c <= '9' || s == "0") {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil && !strings.Contains(s, "_") {
			return i
		}
	}
	if strings.IndexByte("0123456789+-.yYnNtTfFoO<~=", s[0]) < 0 {
		return s
	}
	var v any
	if err := yaml.Unmarshal([]byte(s), &v); err != nil {
		return p.fail()
	}
	v, err := scalar(v)
	if err != nil {
		return p.fail()
	}
	return v
}

// quoted reads a scalar in quotes, over as many lines as it has.
func (p *blockParser) quoted(parent int, quote byte) any {
	var text strings.Builder
	i := p.off + 1
	for i < len(p.data) {
		switch c := p.data[i]; {
		case c == quote && quote == '\'' && p.data[i+1] == '\'':
			text.WriteByte('\'')
			i += 2
		case c == quote:
			p.off = i + 1
			if !p.rest() {
				return p.fail()
			}
			p.line(p.off)
			if !p.end && p.col > parent {
				return p.fail()
			}
			return text.String()
		case c == '\\' && quote == '"':
			n := p.escape(&text, i+1)
			if n == 0 {
				return p.fail()
			}
			i += 1 + n
		case c == '\t':
			return p.fail()
		case c == '\n':
			next := p.foldQuoted(&text, i)
			if next < 0 {
				return p.fail()
			}
			i = next
		case c == ' ':
			j := i
			for p.data[j] == ' ' {
				j++
			}
			if p.data[j] != '\n' {
				text.Write(p.data[i:j])
			}
			i = j
		default:
			text.WriteByte(c)
			i++
		}
	}
	return p.fail()
}

// foldQuoted writes what stands for the line break at i, and returns the
// offset of the content that follows.
func (p *blockParser) foldQuoted(text *strings.Builder, i int) int {
	blank := -1
	for i < len(p.data) && p.data[i] == '\n' {
		blank++
		for i++; i < len(p.data) && p.data[i] == ' '; {
			i++
		}
	}
	if i >= len(p.data) || p.data[i] == '\t' || p.data[i-1] == '\n' && marker(p.data[i:]) {
		return -1
	}
	fold(text, blank)
	return i
}

// escape writes what the escape sequence at i, behind the backslash, stands
// for, and returns its length; 0 where it is unknown.
func (p *blockParser) escape(text *strings.Builder, i int) int {
	const plain = "\"\\/ abefnrtv0"
	const meant = "\"\\/ \a\b\x1b\f\n\r\t\v\x00"
	c := p.data[i]
	if at := strings.IndexByte(plain, c); at >= 0 {
		text.WriteByte(meant[at])
		return 1
	}
	if c == '\n' {
		j := i + 1
		for j < len(p.data) && p.data[j] == ' ' {
			j++
		}
		if j >= len(p.data) || p.data[j] == '\n' || p.data[j] == '\t' || j == i+1 {
			return 0
		}
		return j - i
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if digits == 0 || i+1+digits > len(p.data) {
		return 0
	}
	n, err := strconv.ParseUint(string(p.data[i+1:i+1+digits]), 16, 32)
	if err != nil || n > utf8.MaxRune || n >= 0xd800 && n <= 0xdfff {
		return 0
	}
	text.WriteRune(rune(n))
	return 1 + digits
}

// blockScalar reads a literal or folded block.
func (p *blockParser) blockScalar(parent int) any {
	folded := p.data[p.off] == '>'
	chomp := byte(0)
	p.off++
	if c := p.data[p.off]; c == '-' || c == '+' {
		chomp = c
		p.off++
	}
	if p.data[p.off] != '\n' {
		return p.fail()
	}
	at := p.off + 1
	var lines []string
	indent, last := -1, 0 // column of the text; number of lines up to the last that is not blank
	for at < len(p.data) {
		end := at + bytes.IndexByte(p.data[at:], '\n')
		line := p.data[at:end]
		content := len(line) - len(bytes.TrimLeft(line, " "))
		switch {
		case content == len(line):
			if indent < 0 && content > 0 {
				return p.fail() // blanks that might set the indentation
			}
			lines = append(lines, string(line[min(len(line), max(indent, 0)):]))
			if indent >= 0 && content > indent {
				last = len(lines)
			}
			at = end + 1
			continue
		case indent < 0 && content > parent && content > 0:
			if line[content] == '\t' {
				return p.fail()
			}
			indent = content
		}
		if indent < 0 || content < indent {
			break
		}
		text := string(line[indent:])
		if folded && (text[0] == ' ' || text[0] == '\t') {
			return p.fail()
		}
		lines = append(lines, text)
		last = len(lines)
		at = end + 1
	}
	p.line(at)
	if !p.end && p.col > parent {
		return p.fail()
	}
	return joinBlock(lines, last, folded, chomp)
}

// joinBlock puts the lines of a block together; those from last on are blank.
func joinBlock(lines []string, last int, folded bool, chomp byte) string {
	var text strings.Builder
	if !folded {
		text.WriteString(strings.Join(lines[:last], "\n"))
	}
	blank := 0
	for i, line := range lines[:last] {
		if !folded {
			break
		}
		if line == "" {
			blank++
			continue
		}
		if i > 0 {
			if i == blank { // nothing but blank lines before
				text.WriteString(strings.Repeat("\n", blank))
			} else {
				fold(&text, blank)
			}
		}
		text.WriteString(line)
		blank = 0
	}
	switch {
	case chomp == '+':
		if last > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(strings.Repeat("\n", len(lines)-last))
	case chomp == 0 && last > 0:
		text.WriteByte('\n')
	}
	return text.String()
}
