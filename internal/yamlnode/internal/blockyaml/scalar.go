package blockyaml

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
)

// scalar reads the scalar, {} or [] at the cursor, passes it to the sink, and moves the cursor to
// the next content. parent is the column of the parent node.
func (p *parser) scalar(parent int) {
	start := p.off
	switch c := p.data[p.off]; c {
	case '|', '>':
		p.count()
		p.blockScalar(parent)
	case '"', '\'':
		p.count()
		p.quoted(parent)
	case '{', '[':
		p.emptyFlow(c + 2) // '{'+2 is '}', '['+2 is ']'
		return
	case '&', '*', '!', '%', '@', '`', '#', ',', ']', '}':
		p.fail()
	case '-', '?', ':':
		if next := p.data[p.off+1]; next == ' ' || next == '\n' {
			p.fail()
			break
		}
		p.plain(parent)
		return
	default:
		p.plain(parent)
		return
	}
	if p.skim == 0 && !p.bad {
		p.sink.Text(p.text, start)
	}
}

// emptyFlow reads {} or []. Other flow collections are not supported.
func (p *parser) emptyFlow(closing byte) {
	if p.data[p.off+1] != closing {
		p.fail()
		return
	}
	p.open(closing - 2)
	p.close(closing)
	p.off += 2
	if !p.skipToLineEnd() {
		p.fail()
		return
	}
	p.line(p.off)
}

// plain reads a plain scalar. The scalar continues on the next lines while they are indented more
// than parent.
func (p *parser) plain(parent int) {
	p.count()
	start := p.off
	end := start + bytes.IndexByte(p.data[start:], '\n')
	first, more, ok := p.plainLine(p.data[start:end])
	if !ok {
		p.fail()
		return
	}
	p.line(end + 1)
	switch {
	case p.bad, !p.end && p.col > parent && !more:
		p.fail() // unsupported: a comment ends the scalar
	case !p.end && p.col > parent && p.col > 0:
		p.text = append(p.text[:0], first...)
		p.plainLines(parent, end+1)
		if p.skim == 0 && !p.bad {
			p.sink.Text(p.text, start)
		}
	default:
		p.resolve(first, start)
	}
}

// plainLines adds lines to p.text, beginning at offset at, as long as they are indented more than parent.
func (p *parser) plainLines(parent, at int) {
	breaks := 0
	for at < len(p.data) {
		col := countBlanks(p.data[at:])
		end := at + col + bytes.IndexByte(p.data[at+col:], '\n')
		line := p.data[at+col : end]
		if len(line) == 0 {
			breaks, at = breaks+1, end+1
			continue
		}
		if col <= parent || col == 0 {
			break
		}
		next, more, ok := p.plainLine(line)
		if !ok || line[0] == '#' || !more {
			p.fail()
			return
		}
		p.fold(breaks)
		p.text = append(p.text, next...)
		breaks, at = 0, end+1
	}
	p.line(at)
}

// fold adds the replacement for a line break within a scalar: a space or, if there are blank lines,
// one line break for each blank line.
func (p *parser) fold(blank int) {
	if blank == 0 {
		p.text = append(p.text, ' ')
	}
	for range blank {
		p.text = append(p.text, '\n')
	}
}

// plainLine returns one line of a plain scalar without trailing spaces. more is false if the line
// ends with a comment. ok is false if the line is not supported.
func (p *parser) plainLine(line []byte) (text []byte, more, ok bool) {
	more = true
	if i := commentStart(line); i >= 0 {
		line, more = line[:i], false
	}
	for rest := line; ; {
		i := bytes.IndexByte(rest, ':')
		if i < 0 {
			break
		}
		if rest = rest[i+1:]; len(rest) == 0 || rest[0] == ' ' {
			return nil, false, false
		}
	}
	if p.tabs && bytes.IndexByte(line, '\t') >= 0 {
		return nil, false, false
	}
	for len(line) > 0 && line[len(line)-1] == ' ' {
		line = line[:len(line)-1]
	}
	return line, more, true
}

// commentStart returns the offset of the comment in a line that begins with a scalar, or -1 if
// there is none.
func commentStart(line []byte) int {
	for at := 0; ; at++ {
		i := bytes.IndexByte(line[at:], '#')
		if i < 0 {
			return -1
		}
		if at += i; at > 0 && line[at-1] == ' ' {
			return at
		}
	}
}

// resolve determines the type of a plain scalar on one line and passes it to the sink.
func (p *parser) resolve(s []byte, at int) {
	wanted := p.skim == 0
	switch {
	case isCertainString(s):
		if wanted {
			p.sink.Text(s, at)
		}
		return
	case isInteger(s) || string(s) == "true" || string(s) == "false" || string(s) == "null":
		if wanted {
			p.sink.Word(s, at)
		}
		return
	case strings.IndexByte("0123456789+-.yYnNtTfFoO<~=", s[0]) < 0:
		if wanted {
			p.sink.Text(s, at)
		}
		return
	case string(s) == "~":
		if wanted {
			p.sink.Word([]byte("null"), at)
		}
		return
	}
	if bytes.HasPrefix(s, []byte("---")) || bytes.HasPrefix(s, []byte("...")) { // a document marker, if it is alone on a line
		p.fail()
		return
	}
	if !p.sink.Plain(s, at, wanted) {
		p.fail()
	}
}

