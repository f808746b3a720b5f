package yamlnode

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
)

// Stream splits YAML into documents at its document markers. In YAML, a line that begins like a
// marker is always a marker. Only one document at a time is in memory. Memory is reused after
// Reset.
type Stream struct {
	Offset int64 // offset in the file of the document that Next returned last

	in       *bufio.Scanner
	buf      []byte // initial buffer of in
	maxSize  int    // maximum bytes of a document
	searched int    // number of bytes after end that were already searched for a marker
	lines    int    // number of line breaks in the documents so far
	end      int64  // offset of the end of the document that Next returned last
}

// readSize is the number of bytes to read at once.
const readSize = 256 << 10

// Reset makes s read r. offset is the offset in the file at which r begins. maxSize is the maximum number
// of bytes of a document.
func (s *Stream) Reset(r io.Reader, offset int64, maxSize int) {
	if s.buf == nil {
		s.buf = make([]byte, readSize)
	}
	*s = Stream{in: bufio.NewScanner(r), buf: s.buf, maxSize: maxSize, end: offset}
	s.in.Buffer(s.buf, maxSize+readSize)
	s.in.Split(s.split)
}

// Next returns the next document, and the number of its first line. It skips documents that are
// obviously empty. The document is valid until the next call. After the last document, the error is
// io.EOF.
func (s *Stream) Next() ([]byte, int, error) {
	for {
		text, line, err := s.next()
		if err != nil || !IsEmpty(text) {
			return text, line, err
		}
	}
}

func (s *Stream) next() ([]byte, int, error) {
	start := s.lines + 1
	more := s.in.Scan()
	if err := s.in.Err(); err != nil {
		return nil, start, err
	}
	if !more {
		return nil, start, io.EOF
	}
	text := s.in.Bytes()
	s.Offset, s.end = s.end, s.end+int64(len(text))
	s.lines += bytes.Count(text, []byte{'\n'})
	return text, start, nil
}

// split is a bufio.SplitFunc that returns one document at a time.
func (s *Stream) split(text []byte, last bool) (int, []byte, error) {
	end, found := cutDocument(text, s.searched, last)
	s.searched = end
	switch {
	case end > s.maxSize:
		return 0, nil, fmt.Errorf("document of more than %d MiB: convert it to JSON", s.maxSize>>20)
	case !found || end == 0:
		return 0, nil, nil
	}
	s.searched = 0
	return end, text[:end], nil
}

// cutDocument searches text from offset at for the end of the first document. It returns the end
// and true. If it needs more text, it returns the offset at which to continue, and false. last means that
// there is no more text.
func cutDocument(text []byte, at int, last bool) (int, bool) {
	for at < len(text) {
		if c := text[at]; (c == '-' || c == '.') && (at == 0 || text[at-1] == '\n') {
			line := text[at:]
			switch {
			case len(line) < len("---\n") && !last:
				return at, false
			case isMarker(line, "---") && !isPreamble(text[:at]):
				return at, true
			case isMarker(line, "..."):
				if n := bytes.IndexByte(line, '\n'); n >= 0 {
					return at + n + 1, true
				}
				if !last {
					return at, false
				}
			}
		}
		n := bytes.IndexByte(text[at:], '\n')
		if n < 0 {
			break
		}
		at += n + 1
	}
	return len(text), last
}

// isMarker reports whether a line begins with this document marker.
func isMarker(line []byte, marker string) bool {
	_, ok := cutMarker(line, marker)
	return ok
}

// isPreamble reports whether text contains only white space, directives and comments. Such a text belongs
// to the document after the next marker.
func isPreamble(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '%' && line[0] != '#' {
			return false
		}
	}
	return true
}

// MaxDocuments is the maximum number of documents in one input. An empty document has only three
// bytes, but costs the parser as much as any other document.
const MaxDocuments = 100_000

// condense removes empty documents. If there is no content between document markers, it keeps the first
// marker and replaces the following markers by spaces. All other text keeps its position. data is not
// modified. More than [MaxDocuments] remaining documents are an error.
func condense(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte("---")) && !bytes.Contains(data, []byte("\n---")) && !bytes.Contains(data, []byte("\n...")) {
		return data, nil
	}
	out := data
	documents, at, empty := 1, 0, false // empty: there is no content since the last marker
	for line := range bytes.Lines(data) {
		switch rest, begins := cutMarker(line, "---"); {
		case begins && empty && isBlank(rest):
			if &out[0] == &data[0] {
				out = slices.Clone(data)
			}
			copy(out[at:], "   ")
		case begins:
			documents++
			empty = isBlank(rest)
		case isBlank(line):
		default:
			if _, ends := cutMarker(line, "..."); ends {
				documents++
			}
			empty = false
		}
		at += len(line)
	}
	if documents > MaxDocuments+1 {
		return nil, fmt.Errorf("more than %d documents", MaxDocuments)
	}
	return out, nil
}

// IsEmpty reports whether a document contains only white space, comments and markers. It does not
// parse the document.
func IsEmpty(document []byte) bool {
	for line := range bytes.Lines(document) {
		rest, begins := cutMarker(line, "---")
		if !begins {
			rest, _ = cutMarker(line, "...")
		}
		if !isBlank(rest) {
			return false
		}
	}
	return true
}

// cutMarker returns the rest of a line after a document marker. If the line does not begin with the
// marker, it returns the line and false.
func cutMarker(line []byte, marker string) (rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(line, []byte(marker))
	if !ok || len(rest) > 0 && bytes.IndexByte([]byte(" \t\r\n"), rest[0]) < 0 {
		return line, false
	}
	return rest, true
}

// isBlank reports whether a line, or its rest after a marker, contains only white space and a
// comment. It returns false for a \r within the line, which the parser treats as a line break.
func isBlank(line []byte) bool {
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	line = bytes.TrimLeft(line, " ")
	if len(line) == 0 {
		return true
	}
	if line[0] != '#' {
		return false
	}
	for _, c := range line {
		if c < ' ' && c != '\t' || c >= 0x7f { // includes characters that the parser treats as line breaks
			return false
		}
	}
	return true
}
