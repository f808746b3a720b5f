package fbc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

const (
	readAtLeast = 64 << 10 // room for one read
	growBy      = 256 << 10
)

// documents cuts a YAML stream at its document markers, which can stand
// nowhere else at the beginning of a line.
type documents struct {
	r     io.Reader
	buf   []byte // what was read
	from  int    // before it all was given out
	lines int    // line ends given out so far
	done  bool   // r has ended

	offset, end int64 // where the last document lies in the file
}

// reset makes d read from r, which begins at an offset of its file, with the
// memory that d has.
func (d *documents) reset(r io.Reader, offset int64) {
	*d = documents{r: r, buf: d.buf[:0], end: offset}
}

// next returns the next document, valid until the next call, and the line that
// it begins at; io.EOF after the last one.
func (d *documents) next() ([]byte, int, error) {
	start := d.lines + 1
	for looked := 0; ; {
		text := d.buf[d.from:]
		end, found := cut(text, looked, d.done)
		switch {
		case end > maxDocument:
			return nil, start, fmt.Errorf("document of more than %d MiB", maxDocument>>20)
		case found && end == 0:
			return nil, start, io.EOF
		case found:
			d.from += end
			d.offset, d.end = d.end, d.end+int64(end)
			d.lines += bytes.Count(text[:end], []byte{'\n'})
			return text[:end], start, nil
		}
		looked = end
		if err := d.fill(); err != nil {
			return nil, start, err
		}
	}
}

// fill reads more, or finds that there is no more.
func (d *documents) fill() error {
	if cap(d.buf)-len(d.buf) < readAtLeast {
		d.buf = append(d.buf[:0], d.buf[d.from:]...)
		d.from = 0
	}
	if cap(d.buf)-len(d.buf) < readAtLeast {
		d.buf = slices.Grow(d.buf, max(growBy, len(d.buf)))
	}
	for range 100 {
		n, err := d.r.Read(d.buf[len(d.buf):cap(d.buf)])
		d.buf = d.buf[:len(d.buf)+n]
		d.done = errors.Is(err, io.EOF)
		if d.done || n > 0 && err == nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
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
