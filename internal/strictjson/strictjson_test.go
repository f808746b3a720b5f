package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

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

// TestPos asks for the line and column of every value and compares them with
// what counting says, whatever the window holds.
func TestPos(t *testing.T) {
	var in strings.Builder
	for i := range 200 {
		fmt.Fprintf(&in, "{\"a\":\n%s[%d,\n\"%s\"]}\r\n", strings.Repeat(" ", i%40), i, strings.Repeat("é", i%30))
	}
	data := []byte(in.String())
	for _, window := range []int{16, 100, 1 << 20} {
		s := Scanner{own: make([]byte, window)}
		s.Reset(slowly{bytes.NewReader(data), 5})
		var walk func()
		walk = func() {
			kind := s.Kind()
			line, col := s.Pos(s.Offset())
			before := data[:s.Offset()]
			if want := 1 + bytes.Count(before, []byte("\n")); line != want {
				t.Fatalf("window %d, offset %d: line %d, want %d", window, s.Offset(), line, want)
			}
			if want := len(before) - bytes.LastIndexByte(before, '\n'); col != want {
				t.Fatalf("window %d, offset %d: column %d, want %d", window, s.Offset(), col, want)
			}
			if kind != '{' && kind != '[' {
				s.Skip()
				return
			}
			for s.Enter(); s.More(); walk() {
				if kind == '{' {
					s.Name()
				}
			}
		}
		values := 0
		for ; s.Kind() != End; values++ {
			walk()
		}
		if s.Err() != nil || values != 200 {
			t.Fatalf("window %d: %d values, %v", window, values, s.Err())
		}
	}
}

// TestPosOfWhatIsGone asks for places that the window has passed.
func TestPosOfWhatIsGone(t *testing.T) {
	s := Scanner{own: make([]byte, 8)}
	s.Reset(strings.NewReader("[1,\n\"" + strings.Repeat("long ", 100) + "\",\n2, 3]"))
	s.Enter()
	s.More()
	s.Skip()
	s.More()
	s.Skip()
	s.More()
	if line, col := s.Pos(s.Offset()); line != 3 || col != 1 {
		t.Errorf("the last value is at %d:%d, want 3:1", line, col)
	}
	if line, col := s.Pos(1); line != 0 || col != 0 {
		t.Errorf("the first value is at %d:%d, want nothing to be known", line, col)
	}
}

func TestLimit(t *testing.T) {
	for _, in := range []string{`"` + strings.Repeat("x", 1000) + `"`, strings.Repeat("[", 1000), strings.Repeat(" ", 1000) + "1", "1" + strings.Repeat("0", 1000)} {
		s := Scanner{own: make([]byte, 16)}
		s.Reset(strings.NewReader("1 2 " + in))
		for range 2 {
			s.Limit(100)
			s.Kind()
			s.Skip()
		}
		s.Limit(100)
		for s.Kind() != End {
			s.Skip()
		}
		var limit *LimitError
		if !errors.As(s.Err(), &limit) || limit.Bytes != 100 {
			t.Errorf("%.20q: got %v", in, s.Err())
		}
	}
}

// TestReaderFails passes on what the reader says.
func TestReaderFails(t *testing.T) {
	broken := errors.New("broken")
	var s Scanner
	s.Reset(io.MultiReader(strings.NewReader(`{"a":`), iotest.ErrReader(broken)))
	for s.Enter(); s.More(); s.Skip() {
		s.Name()
	}
	if !errors.Is(s.Err(), broken) {
		t.Errorf("got %v", s.Err())
	}
}

// TestText compares what Text, Name and AppendCompact give with the referee.
func TestText(t *testing.T) {
	for _, in := range inputs() {
		if v, _ := referee([]byte(in)); !v.ok {
			continue
		}
		var s Scanner
		s.Reset(slowly{strings.NewReader(in), 2})
		dec := jsontext.NewDecoder(strings.NewReader(in))
		for s.Kind() != End {
			if s.Kind() == '"' {
				got := string(s.Text())
				if tok, err := dec.ReadToken(); err != nil || tok.String() != got {
					t.Errorf("%q: text %q, want %v %v", in, got, tok, err)
				}
				continue
			}
			got := string(AppendCompact(nil, s.Raw()))
			want, err := dec.ReadValue()
			if err == nil {
				err = want.Compact()
			}
			if err != nil || got != string(want) {
				t.Errorf("%.200q: compact %.200q, want %.200q, %v", in, got, want, err)
			}
		}
	}
	var s Scanner
	s.ResetBytes([]byte(`{"\u0061\n\ud83d\ude00":1}`))
	if s.Enter(); !s.More() || string(s.Name()) != "a\n😀" {
		t.Errorf("name of %v", s.Err())
	}
}
