package fbc

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// documents cuts a YAML stream at its document markers, which can stand
// nowhere else at the beginning of a line.
type documents struct {
	in     *bufio.Scanner
	buf    []byte // for in to begin with
	looked int    // how much was read that no marker stands in, behind the last document
	lines  int    // line ends given out so far

	offset, end int64 // where the last document lies in the file
}

// reset makes d read from r, which begins at an offset of its file, with the
// memory that d has.
func (d *documents) reset(r io.Reader, offset int64) {
	if d.buf == nil {
		d.buf = make([]byte, windowSize)
	}
	*d = documents{in: bufio.NewScanner(r), buf: d.buf, end: offset}
	d.in.Buffer(d.buf, maxDocument+windowSize)
	d.in.Split(d.split)
}

// next returns the next document, valid until the next call, and the line that
// it begins at; io.EOF after the last one.
func (d *documents) next() ([]byte, int, error) {
	start := d.lines + 1
	more := d.in.Scan()
	if err := d.in.Err(); err != nil {
		return nil, start, err
	}
	if !more {
		return nil, start, io.EOF
	}
	text := d.in.Bytes()
	d.offset, d.end = d.end, d.end+int64(len(text))
	d.lines += bytes.Count(text, []byte{'\n'})
	return text, start, nil
}

// split is the bufio.SplitFunc of documents.
func (d *documents) split(text []byte, last bool) (int, []byte, error) {
	end, found := cut(text, d.looked, last)
	d.looked = end
	switch {
	case end > maxDocument:
		return 0, nil, fmt.Errorf("document of more than %d MiB", maxDocument>>20)
	case !found || end == 0:
		return 0, nil, nil
	}
	d.looked = 0
	return end, text[:end], nil
}

// cut returns where the document that text begins with ends, and true; or from
// where to look on when there is more of text. Nothing ends it before at. last
// says that there is no more.
func cut(text []byte, at int, last bool) (int, bool) {
	for at < len(text) {
		if c := text[at]; (c == '-' || c == '.') && (at == 0 || text[at-1] == '\n') {
			line := text[at:]
			switch {
			case len(line) < len("---\n") && !last:
				return at, false
			case isLine(line, "---") && !isPreamble(text[:at]):
				return at, true
			case isLine(line, "..."):
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

// isLine reports whether a line begins with a marker and a blank, or is it.
func isLine(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// isPreamble reports whether text holds nothing but blanks, directives and
// comments, which belong to the document that the next marker begins.
func isPreamble(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '%' && line[0] != '#' {
			return false
		}
	}
	return true
}
