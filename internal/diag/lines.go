package diag

import "bytes"

// Lines converts offsets of a text to positions. Lookups in ascending order scan the text
// only once.
type Lines struct {
	File string
	Text []byte
	Line int // number of the first line

	first             int // offset of the start of the first line; may be negative after Drop
	at, start, breaks int // last offset, the start of its line, and line breaks before
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

// Drop removes the first n bytes of Text and moves the rest to the front, for a text that is
// read piece by piece. Later offsets count from the new beginning.
func (l *Lines) Drop(n int) {
	l.Line = l.Pos(n).Line
	l.first = l.start - n
	l.at, l.start, l.breaks = 0, l.first, 0
	l.Text = append(l.Text[:0], l.Text[n:]...)
}
