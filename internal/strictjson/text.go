package strictjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Eight bytes are looked at together: each constant holds the same byte eight
// times.
const (
	ones     = 0x0101010101010101
	highs    = 0x80 * ones
	spaces   = ' ' * ones
	quotes   = '"' * ones
	slashes  = '\\' * ones
	wordSize = 8
)

// special returns a word in which the lowest bit that is set lies in the first
// byte of x that is a quote, a backslash, a control character or no ASCII; 0
// where there is no such byte. What lies above the lowest bit means nothing.
func special(x uint64) uint64 {
	return (x | (x - spaces) | ((x ^ quotes) - ones) | ((x ^ slashes) - ones)) & highs
}

// skipSpaces is skipBlank behind a blank, where many spaces may follow.
func skipSpaces(buf []byte, i int) int {
	for ; i+wordSize <= len(buf); i += wordSize {
		if x := binary.LittleEndian.Uint64(buf[i:]) ^ spaces; x != 0 {
			return i + bits.TrailingZeros64(x)>>3
		}
	}
	return i
}

// text passes over the string whose first character is at i, and returns the
// place of the quote that ends it, or -1.
func (s *Scanner) text(i int) int {
	for {
		i = plainText(s.buf, i)
		if i == len(s.buf) {
			var more bool
			if i, more = s.refill(i); !more {
				s.cut(len(s.buf))
				return -1
			}
			continue
		}
		switch c := s.buf[i]; {
		case c == '"':
			return i
		case c == '\\':
			s.escaped = true
			i = s.escape(i)
		case c < ' ':
			s.invalid(i, "in string (expecting non-control character)")
			return -1
		default:
			i = s.rune(i)
		}
		if i < 0 {
			return -1
		}
	}
}

// plainEnd returns the place of the quote that ends the string which begins at
// i, where the string is there and holds nothing but plain ASCII; else 0.
func plainEnd(buf []byte, i int) int {
	if i >= len(buf) || buf[i] != '"' {
		return 0
	}
	for i++; i+wordSize <= len(buf); i += wordSize {
		if m := special(binary.LittleEndian.Uint64(buf[i:])); m != 0 {
			if i += bits.TrailingZeros64(m) >> 3; buf[i] == '"' {
				return i
			}
			return 0
		}
	}
	return 0
}

// plainText returns the first place from i on that holds a quote, a backslash,
// a control character or no ASCII, len(buf) where there is none.
func plainText(buf []byte, i int) int {
	for ; i+wordSize <= len(buf); i += wordSize {
		if m := special(binary.LittleEndian.Uint64(buf[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for ; i < len(buf); i++ {
		if c := buf[i]; c == '"' || c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

// rune passes over one character that is not ASCII.
func (s *Scanner) rune(i int) int {
	for {
		if r, n := utf8.DecodeRune(s.buf[i:]); r != utf8.RuneError || n > 1 {
			return i + n
		}
		if utf8.FullRune(s.buf[i:]) {
			s.failAt(i, "invalid UTF-8")
			return -1
		}
		var more bool
		if i, more = s.refill(i); !more {
			s.cut(len(s.buf))
			return -1
		}
	}
}

// escape passes over the escape at i.
func (s *Scanner) escape(i int) int {
	if i+1 < len(s.buf) && s.buf[i+1] != 'u' {
		if unescaped(s.buf[i+1]) != 0 {
			return i + 2
		}
	}
	for {
		n, bad := escapeSize(s.buf[i:])
		if bad != "" {
			s.failAt(i, "invalid "+bad+" in string")
			return -1
		}
		if n > 0 {
			return i + n
		}
		var more bool
		if i, more = s.refill(i); !more {
			s.cut(len(s.buf))
			return -1
		}
	}
}

// unescaped returns what a backslash and c stand for, 0 where they do not for
// one byte.
func unescaped(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	default:
		return 0
	}
}

// escapeSize returns how many bytes the escape at the beginning of b has, 0
// where more must be read to tell, or what is bad.
func escapeSize(b []byte) (n int, bad string) {
	if len(b) < 2 {
		return 0, ""
	}
	if b[1] != 'u' {
		if unescaped(b[1]) == 0 {
			return 0, "escape sequence " + shown(b[:2])
		}
		return 2, ""
	}
	first, ok := unit(b)
	switch {
	case !ok && len(b) < 6 && mayBeUnit(b, false):
		return 0, ""
	case !ok:
		return 0, "escape sequence " + shown(b[:unitSize(b)])
	case !utf16.IsSurrogate(first):
		return 6, ""
	}
	second, ok := unit(b[6:])
	switch {
	case !ok && len(b) < 12 && mayBeUnit(b[6:], true):
		return 0, ""
	case !ok || utf16.DecodeRune(first, second) == utf8.RuneError:
		return 0, "surrogate pair " + shown(b[:6])
	default:
		return 12, ""
	}
}

// unit returns the UTF-16 unit that the escape at the beginning of b stands for,
// and whether there is one.
func unit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		h, ok := hex(c)
		if !ok {
			return 0, false
		}
		r = r<<4 | h
	}
	return r, true
}

// mayBeUnit reports whether b, of fewer than six bytes, can become such an
// escape: with the second half of a surrogate pair where low is set.
func mayBeUnit(b []byte, low bool) bool {
	for i, c := range b {
		h, ok := hex(c)
		if i == 0 && c != '\\' || i == 1 && c != 'u' || i > 1 && !ok || low && (i == 2 && h != 0xd || i == 3 && h < 0xc) {
			return false
		}
	}
	return true
}

// unitSize returns how many bytes of b, an escape with a wrong digit, there are
// up to that.
func unitSize(b []byte) int {
	for i := 2; i < len(b); i++ {
		if _, ok := hex(b[i]); !ok {
			return i
		}
	}
	return len(b)
}

func hex(c byte) (rune, bool) {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0'), true
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10, true
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10, true
	default:
		return 0, false
	}
}

// AppendUnescaped appends what stands between the quotes of a string that was
// read before, or a part of it, without escapes.
func AppendUnescaped(out, text []byte) []byte {
	for i := 0; i < len(text); {
		plain := bytes.IndexByte(text[i:], '\\')
		if plain < 0 {
			return append(out, text[i:]...)
		}
		out = append(out, text[i:i+plain]...)
		i += plain
		if c := unescaped(text[i+1]); c != 0 {
			out, i = append(out, c), i+2
			continue
		}
		r, _ := unit(text[i:])
		i += 6
		if utf16.IsSurrogate(r) {
			second, _ := unit(text[i:])
			r, i = utf16.DecodeRune(r, second), i+6
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// AppendCompact appends a value that was read before without the blanks between
// its parts.
func AppendCompact(out, value []byte) []byte {
	for i := 0; i < len(value); {
		i = skipBlank(value, i)
		start := i
		for i < len(value) && value[i] > ' ' {
			if value[i] == '"' {
				i = stringEnd(value, i)
			}
			i++
		}
		out = append(out, value[start:i]...)
	}
	return out
}

// stringEnd returns where the string that begins at i ends, at its quote.
func stringEnd(value []byte, i int) int {
	for i++; value[i] != '"'; i++ {
		if value[i] == '\\' {
			i++
		}
	}
	return i
}
