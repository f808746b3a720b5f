// Package blockyaml reads the block style that tools write YAML in: mappings
// with plain or quoted keys, sequences, scalars of every style. It is several
// times as fast as a full parser, gives the same values, and knows when a text
// is beyond it: then it gives up, and a full parser must read the whole. Its
// users prove both with tests of their own.
//
// Start from [Decode].
package blockyaml

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const maxDepth = 100

// parser reads one document.
type parser struct {
	data    []byte
	meaning func(string) (any, bool)
	off     int // of the content that is next
	col     int // its column
	end     bool
	bad     bool // beyond this parser
	deep    int
}

// Decode returns the documents of data that are not empty: map[string]any,
// []any, string, bool, nil, int64, and whatever meaning returns for a plain
// scalar that may be no string. It reports false where the text is beyond it,
// or wrong, or where meaning reports false.
func Decode(data []byte, meaning func(text string) (value any, ok bool)) ([]any, bool) {
	if !simpleText(data) {
		return nil, false
	}
	var docs []any
	for len(data) > 0 {
		var doc []byte
		doc, data = cutDocument(data)
		p := &parser{data: doc, meaning: meaning}
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
func (p *parser) line(off int) {
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
func (p *parser) fail() any {
	p.bad, p.end = true, true
	return nil
}

// block reads the node at the cursor, which belongs to one in column parent.
func (p *parser) block(parent int) any {
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
func (p *parser) dash() bool {
	return !p.end && p.data[p.off] == '-' && (p.data[p.off+1] == ' ' || p.data[p.off+1] == '\n')
}

func (p *parser) sequence(col int) any {
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
func (p *parser) rest() bool {
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

func (p *parser) mapping(col int) any {
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
func (p *parser) key() (name string, next int, ok bool) {
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
