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

// end is the kind at the end of the input.
const end = 0

// scanner reads a sequence of JSON values as strictly as jsontext: it rejects invalid UTF-8 and
// duplicate names. Errors are sticky: after the first error, methods do nothing, more returns
// false, and failed returns the error. So callers need to check for errors only once, at the
// end.
type scanner struct {
	dec   jsontext.Decoder
	src   source
	err   error  // io.EOF at the end of the input
	size  int    // size of the last value returned by raw
	plain []byte // the last unescaped string
}

// widen makes the decoder read whole windows of a large file. The buffer of the decoder is as
// large as the longest value so far, and there is no option to set its size.
func (s *scanner) widen() {
	long := slices.Concat([]byte{'"'}, bytes.Repeat([]byte{' '}, windowSize), []byte{'"'})
	s.dec.Reset(io.MultiReader(bytes.NewReader(long)))
	s.skip()
}

// reset makes s read from r, which begins at the given offset of file.
func (s *scanner) reset(file string, r *bufio.Reader, offset int64) {
	passed := append(s.src.lines.Text[:0], make([]byte, offset)...) // offset is the size of a byte order mark
	s.src = source{r: r, from: offset, limit: offset + maxObject, dec: &s.dec, lines: diag.Lines{File: file, Text: passed, Line: 1}}
	s.err = nil
	s.dec.Reset(&s.src)
}

// resetBytes makes s read data, which must not change until the next reset.
func (s *scanner) resetBytes(data []byte) {
	s.err = nil
	s.dec.Reset(bytes.NewBuffer(data))
}

// failed returns the error that stopped s. It returns nil at the end of the
// input.
func (s *scanner) failed() error {
	if s.err == io.EOF { //nolint:errorlint // the decoder does not wrap it
		return nil
	}
	return s.err
}

// fail records err unless it is nil or s has already failed.
func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// beginObject limits the input to maxObject bytes from now on.
func (s *scanner) beginObject() { s.src.limit = s.offset() + maxObject }

// offset returns the offset of the end of the consumed input.
func (s *scanner) offset() int64 { return s.src.from + s.dec.InputOffset() }

// nextOffset returns the offset of the next value. Call kind first.
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

// lastOffset returns the offset of the last value returned by raw.
func (s *scanner) lastOffset() int64 { return s.offset() - int64(s.size) }

// kind returns the first byte of the next value: { [ " t f n, 0 for a number, another byte for
// invalid input, or end at the end of the input or after an error.
func (s *scanner) kind() byte {
	if s.err != nil {
		return end
	}
	k := s.dec.PeekKind()
	if k == jsontext.KindInvalid {
		_, err := s.dec.ReadToken() // sets the error
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

// more reports whether the current array or object has another element or member. If not, it
// consumes the closing bracket or brace. Call it before each element; for a member, call name
// next.
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

// name reads the name of the next member. The result is valid until the next call of a method.
func (s *scanner) name() []byte { return s.text() }

// text reads the next string, which kind must have detected, and returns it unescaped. The
// result is valid until the next call of a method.
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

// appendUnquoted appends the text of a valid JSON string to out.
func appendUnquoted(out, quoted []byte) []byte {
	out, err := jsontext.AppendUnquote(out, quoted)
	if err != nil {
		panic(fmt.Sprintf("fbc: %.20q was read as an invalid string: %v", quoted, err))
	}
	return out
}

// raw reads the next value and returns its bytes. They are valid until the next call of a
// method.
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

// source is the input file of a scanner. It converts offsets to positions and
// limits the size of the input.
type source struct {
	r     *bufio.Reader
	from  int64 // offset of r in the file
	limit int64
	dec   *jsontext.Decoder

	lines diag.Lines // lines of the input from base on
	base  int64
}

var errLarge = errors.New("too large")

// Read implements io.Reader. It returns whole characters, so that messages about invalid
// characters do not depend on buffer boundaries.
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

// pos returns the position of a recently read offset.
func (s *source) pos(offset int64) diag.Pos { return s.lines.Pos(int(offset - s.base)) }

// cutsRune reports whether text ends in the middle of a character.
func cutsRune(text []byte) bool {
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if last := text[len(text)-i:]; utf8.RuneStart(last[0]) {
			return !utf8.FullRune(last)
		}
	}
	return false
}
