package blockyaml

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// simple reports whether text holds nothing that counts as a line break but
// "\n", no control characters but tabs, which it tells of, and nothing that is
// not UTF-8.
func simple(text []byte) (tabs, ok bool) {
	const step = 32
	ascii := true
	rest := text
	for ; len(rest) >= step; rest = rest[step:] {
		some := rest[:step:step]
		if odd(some)|odd(some[8:])|odd(some[16:])|odd(some[24:]) == 0 {
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
	return tabs, utf8.Valid(text) && !special(text)
}

// odd returns 0 where the first eight bytes are printable ASCII and "\n". To a
// byte below 0x80, the additions set the top bit: 1 if it is 0x7f, 0x60 if it
// is at least a blank, 0x7f if it is not 0.
func odd(text []byte) uint64 {
	const ones = 0x0101010101010101
	w := binary.LittleEndian.Uint64(text)
	other := (w ^ '\n'*ones) + 0x7f*ones
	return (w | (w + ones) | ^(w+0x60*ones)&other) & (0x80 * ones)
}

// plainBytes looks at the bytes that are below 0x80, and reports whether there
// are others.
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

// special reports whether text, which is UTF-8, holds control characters, line
// separators or byte order marks beyond ASCII, or what begins like one.
func special(text []byte) bool {
	return follows(text, 0xc2, func(next []byte) bool { return next[0] < 0xa0 }) ||
		follows(text, 0xe2, func(next []byte) bool { return next[0] == 0x80 && (next[1] == 0xa8 || next[1] == 0xa9) }) ||
		follows(text, 0xef, func(next []byte) bool { return next[0] == 0xbb || next[0] == 0xbf })
}

// follows reports whether what stands behind any byte lead is odd.
func follows(text []byte, lead byte, odd func(next []byte) bool) bool {
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
