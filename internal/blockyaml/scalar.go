package blockyaml

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// scalar reads the value at the cursor, which belongs to a node in column
// parent, and moves to the next content.
func (p *parser) scalar(parent int) any {
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
func (p *parser) emptyFlow(open byte) any {
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
func (p *parser) plain(parent int) any {
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
func (p *parser) resolve(s string) any {
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
	if strings.HasPrefix(s, "---") || strings.HasPrefix(s, "...") {
		return p.fail() // by itself it would be a marker
	}
	v, ok := p.meaning(s)
	if !ok {
		return p.fail()
	}
	return v
}

// quoted reads a scalar in quotes, over as many lines as it has.
func (p *parser) quoted(parent int, quote byte) any {
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
func (p *parser) foldQuoted(text *strings.Builder, i int) int {
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
func (p *parser) escape(text *strings.Builder, i int) int {
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
func (p *parser) blockScalar(parent int) any {
	folded := p.data[p.off] == '>'
	p.off++
	chomp, indent, ok := p.blockHeader(parent)
	if !ok {
		return p.fail()
	}
	at := p.off + 1
	var lines []string
	last := 0 // number of lines up to the last that is not blank
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
				if folded {
					return p.fail() // blanks that are text
				}
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

// blockHeader reads what stands behind the mark of a block: how it ends, and
// by how much it is indented; the column of the text is -1 where that is not
// said.
func (p *parser) blockHeader(parent int) (chomp byte, indent int, ok bool) {
	indent = -1
	for range 2 {
		switch c := p.data[p.off]; {
		case (c == '-' || c == '+') && chomp == 0:
			chomp = c
			p.off++
		case c >= '1' && c <= '9' && indent < 0:
			indent = max(parent, 0) + int(c-'0')
			p.off++
		}
	}
	return chomp, indent, p.data[p.off] == '\n'
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
