package diag

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
)

// MapPositions returns err with each position replaced by move(position). An error without
// positions is returned unchanged.
func MapPositions(err error, move func(Pos) Pos) error {
	var list List
	if !errors.As(err, &list) {
		var one *Error
		if !errors.As(err, &one) {
			return err
		}
		list = List{one}
	}
	out := make(List, len(list))
	for i, e := range list {
		moved := *e
		moved.Pos = move(moved.Pos)
		out[i] = &moved
	}
	return out
}

// PrefixPositions returns err with dir prepended to the files in its positions.
func PrefixPositions(dir string, err error) error {
	return MapPositions(err, func(p Pos) Pos { return p.inDir(dir) })
}

// PrefixWarnings returns ws with dir prepended to the files in their positions.
func PrefixWarnings(dir string, ws []Warning) []Warning {
	out := slices.Clone(ws)
	for i := range out {
		out[i].Pos = out[i].Pos.inDir(dir)
	}
	return out
}

func (p Pos) inDir(dir string) Pos {
	p.File = filepath.ToSlash(filepath.Join(dir, p.File))
	return p
}

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
