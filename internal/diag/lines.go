package diag

import "bytes"

// Lines converts offsets in a text to positions. If the offsets ascend, the text is scanned only
// once.
type Lines struct {
	File string
	Text []byte
	Line int // number of the first line

	first             int // offset of the beginning of the first line; may be negative after Drop
	at, start, breaks int // last offset, offset of the beginning of its line, and number of line breaks before it
}

// Pos returns the position of an offset.
func (l *Lines) Pos(at int) Pos {
	if at < l.start {
		l.at, l.start, l.breaks = 0, l.first, 0
	}
	if at > l.at {
		passed := l.Text[l.at:at]
		if last := bytes.LastIndexByte(passed, '\n'); last >= 0 {
			l.breaks += bytes.Count(passed, []byte{'\n'})
			l.start = l.at + last + 1
		}
		l.at = at
	}
	return Pos{File: l.File, Line: l.Line + l.breaks, Col: at - l.start + 1}
}

// Drop removes the first n bytes of Text, for a text that is read in parts. Later offsets count
// from the new beginning.
func (l *Lines) Drop(n int) {
	l.Line = l.Pos(n).Line
	l.first = l.start - n
	l.at, l.start, l.breaks = 0, l.first, 0
	l.Text = append(l.Text[:0], l.Text[n:]...)
}
