package strictjson

// frame is an array or object that is open.
type frame struct {
	open  byte             // '{' or '['
	some  bool             // a member or element was read
	seen  uint64           // a bit for each name, so that most new ones are known to be new
	names int              // where the object's names begin in Scanner.names
	long  int              // and in Scanner.long
	many  map[key]struct{} // the names, where there are many
}

// skipBlank returns the first place from i on that holds no blank, len(buf)
// where there is none.
func skipBlank(buf []byte, i int) int {
	for i < len(buf) {
		switch buf[i] {
		case ' ', '\n', '\t', '\r':
			i = skipSpaces(buf, i+1)
		default:
			return i
		}
	}
	return i
}

// next returns the place of the next byte from i on that is no blank, or -1 at
// the end of the input.
func (s *Scanner) next(i int) int {
	for {
		if i = skipBlank(s.buf, i); i < len(s.buf) {
			return i
		}
		var more bool
		if i, more = s.refill(i); !more {
			s.at = len(s.buf)
			return -1
		}
	}
}

// Kind returns what the next value begins with: one of { [ " t f n, or the digit
// 0 for any number; a comma, a bracket or some other byte where no value
// stands; and End at the end of the input, or after an error.
func (s *Scanner) Kind() byte {
	if s.err != nil {
		return End
	}
	i := s.next(s.at)
	if i < 0 {
		return End
	}
	s.at = i
	switch c := s.buf[i]; {
	case c == '-' || '0' <= c && c <= '9':
		return '0'
	case c == End:
		return 1 // just as wrong
	default:
		return c
	}
}

// End is what Kind returns where there is nothing more.
const End = 0

// Enter goes into the array or object that comes next; where something else
// does, that is an error.
func (s *Scanner) Enter() {
	switch c := s.Kind(); c {
	case '{', '[':
		if s.push(c, s.at) {
			s.at++
		}
	case End:
		s.cut(len(s.buf))
	default:
		s.invalid(s.at, "at start of array or object")
	}
}

func (s *Scanner) push(open byte, i int) bool {
	if len(s.frames) == MaxDepth {
		s.failAt(i, "exceeded max depth")
		return false
	}
	s.frames = append(s.frames, frame{open: open, names: len(s.names), long: len(s.long)})
	return true
}

func (s *Scanner) pop() {
	f := &s.frames[len(s.frames)-1]
	s.names, s.long = s.names[:f.names], s.long[:f.long]
	f.many = nil
	s.frames = s.frames[:len(s.frames)-1]
}

// More reports whether the array or object that was entered last has another
// element or member, which comes next: for a member, Name does. Where there is
// none, the array or object is left. It must be called before each.
func (s *Scanner) More() bool {
	if s.err != nil {
		return false
	}
	i := s.next(s.at)
	if i < 0 {
		s.cut(len(s.buf))
		return false
	}
	f := &s.frames[len(s.frames)-1]
	switch c := s.buf[i]; {
	case c == f.open+2: // the brackets lie two apart in ASCII
		s.at = i + 1
		s.pop()
		return false
	case !f.some:
		f.some = true
	case c != ',':
		s.after(i)
		return false
	default:
		if i = s.next(i + 1); i < 0 {
			s.cut(len(s.buf))
			return false
		}
	}
	s.at = i
	return true
}

// after says that neither a comma nor the closing bracket follows a value.
func (s *Scanner) after(i int) {
	if s.frames[len(s.frames)-1].open == '{' {
		s.invalid(i, "after object value (expecting ',' or '}')")
	} else {
		s.invalid(i, "after array element (expecting ',' or ']')")
	}
}

// Name reads the name of the next member, without escapes, and the colon behind
// it. It is valid until the next call of another method.
func (s *Scanner) Name() []byte {
	if s.err != nil {
		return nil
	}
	i, text := s.member(s.at)
	if i >= 0 {
		s.at = i
	}
	return text
}

// member reads the name at i and the colon behind it, and returns the place
// after that, or -1 where either is wrong.
func (s *Scanner) member(i int) (int, []byte) {
	if end := plainEnd(s.buf, i); end > 0 && end+1 < len(s.buf) && s.buf[end+1] == ':' {
		text := s.buf[i+1 : end : end]
		if !s.insert(text) {
			s.twice(i, text)
			return -1, nil
		}
		return end + 2, text
	}
	return s.anyMember(i)
}

