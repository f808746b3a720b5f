package strictjson

import (
	"bytes"
	"io"
)

// windowSize is how much of the input is held at once, unless one value that is
// asked for is larger.
const windowSize = 256 << 10

// Scanner reads JSON values, one after the other. The zero Scanner has nothing
// to read; Reset and ResetBytes give it something.
type Scanner struct {
	r    io.Reader // nil where all that is left is in buf
	own  []byte    // the memory of the window
	buf  []byte    // the bytes from offset base on
	base int64
	at   int // in buf: what was read lies before
	mark int // in buf: bytes from here on must stay; -1 where none must
	err  error

	limit, max int64
	lines      lines

	frames  []frame
	names   []name
	long    []byte // the text of long names
	scratch []byte // a string without its escapes
	escaped bool   // the last string has some
}

// Reset makes s read from r, with the memory that it has.
func (s *Scanner) Reset(r io.Reader) {
	if s.own == nil {
		s.own = make([]byte, windowSize)
	}
	s.reset(r, s.own[:0])
}

// ResetBytes makes s read data, which it does not change and which must not
// change while s reads.
func (s *Scanner) ResetBytes(data []byte) { s.reset(nil, data) }

func (s *Scanner) reset(r io.Reader, buf []byte) {
	*s = Scanner{
		r: r, own: s.own, buf: buf, mark: -1, limit: -1, lines: lines{line: 1},
		frames: s.frames[:0], names: s.names[:0], long: s.long[:0], scratch: s.scratch[:0],
	}
}

// Limit makes it an error, a *LimitError, if what is read from here on has more
// than max bytes before Limit is called again.
func (s *Scanner) Limit(max int64) { s.max, s.limit = max, s.Offset()+max }

// Err returns the error that stopped s: a *SyntaxError, a *LimitError, the
// reader's own, or what was given to Fail. The end of the input is none.
func (s *Scanner) Err() error { return s.err }

// Fail stops s, unless something did before.
func (s *Scanner) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Offset returns how many bytes were read.
func (s *Scanner) Offset() int64 { return s.base + int64(s.at) }

// Pos returns the line and column of an offset, both from 1, the column in
// bytes. They are known for what was read last; of older places, that the
// window has passed, both are 0.
func (s *Scanner) Pos(offset int64) (line, col int) {
	return s.lines.pos(s.buf, s.base, offset)
}

// Window returns what is held of the input and was not read yet. It is valid
// until the next call of another method.
func (s *Scanner) Window() []byte { return s.buf[s.at:] }

// Fill reads on, without passing over anything, and reports whether there was
// more.
func (s *Scanner) Fill() bool {
	_, ok := s.refill(s.at)
	return ok
}

// Discard passes over n bytes of Window, whatever they are.
func (s *Scanner) Discard(n int) { s.at += n }

// refill reads more of the input behind what is in buf, which it moves down so
// that the byte at i, or at the mark where that is before, comes first. It
// returns where the byte at i is now, and false at the end of the input or
// where reading failed.
func (s *Scanner) refill(i int) (int, bool) {
	if s.r == nil || s.err != nil {
		return i, false
	}
	if s.limit >= 0 && s.base+int64(len(s.buf)) > s.limit {
		s.Fail(&LimitError{s.max})
		return i, false
	}
	from := i
	if s.mark >= 0 {
		from = min(i, s.mark)
		s.mark -= from
	}
	s.at -= min(s.at, from)
	s.lines.advance(s.buf, s.base, s.base+int64(from))
	rest := len(s.buf) - from
	if rest == len(s.own) {
		grown := make([]byte, 2*len(s.own))
		copy(grown, s.buf[from:])
		s.own = grown
	} else {
		copy(s.own, s.buf[from:])
	}
	s.base += int64(from)
	s.buf = s.own[:rest]
	return i - from, s.read()
}

// read appends to buf what the reader has, and reports whether that was
// anything.
func (s *Scanner) read() bool {
	for range 100 {
		n, err := s.r.Read(s.own[len(s.buf):])
		s.buf = s.own[:len(s.buf)+n]
		if err != nil {
			s.r = nil
			if err != io.EOF {
				s.Fail(err)
				return false
			}
			return n > 0
		}
		if n > 0 {
			return true
		}
	}
	s.Fail(io.ErrNoProgress)
	return false
}

// lines counts lines.
type lines struct {
	at    int64 // a place whose line is known
	line  int
	start int64 // where that line begins
}

// advance counts up to offset to, which lies in buf or before it.
func (l *lines) advance(buf []byte, base, to int64) {
	if to <= l.at {
		return
	}
	passed := buf[l.at-base : to-base]
	if n := bytes.Count(passed, []byte{'\n'}); n > 0 {
		l.line += n
		l.start = to - int64(len(passed)-1-bytes.LastIndexByte(passed, '\n'))
	}
	l.at = to
}

// pos returns where offset is.
func (l *lines) pos(buf []byte, base, offset int64) (line, col int) {
	offset = min(offset, base+int64(len(buf)))
	switch {
	case offset >= l.at:
		l.advance(buf, base, offset)
		return l.line, int(offset-l.start) + 1
	case offset < base:
		return 0, 0
	case offset >= l.start:
		return l.line, int(offset-l.start) + 1
	}
	line = l.line - bytes.Count(buf[offset-base:l.at-base], []byte{'\n'})
	before := buf[:offset-base]
	if start := bytes.LastIndexByte(before, '\n') + 1; start > 0 || base == 0 {
		col = len(before) - start + 1
	}
	return line, col
}
