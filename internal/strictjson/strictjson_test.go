package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// verdict is what a reader says of an input: how many values it took, and where
// and why it stopped.
type verdict struct {
	values int
	offset int64
	cut    bool
	twice  string
	ok     bool
}

// referee is the verdict of jsontext.
func referee(data []byte) (verdict, string) {
	var v verdict
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		_, err := dec.ReadValue()
		if errors.Is(err, io.EOF) {
			v.ok = true
			return v, ""
		}
		var fault *jsontext.SyntacticError
		if errors.As(err, &fault) {
			v.cut = errors.Is(err, io.ErrUnexpectedEOF)
			if !v.cut {
				v.offset = fault.ByteOffset
			}
			if errors.Is(err, jsontext.ErrDuplicateName) {
				v.twice = fault.JSONPointer.LastToken()
			}
			return v, fault.Err.Error()
		}
		v.values++
	}
}

// mine is the verdict of a Scanner that reads values with read.
func mine(s *Scanner, read func(s *Scanner)) (verdict, string) {
	var v verdict
	for s.Kind() != End {
		read(s)
		if s.Err() == nil {
			v.values++
		}
	}
	var fault *SyntaxError
	if errors.As(s.Err(), &fault) {
		v.cut, v.twice = fault.Cut, fault.Name
		if !v.cut {
			v.offset = fault.Offset
		}
		return v, fault.What
	}
	v.ok = s.Err() == nil
	return v, ""
}

// ways are the ways to read a value.
func ways() map[string]func(s *Scanner) {
	return map[string]func(s *Scanner){
		"Skip":  (*Scanner).Skip,
		"Raw":   func(s *Scanner) { s.Raw() },
		"token": token,
	}
}

// token reads a value by its parts.
func token(s *Scanner) {
	switch s.Kind() {
	case '{':
		s.Enter()
		for s.More() {
			s.Name()
			token(s)
		}
	case '[':
		s.Enter()
		for s.More() {
			token(s)
		}
	case '"':
		s.Text()
	default:
		s.Skip()
	}
}

// slowly reads n bytes at a time.
type slowly struct {
	r io.Reader
	n int
}

func (r slowly) Read(p []byte) (int, error) { return r.r.Read(p[:min(r.n, len(p))]) }

// check compares the verdicts on data, however it is read.
func check(t *testing.T, data []byte) {
	t.Helper()
	want, what := referee(data)
	for name, read := range ways() {
		var s Scanner
		for i, start := range []func(){
			func() { s.ResetBytes(data) },
			func() { s.Reset(bytes.NewReader(data)) },
			func() { s.Reset(slowly{bytes.NewReader(data), 1}) },
			func() { s.own = make([]byte, 7); s.Reset(slowly{bytes.NewReader(data), 3}) },
		} {
			start()
			got, said := mine(&s, read)
			if got != want {
				t.Fatalf("%s, %d: %+v (%s)\nreferee: %+v (%s)\n%q", name, i, got, said, want, what, data)
			}
			if !want.ok && !want.cut && said != what && !loose(what) {
				t.Fatalf("%s, %d: %q, referee: %q\n%q", name, i, said, what, data)
			}
		}
	}
}

// loose reports whether the referee's words depend on how it is asked, or on
// how much it has read: where a name is no string, where brackets do not match,
// and of a wrong escape.
func loose(what string) bool {
	return strings.Contains(what, "start of") || strings.Contains(what, "invalid escape") || strings.Contains(what, "invalid surrogate")
}

func inputs() []string {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	many := func(n int, last string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"name number %d":1,`, i)
		}
		return "{" + b.String() + `"` + last + `":0}`
	}
	return []string{
		"", " ", "{}", "[]", "[ ]", "{ }", "1", "-0", "-", "01", "1.", "1.5e", "1e+", "1E-7", "1.5.5", "-a", "0x", "1e5 2", `"a"`, `"a`, `"`,
		"true", "tru", "trux", "truex", "null", "nul", "false", "falsy", "nulltrue", "{", "[", "}", "]", ",", ":", "[1,]", "[,1]", "[1 2]", "[1}", `{"a":1]`,
		`{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{"a" 1}`, `{a:1}`, `{1:1}`, `{"a":1}{"a":1}`, `{"a":1,"b":[{"a":{}}],"c":{"a":[]}}`,
		`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"":1,"":2}`, `{"a":{"a":1},"b":1,"b":2}`, `{"a":1,"a\u0000":2}`, `{"ab":1,"abb":1,"aab":1}`,
		`{"a name of more than sixteen bytes 1":1,"a name of more than sixteen bytes 2":1}`, `{"a name of more than sixteen bytes":1,"a name of more than sixteen bytes":1}`,
		`{"aaaaaaaaXbbbbbbbb":1,"aaaaaaaaYbbbbbbbb":1}`, `{"12345678":1,"1234567":1,"123456":1,"12345":1,"1234":1,"123":1,"12":1,"1":1}`,
		many(10, "x"), many(10, "name number 3"), many(200, "x"), many(200, "name number 0"), many(200, "name number 199"), many(49, "name number 48"),
		`"\"\\\/\b\f\n\r\t"`, `"\u00e9\ud83d\ude00"`, `"\ud83d"`, `"\ud83d\u0041"`, `"\ude00\ud83d"`, `"\ud83dx"`, `"\ud83d\n"`, `"\u12"`, `"\u12g4"`, `"\x41"`, `"\`, `"\u`, `"\ud83d\`, `"\ud83d\ud8`,
		"\"a\nb\"", "\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"ünïcödé 日本 😀\"", "\"\xff\"", "\"\xc3\"", "\"\xc3", "\"\xed\xa0\x80\"", "\"\xc0\x80\"", "\"\xf4\x90\x80\x80\"", "\xff", "0\xe4", "nƆ", "\u00a0 1", "\ufeff{}",
		"\"" + strings.Repeat("long ", 1000) + "\\\"" + strings.Repeat("é", 100) + "\"", "[\"" + strings.Repeat("x", 31) + "\",\"" + strings.Repeat("y", 32) + "\x01\"]",
		"{\r\n\t\"a\" :\t1 ,\n                    \"b\":\n        2\n}\v", deep(100), deep(MaxDepth), deep(MaxDepth + 1), strings.Repeat(`{"a":`, MaxDepth+1),
	}
}

func TestAsTheReferee(t *testing.T) {
	for _, in := range inputs() {
		check(t, []byte(in))
	}
}

func FuzzScanner(f *testing.F) {
	for _, in := range inputs() {
		if len(in) < 1000 {
			f.Add([]byte(in))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { check(t, data) })
}