// anyMember is member for any name, wherever the window ends.
func (s *Scanner) anyMember(i int) (int, []byte) {
	if s.buf[i] != '"' {
		s.invalid(i, `at start of string (expecting '"')`)
		return -1, nil
	}
	held := s.mark
	if held < 0 {
		s.mark = i
	}
	back := i - s.mark // which stays, whatever moves
	s.escaped = false
	end := s.text(i + 1)
	if end < 0 {
		return -1, nil
	}
	i = s.mark + back
	size := end - i - 1
	text := s.buf[i+1 : end]
	if s.escaped {
		s.scratch = AppendUnescaped(s.scratch[:0], text)
		text = s.scratch
	}
	if !s.insert(text) {
		s.twice(i, text)
		return -1, nil
	}
	switch i = s.next(end + 1); {
	case i < 0:
		s.cut(len(s.buf))
		return -1, nil
	case s.buf[i] != ':':
		s.invalid(i, "after object name (expecting ':')")
		return -1, nil
	}
	if !s.escaped {
		text = s.buf[s.mark+back+1:][:size:size]
	}
	if held < 0 {
		s.mark = -1
	}
	return i + 1, text
}

// Text reads the string that comes next and returns it without escapes, valid
// until the next call of another method. It is for use where Kind returned '"'.
func (s *Scanner) Text() []byte {
	raw := s.Raw()
	if s.err != nil {
		return nil
	}
	if raw = raw[1 : len(raw)-1]; s.escaped {
		s.scratch = AppendUnescaped(s.scratch[:0], raw)
		return s.scratch
	}
	return raw
}

// Raw reads the next value and returns its bytes, valid until the next call of
// another method.
func (s *Scanner) Raw() []byte {
	if s.Kind(); s.err != nil {
		return nil
	}
	s.mark, s.escaped = s.at, false
	s.Skip()
	from := s.mark
	s.mark = -1
	if s.err != nil {
		return nil
	}
	return s.buf[from:s.at:s.at]
}

// Ahead returns the next n bytes of the input, fewer where it has no more, and
// reads none of them. They are valid until the next call of another method.
func (s *Scanner) Ahead(n int) []byte {
	for len(s.buf)-s.at < n && s.Fill() {
	}
	return s.buf[s.at:min(len(s.buf), s.at+n)]
}

// Skip reads the next value and lets it go.
func (s *Scanner) Skip() {
	if s.err != nil {
		return
	}
	depth := len(s.frames)
	for i := s.at; ; {
		if i+1 < len(s.buf) && s.buf[i] == ' ' && s.buf[i+1] > ' ' {
			i++ // as behind most colons
		} else if i = s.next(i); i < 0 {
			s.cut(len(s.buf))
			return
		}
		c := s.buf[i]
		if c == '{' || c == '[' {
			if i = s.enter(c, i); i < 0 {
				return
			}
			if s.frames[len(s.frames)-1].some {
				continue
			}
			s.pop()
		} else if i = s.scalar(c, i); i < 0 {
			return
		}
		if i = s.leave(depth, i); i < 0 {
			return
		}
		if len(s.frames) == depth {
			s.at = i
			return
		}
	}
}

// enter goes into the array or object that begins at i, up to its first value.
// Where it has none, its frame says so.
func (s *Scanner) enter(open byte, i int) int {
	if !s.push(open, i) {
		return -1
	}
	if i = s.next(i + 1); i < 0 {
		s.cut(len(s.buf))
		return -1
	}
	if s.buf[i] == open+2 {
		return i + 1
	}
	s.frames[len(s.frames)-1].some = true
	if open == '{' {
		i, _ = s.member(i)
	}
	return i
}

// leave passes over what stands behind a value: the brackets that it is the
// last in, down to that depth, or a comma and the name of the next one.
func (s *Scanner) leave(depth, i int) int {
	for len(s.frames) > depth {
		if i >= len(s.buf) || s.buf[i] <= ' ' {
			if i = s.next(i); i < 0 {
				s.cut(len(s.buf))
				return -1
			}
		}
		open := s.frames[len(s.frames)-1].open
		switch s.buf[i] {
		case ',':
			if open == '[' {
				return i + 1
			}
			if i = s.next(i + 1); i < 0 {
				s.cut(len(s.buf))
				return -1
			}
			i, _ = s.member(i)
			return i
		case open + 2:
			s.pop()
			i++
		default:
			s.after(i)
			return -1
		}
	}
	return i
}
