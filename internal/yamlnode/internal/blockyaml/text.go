package blockyaml

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// isSimple reports whether text is valid UTF-8 with "\n" as the only line break, and without
// control characters except tabs. The result tabs reports whether there are tabs.
func isSimple(text []byte) (tabs, ok bool) {
	const step = 32
	ascii := true
	rest := text
	for ; len(rest) >= step; rest = rest[step:] {
		some := rest[:step:step]
		if oddBytes(some)|oddBytes(some[8:])|oddBytes(some[16:])|oddBytes(some[24:]) == 0 {
			continue
		}
		var high bool
		if high, tabs, ok = plainBytes(some, tabs); !ok {
			return tabs, false
		}
		ascii = ascii && !high
	}
	high, tabs, ok := plainBytes(rest, tabs)
	if !ok || ascii && !high {
		return tabs, ok
	}
	return tabs, utf8.Valid(text) && !hasSpecial(text)
}

// oddBytes returns 0 if the first eight bytes of text are printable ASCII or "\n".
// It tests all bytes at once by their top bits. For a byte below 0x80:
//   - Adding 1 sets the top bit only for 0x7f.
//   - Adding 0x60 sets the top bit only for 0x20 and above.
//   - Adding 0x7f sets the top bit for any byte except 0.
func oddBytes(text []byte) uint64 {
	const ones = 0x0101010101010101
	w := binary.LittleEndian.Uint64(text)
	other := (w ^ '\n'*ones) + 0x7f*ones
	return (w | (w + ones) | ^(w+0x60*ones)&other) & (0x80 * ones)
}

// plainBytes checks the bytes of text that are below 0x80. high reports whether text has other bytes. tab is
// true if tabs is true or text has a tab. ok is false if text has a control character other than a tab or a
// line break.
func plainBytes(text []byte, tabs bool) (high, tab, ok bool) {
	for _, c := range text {
		switch {
		case c >= utf8.RuneSelf:
			high = true
		case c == '\t':
			tabs = true
		case c < ' ' && c != '\n', c == 0x7f:
			return high, tabs, false
		}
	}
	return high, tabs, true
}

// hasSpecial reports whether text may contain control characters that are not ASCII, line separators or byte
// order marks. text must be valid UTF-8. The result is also true for some other
// characters with the same first bytes.
func hasSpecial(text []byte) bool {
	return hasFollowing(text, 0xc2, func(next []byte) bool { return next[0] < 0xa0 }) ||
		hasFollowing(text, 0xe2, func(next []byte) bool { return next[0] == 0x80 && (next[1] == 0xa8 || next[1] == 0xa9) }) ||
		hasFollowing(text, 0xef, func(next []byte) bool { return next[0] == 0xbb || next[0] == 0xbf })
}

// hasFollowing reports whether odd returns true for the bytes after any occurrence of lead.
func hasFollowing(text []byte, lead byte, odd func(next []byte) bool) bool {
	for {
		i := bytes.IndexByte(text, lead)
		if i < 0 {
			return false
		}
		if text = text[i+1:]; odd(text) {
			return true
		}
	}
}
