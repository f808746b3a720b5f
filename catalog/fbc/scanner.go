package fbc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quayside/quayside/internal/diag"
)

// end is the result of scanner.kind at the end of the input.
const end = 0

// scanner reads a sequence of JSON values. It is as strict as jsontext: invalid UTF-8 and duplicate names are
// errors. After the first error, all methods do nothing: the method more returns false, and the method failed
// returns the error. So callers can check for errors once, at the end.
type scanner struct {
	dec   jsontext.Decoder
	src   source
	err   error  // io.EOF at the end of the input
	size  int    // size of the last value returned by raw
	plain []byte // the last unescaped string
}

// widen makes the decoder read large files in blocks of windowSize. jsontext has no option for the size of its
// buffer, but enlarges the buffer for a long value and keeps it. So widen first decodes a string of windowSize.
func (s *scanner) widen() {
	long := slices.Concat([]byte{'"'}, bytes.Repeat([]byte{' '}, windowSize), []byte{'"'})
	s.dec.Reset(io.MultiReader(bytes.NewReader(long)))
	s.skip()
}

// reset makes s read r, whose first byte is at the given offset of file.
func (s *scanner) reset(file string, r *bufio.Reader, offset int64) {
	passed := append(s.src.lines.Text[:0], make([]byte, offset)...) // offset is 0, or the size of a byte order mark
	s.src = source{r: r, from: offset, limit: offset + maxObject, dec: &s.dec, lines: diag.Lines{File: file, Text: passed, Line: 1}}
	s.err = nil
	s.dec.Reset(&s.src)
}

// resetBytes makes s read data, which must not change until the next reset.
func (s *scanner) resetBytes(data []byte) {
	s.err = nil
	s.dec.Reset(bytes.NewBuffer(data))
}

// failed returns the error that stopped s. At the end of the input it returns nil.
func (s *scanner) failed() error {
	if s.err == io.EOF { //nolint:errorlint // the decoder does not wrap it
		return nil
	}
	return s.err
}

// fail records err as the error that stops s, unless err is nil or s has already failed.
func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// beginObject starts the size limit of an object: from now on, at most maxObject bytes can be read.
func (s *scanner) beginObject() { s.src.limit = s.offset() + maxObject }

// offset returns the offset in the file after the last consumed byte.
func (s *scanner) offset() int64 { return s.src.from + s.dec.InputOffset() }

// nextOffset returns the offset of the next value in the file. The caller must have called kind for this value.
func (s *scanner) nextOffset() int64 {
	i := 0
	for _, c := range s.dec.UnreadBuffer() {
		if c > ' ' && c != ',' && c != ':' {
			break
		}
		i++
	}
	return s.offset() + int64(i)
}

// lastOffset returns the offset in the file of the last value that raw returned.
func (s *scanner) lastOffset() int64 { return s.offset() - int64(s.size) }

// kind returns the first byte of the next value without consuming it: one of { [ " t f n, or 0 for
// a number. For invalid input it returns another byte. At the end of the input and after an error
// it returns end.
func (s *scanner) kind() byte {
	if s.err != nil {
		return end
	}
	k := s.dec.PeekKind()
	if k == jsontext.KindInvalid {
		_, err := s.dec.ReadToken() // fails with the syntax error
		s.fail(err)
	}
	return byte(k)
}

// enter consumes the opening bracket or brace of the next value.
func (s *scanner) enter() {
	if s.err == nil {
		_, err := s.dec.ReadToken()
		s.fail(err)
	}
}

// more reports whether the current array or object has another element. At its end, it consumes the closing
// bracket and returns false. In an object, each call that returns true must be followed by a call of name.
func (s *scanner) more() bool {
	switch s.kind() {
	case end:
		return false
	case '}', ']':
		s.enter()
		return false
	}
	return true
}

// name returns the name of the next member. It is valid until the next call of a method.
func (s *scanner) name() []byte { return s.text() }

// text returns the next value, which must be a string, without quotes and escapes. It is valid
// until the next call of a method.
func (s *scanner) text() []byte {
	raw := s.raw()
	switch {
	case s.err != nil:
		return nil
	case raw[0] != '"': // the decoder guarantees this for names
		panic(fmt.Sprintf("fbc: %.20q read as a string", raw))
	case bytes.IndexByte(raw, '\\') < 0:
		return raw[1 : len(raw)-1]
	}
	s.plain = appendUnquoted(s.plain[:0], raw)
	return s.plain
}

// appendUnquoted decodes quoted, a valid JSON string, and appends the result to out.
func appendUnquoted(out, quoted []byte) []byte {
	out, err := jsontext.AppendUnquote(out, quoted)
	if err != nil {
		panic(fmt.Sprintf("fbc: %.20q was read as an invalid string: %v", quoted, err))
	}
	return out
}

// raw returns the bytes of the next value. They are valid until the next call of a method.
func (s *scanner) raw() []byte {
	if s.err != nil {
		return nil
	}
	value, err := s.dec.ReadValue()
	s.fail(err)
	s.size = len(value)
	return value
}

// skip skips the next value.
func (s *scanner) skip() {
	if s.err == nil {
		s.fail(s.dec.SkipValue())
	}
}

// source is the input file of a scanner. It limits the size of the input and converts offsets to
// positions.
type source struct {
	r     *bufio.Reader
	from  int64 // offset of r in the file
	limit int64
	dec   *jsontext.Decoder

	lines diag.Lines // lines of the input that begins at base
	base  int64
}

var errLarge = errors.New("too large")

// Read implements io.Reader. It never splits a character, so that messages about invalid characters
// do not depend on buffer boundaries.
func (s *source) Read(p []byte) (int, error) {
	if s.base+int64(len(s.lines.Text)) > s.limit {
		return 0, errLarge
	}
	passed := s.from + s.dec.InputOffset()
	s.lines.Drop(int(passed - s.base))
	s.base = passed
	n, err := s.r.Read(p[:max(1, len(p)-utf8.UTFMax)])
	for err == nil && n > 0 && n < len(p) && cutsRune(p[:n]) {
		if p[n], err = s.r.ReadByte(); err == nil {
			n++
		}
	}
	s.lines.Text = append(s.lines.Text, p[:n]...)
	return n, err
}

// pos returns the position of an offset. The input there must have been read recently.
func (s *source) pos(offset int64) diag.Pos { return s.lines.Pos(int(offset - s.base)) }

// cutsRune reports whether text ends in the middle of a UTF-8 sequence.
func cutsRune(text []byte) bool {
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if last := text[len(text)-i:]; utf8.RuneStart(last[0]) {
			return !utf8.FullRune(last)
		}
	}
	return false
}
