package fbc

import "encoding/binary"

// appendText appends a JSON string, spelled as encoding/json does, though "<",
// ">" and "&" stand for themselves. s must be UTF-8.
func appendText(out, s []byte) []byte {
	const step = 8
	out = append(out, '"')
	from := 0
	for i := 0; i < len(s); {
		if len(s)-i >= step && bare(s[i:]) {
			i += step
			continue
		}
		for end := min(i+step, len(s)); i < end; {
			size := escaped(s[i:])
			if size > 0 {
				out = append(out, s[from:i]...)
				out = appendEscape(out, s[i:i+size])
				from = i + size
			}
			i += max(size, 1)
		}
	}
	return append(append(out, s[from:]...), '"')
}

// bare reports whether the first eight bytes are ASCII that stands for itself
// in a JSON string. To a byte below 0x80, the additions set the top bit: 0x60 if
// it is at least a blank, 0x7f if it is not 0.
func bare(s []byte) bool {
	const ones = 0x0101010101010101
	w := binary.LittleEndian.Uint64(s)
	fine := (w + 0x60*ones) & ((w ^ '"'*ones) + 0x7f*ones) & ((w ^ '\\'*ones) + 0x7f*ones)
	return (w|^fine)&(0x80*ones) == 0
}

// escaped returns the size of the character that s begins with if it cannot
// stand for itself in a JSON string, else 0.
func escaped(s []byte) int {
	switch c := s[0]; {
	case c < ' ', c == '"', c == '\\':
		return 1
	case c == 0xe2 && s[1] == 0x80 && s[2]&^1 == 0xa8: // line and paragraph separator
		return 3
	}
	return 0
}

// appendEscape appends what stands for such a character.
func appendEscape(out, char []byte) []byte {
	const hex = "0123456789abcdef"
	switch c := char[0]; c {
	case '"', '\\':
		return append(out, '\\', c)
	case '\b':
		return append(out, `\b`...)
	case '\f':
		return append(out, `\f`...)
	case '\n':
		return append(out, `\n`...)
	case '\r':
		return append(out, `\r`...)
	case '\t':
		return append(out, `\t`...)
	case 0xe2:
		return append(append(out, `\u202`...), hex[char[2]&15])
	default:
		return append(append(out, `\u00`...), hex[c>>4], hex[c&15])
	}
}
