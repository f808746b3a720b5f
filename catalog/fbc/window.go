package fbc

import (
	"bytes"
	"fmt"
	"io"

	"github.com/quayside/quayside/internal/diag"
)

const (
	windowSize = 256 << 10
	windowKeep = 64 << 10 // stays when the window moves on
	handout    = 16 << 10 // at most this much is given to the decoder at once, so that it never is far ahead
)

// window feeds a decoder from a reader and can tell the line and column of
// places that the decoder has just passed.
type window struct {
	file   string
	r      io.Reader
	buf    []byte // the bytes from offset base on
	base   int64
	handed int64 // all bytes before this offset were given out
	done   bool  // r has ended
	mark   int64 // length of the byte order mark, which is given to nobody

	at        int64 // a place whose line is known
	line      int
	lineStart int64

	budget int64 // offset that the current object must end before
}

// reset makes w read from r, with the memory that it has.
func (w *window) reset(file string, r io.Reader) {
	buf := w.buf[:0]
	if buf == nil {
		buf = make([]byte, 0, windowSize)
	}
	*w = window{file: file, r: r, buf: buf, line: 1, budget: maxObject}
}

// Read gives out the next bytes.
func (w *window) Read(p []byte) (int, error) {
	if w.handed > w.budget {
		return 0, fmt.Errorf("object of more than %d MiB", maxObject>>20)
	}
	if w.handed == w.base+int64(len(w.buf)) {
		if err := w.fill(); err != nil {
			return 0, err
		}
	}
	from := w.buf[w.handed-w.base:]
	n := copy(p, from[:min(len(from), handout)])
	w.handed += int64(n)
	return n, nil
}

// fill moves the window on and reads at least one byte into it.
func (w *window) fill() error {
	if w.done {
		return io.EOF
	}
	if drop := len(w.buf) - windowKeep; drop > 0 {
		w.advance(w.base + int64(drop))
		w.buf = append(w.buf[:0], w.buf[drop:]...)
		w.base += int64(drop)
	}
	for range 100 {
		n, err := w.r.Read(w.buf[len(w.buf):cap(w.buf)])
		w.buf = w.buf[:len(w.buf)+n]
		if err != nil {
			w.done = true
			if n == 0 || err != io.EOF {
				return err
			}
		}
		if n > 0 {
			return nil
		}
	}
	return io.ErrNoProgress
}

// advance counts lines up to offset to.
func (w *window) advance(to int64) {
	to = min(to, w.base+int64(len(w.buf)))
	if to <= w.at {
		return
	}
	passed := w.buf[max(w.at, w.base)-w.base : to-w.base]
	if n := bytes.Count(passed, []byte{'\n'}); n > 0 {
		w.line += n
		w.lineStart = to - int64(len(passed)-1-bytes.LastIndexByte(passed, '\n'))
	}
	w.at = to
}

// pos returns the position of an offset; of one before the last asked for, as
// far as it is known.
func (w *window) pos(offset int64) diag.Pos {
	if offset < w.at {
		return w.posBefore(offset)
	}
	w.advance(offset)
	return diag.Pos{File: w.file, Line: w.line, Col: int(w.at-w.lineStart) + 1}
}

func (w *window) posBefore(offset int64) diag.Pos {
	if offset < w.base {
		return diag.Pos{File: w.file}
	}
	before := w.buf[:offset-w.base]
	pos := diag.Pos{File: w.file, Line: w.line - bytes.Count(w.buf[len(before):w.at-w.base], []byte{'\n'})}
	switch start := bytes.LastIndexByte(before, '\n') + 1; {
	case start > 0 || w.base == 0:
		pos.Col = len(before) - start + 1
	case pos.Line == w.line:
		pos.Col = int(offset-w.lineStart) + 1
	}
	return pos
}
