package diag

import "bytes"

// Lines tells where the offsets of a text are, which have to ascend.
type Lines struct {
	File string
	Text []byte
	Line int // of the offset that was asked for last, at first of the beginning
	at   int
}

// Pos returns the position of an offset.
func (l *Lines) Pos(at int) Pos {
	l.Line += bytes.Count(l.Text[l.at:at], []byte{'\n'})
	l.at = at
	return Pos{File: l.File, Line: l.Line, Col: at - bytes.LastIndexByte(l.Text[:at], '\n')}
}
