// Package strictjson reads JSON from a stream in one pass: values that nobody
// asks for are checked and passed over at several times the speed of a
// tokenizer, those that are wanted are handed out as bytes.
//
// It is as strict as RFC 8259 with I-JSON's demands: no invalid UTF-8, no lone
// surrogates, no name twice in one object. What it takes and refuses, and the
// offset where it does, is what github.com/go-json-experiment/json/jsontext
// does; tests and a fuzz target compare the two. It decodes nothing into values
// of Go, and numbers stay text.
//
// Errors stick: after the first one every method does nothing, [Scanner.More]
// is false, and [Scanner.Err] tells it. So a reader of some format asks once,
// at its end.
//
// Start from [Scanner.Reset], [Scanner.More], [Scanner.Name], [Scanner.Text]
// and [Scanner.Skip].
package strictjson

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may lie in one another.
const MaxDepth = 10_000

// SyntaxError is what is wrong with the input, and where.
type SyntaxError struct {
	Offset int64  // of the byte that is wrong; of a whole string where that is
	What   string // "invalid character 'x' at start of value"
	Cut    bool   // the input ends inside a value
	Twice  bool   // a name stands twice in one object, and Name is it
	Name   string
}

// Error returns what is wrong.
func (e *SyntaxError) Error() string { return e.What }

// LimitError says that a value has more bytes than [Scanner.Limit] allows.
type LimitError struct {
	Bytes int64
}

// Error returns the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("a value of more than %d bytes", e.Bytes)
}

// invalid returns the error of the byte, or the character, at i.
func (s *Scanner) invalid(i int, where string) {
	for more := true; more && !utf8.FullRune(s.buf[i:]); {
		i, more = s.refill(i)
	}
	what := "invalid character "
	if r, n := utf8.DecodeRune(s.buf[i:]); r == utf8.RuneError && n == 1 {
		what += `'\x` + strconv.FormatUint(uint64(s.buf[i]), 16) + `'`
	} else {
		what += strconv.QuoteRune(r)
	}
	s.failAt(i, what+" "+where)
}

func (s *Scanner) failAt(i int, what string) {
	s.Fail(&SyntaxError{Offset: s.base + int64(i), What: what})
}

// twice says that the object has the name at i already.
func (s *Scanner) twice(i int, name []byte) {
	s.Fail(&SyntaxError{Offset: s.base + int64(i), What: "duplicate object member name", Twice: true, Name: string(name)})
}

// cut says that the input ends at i, where it must not.
func (s *Scanner) cut(i int) {
	s.Fail(&SyntaxError{Offset: s.base + int64(i), What: "unexpected end", Cut: true})
}

// shown returns text as a message has it.
func shown(text []byte) string {
	if strconv.CanBackquote(string(text)) {
		return "`" + string(text) + "`"
	}
	return strconv.Quote(string(text))
}
