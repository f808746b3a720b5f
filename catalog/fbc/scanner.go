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
)

// end is the kind of what comes next where nothing more does.
const end = 0

// scanner reads JSON values one after the other, as strictly as jsontext does:
// no invalid UTF-8, no name twice in one object. Errors stick: after the first
// one every method does nothing, more is false, and failed tells it. So a reader
// of some format asks once, at its end.
type scanner struct {
	dec   jsontext.Decoder
	src   source
	err   error  // io.EOF where the input has ended
	size  int    // of the value that raw returned last
	plain []byte // a string without its escapes
}

// widen makes the decoder read a window at a time, for large files: it keeps the
// memory that one long value took, and has no other setting for that.
func (s *scanner) widen() {
	long := slices.Concat([]byte{'"'}, bytes.Repeat([]byte{' '}, windowSize), []byte{'"'})
	s.dec.Reset(io.MultiReader(bytes.NewReader(long)))
	s.skip()
}

// reset makes s read from r, which begins at an offset of its file.
func (s *scanner) reset(r *bufio.Reader, offset int64) {
	begin := place{at: offset, line: 1}
	s.src = source{r: r, from: offset, limit: offset + maxObject, dec: &s.dec, kept: s.src.kept[:0], first: begin, known: begin}
	s.err = nil
	s.dec.Reset(&s.src)
}

// resetBytes makes s read data, which must not change while s reads.
func (s *scanner) resetBytes(data []byte) {
	s.err = nil
	s.dec.Reset(bytes.NewBuffer(data))
}

// failed returns the error that stopped s. The end of the input is none.
func (s *scanner) failed() error {
	if s.err == io.EOF { //nolint:errorlint // the decoder's own mark, never wrapped
		return nil
	}
	return s.err
}

// fail stops s if err is an error, unless something did before.
func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// begin makes it an error if what is read from here on has more than maxObject
// bytes before begin is called again.
func (s *scanner) begin() { s.src.limit = s.passed() + maxObject }

// passed returns the offset behind what was read.
func (s *scanner) passed() int64 { return s.src.from + s.dec.InputOffset() }

// at returns the offset where the next value begins, once its kind was asked
// for.
func (s *scanner) at() int64 {
	i := 0
	for _, c := range s.dec.UnreadBuffer() {
		if c > ' ' && c != ',' && c != ':' {
			break
		}
		i++
	}
	return s.passed() + int64(i)
}

// begun returns the offset where the value begins that was read last.
func (s *scanner) begun() int64 { return s.passed() - int64(s.size) }

// kind returns what the next value begins with: one of { [ " t f n, or the digit
// 0 for any number; some other byte where no value stands; and end at the end of
// the input, or after an error.
func (s *scanner) kind() byte {
	if s.err != nil {
		return end
	}
	k := s.dec.PeekKind()
	if k == jsontext.KindInvalid {
		_, err := s.dec.ReadToken() // which says why
		s.fail(err)
	}
	return byte(k)
}

// enter goes into the array or object that comes next.
func (s *scanner) enter() {
	if s.err == nil {
		_, err := s.dec.ReadToken()
		s.fail(err)
	}
}

// more reports whether the array or object that was entered last has another
// element or member, which comes next: for a member, name does. Where there is
// none, the array or object is left. It must be called before each.
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

// name reads the name of the next member. It is valid until the next call of
// another method.
func (s *scanner) name() []byte { return s.text() }

// text reads the string that comes next and returns it without escapes, valid
// until the next call of another method. It is for use where kind returned '"'.
func (s *scanner) text() []byte {
	raw := s.raw()
	switch {
	case s.err != nil:
		return nil
	case raw[0] != '"': // of a name the decoder makes sure
		panic(fmt.Sprintf("fbc: %.20q read as a string", raw))
	case bytes.IndexByte(raw, '\\') < 0:
		return raw[1 : len(raw)-1]
	}
	s.plain = unquoted(s.plain[:0], raw)
	return s.plain
}

// unquoted appends the text of a JSON string that was read before.
func unquoted(out, quoted []byte) []byte {
	out, err := jsontext.AppendUnquote(out, quoted)
	if err != nil {
		panic(fmt.Sprintf("fbc: %.20q was read, and is no string: %v", quoted, err))
	}
	return out
}

// raw reads the next value and returns its bytes, valid until the next call of
// another method.
func (s *scanner) raw() []byte {
	if s.err != nil {
		return nil
	}
	value, err := s.dec.ReadValue()
	s.fail(err)
	s.size = len(value)
	return value
}

// skip reads the next value and lets it go.
func (s *scanner) skip() {
	if s.err == nil {
		s.fail(s.dec.SkipValue())
	}
}

// source is the file that a scanner reads. It knows the lines of what the
// scanner has not passed yet, and limits how much there is.
type source struct {
	r     *bufio.Reader
	from  int64 // where r began
	limit int64
	dec   *jsontext.Decoder

	kept  []byte // what was read behind first
	first place
	known place // the last one that was asked for
}

// place is an offset, the number of its line, and where that begins.
type place struct {
	at    int64
	line  int
	start int64
}

var errLarge = errors.New("too large")

// Read implements io.Reader. It hands out whole characters, so that what a
// message says of one does not depend on where a read ends.
func (s *source) Read(p []byte) (int, error) {
	if s.first.at+int64(len(s.kept)) > s.limit {
		return 0, errLarge
	}
	passed := s.from + s.dec.InputOffset()
	s.pos(passed)
	s.kept = append(s.kept[:0], s.kept[passed-s.first.at:]...)
	s.first = s.known
	n, err := s.r.Read(p[:max(1, len(p)-utf8.UTFMax)])
	for err == nil && n > 0 && n < len(p) && cutsRune(p[:n]) {
		if p[n], err = s.r.ReadByte(); err == nil {
			n++
		}
	}
	s.kept = append(s.kept, p[:n]...)
	return n, err
}

// pos returns the line and column of an offset, both from 1, the column in
// bytes. They are known of what was read last.
func (s *source) pos(offset int64) (line, col int) {
	if offset < s.known.at {
		s.known = s.first
	}
	passed := s.kept[s.known.at-s.first.at : offset-s.first.at]
	if last := bytes.LastIndexByte(passed, '\n'); last >= 0 {
		s.known.line += bytes.Count(passed, []byte{'\n'})
		s.known.start = s.known.at + int64(last) + 1
	}
	s.known.at = offset
	return s.known.line, int(offset-s.known.start) + 1
}

// cutsRune reports whether text may end within a character.
func cutsRune(text []byte) bool {
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if last := text[len(text)-i:]; utf8.RuneStart(last[0]) {
			return !utf8.FullRune(last)
		}
	}
	return false
}