// isInteger reports whether s is a decimal integer that certainly fits int64: zero, or up to 17
// digits without a leading zero.
func isInteger(s []byte) bool {
	if s[0] == '0' {
		return len(s) == 1
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(s) < 18
}

// quoted reads a quoted scalar, which may have several lines, into p.text.
func (p *parser) quoted(parent int) {
	quote := p.data[p.off]
	start := p.off + 1
	length := bytes.IndexByte(p.data[start:], quote)
	if length < 0 {
		p.fail()
		return
	}
	inside := p.data[start : start+length]
	p.off = start + length + 1
	switch {
	case p.tabs && bytes.IndexByte(inside, '\t') >= 0:
		p.fail()
	case bytes.IndexByte(inside, '\n') < 0 && (quote == '\'' && p.data[p.off] != '\'' || quote == '"' && bytes.IndexByte(inside, '\\') < 0):
		p.text = append(p.text[:0], inside...)
	default:
		p.off = p.unquote(start, quote)
	}
	if p.bad || !p.skipToLineEnd() {
		p.fail()
		return
	}
	p.line(p.off)
	if !p.end && p.col > parent {
		p.fail()
	}
}

// unquote reads the text of a quoted scalar from offset i on into p.text. It returns the offset
// after the closing quote.
func (p *parser) unquote(i int, quote byte) int {
	p.text = p.text[:0]
	fixed := 0 // spaces in p.text before this index are kept at the end of a line
	for i < len(p.data) {
		run := i
		i = p.plainRunEnd(i, quote)
		p.text = append(p.text, p.data[run:i]...)
		switch c := p.data[i]; {
		case c == quote && quote == '\'' && p.data[i+1] == '\'':
			p.text = append(p.text, '\'')
			i += 2
		case c == quote:
			return i + 1
		case c == '\\':
			n := p.escape(i + 1)
			if n == 0 {
				p.fail()
				return i
			}
			fixed = len(p.text)
			i += 1 + n
		case c == '\n':
			for len(p.text) > fixed && p.text[len(p.text)-1] == ' ' {
				p.text = p.text[:len(p.text)-1]
			}
			i = p.foldQuoted(i)
			fixed = len(p.text)
		default:
			p.fail()
		}
		if p.bad {
			return i
		}
	}
	p.fail()
	return i
}

// plainRunEnd returns the offset of the first byte from i on that needs special handling: the
// quote, a line break, a tab or, in double quotes, a backslash. There is always one, because the
// text ends with a line break.
func (p *parser) plainRunEnd(i int, quote byte) int {
	other := byte('\\')
	if quote == '\'' {
		other = quote
	}
	for len(p.data)-i >= 8 {
		w := binary.LittleEndian.Uint64(p.data[i:])
		if found := hasByte(w, quote) | hasByte(w, other) | hasByte(w, '\n') | hasByte(w, '\t'); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
		i += 8
	}
	for c := p.data[i]; c != quote && c != '\n' && c != '\t' && c != other; c = p.data[i] {
		i++
	}
	return i
}

// hasByte returns a word whose lowest set bit is in the first byte of w that equals c. It returns 0
// if no byte does.
func hasByte(w uint64, c byte) uint64 {
	const ones = 0x0101010101010101
	w ^= uint64(c) * ones
	return (w - ones) &^ w & (0x80 * ones)
}

// foldQuoted adds the replacement for the line break at i, and returns the offset of the next
// content.
func (p *parser) foldQuoted(i int) int {
	blank := -1
	for i < len(p.data) && p.data[i] == '\n' {
		blank++
		for i++; i < len(p.data) && p.data[i] == ' '; {
			i++
		}
	}
	if i >= len(p.data) || p.data[i] == '\t' || p.data[i-1] == '\n' && p.marker(i) {
		p.fail()
		return i
	}
	p.fold(blank)
	return i
}

// escape adds the character for the escape sequence at i, which is after the backslash, and returns
// the length of the sequence. It returns 0 for an unknown sequence, and for a slash, which only
// YAML 1.2 escapes.
func (p *parser) escape(i int) int {
	const plain = "\"\\ abefnrtv0"
	const values = "\"\\ \a\b\x1b\f\n\r\t\v\x00"
	c := p.data[i]
	if at := strings.IndexByte(plain, c); at >= 0 {
		p.text = append(p.text, values[at])
		return 1
	}
	digits := 0
	switch c {
	case '\n':
		j := i + 1
		for j < len(p.data) && p.data[j] == ' ' {
			j++
		}
		if j >= len(p.data) || p.data[j] == '\n' || p.data[j] == '\t' || j == i+1 {
			return 0
		}
		return j - i
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	}
	if digits == 0 || i+1+digits > len(p.data) {
		return 0
	}
	n, err := strconv.ParseUint(string(p.data[i+1:i+1+digits]), 16, 32)
	if err != nil || n > utf8.MaxRune || n >= 0xd800 && n <= 0xdfff {
		return 0
	}
	p.text = utf8.AppendRune(p.text, rune(n))
	return 1 + digits
}
