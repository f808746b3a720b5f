package fbc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// readYAML decodes the documents of a YAML file one at a time.
func (b *builder) readYAML(file string, r io.Reader, sel *selector) error {
	docs := &documents{r: bufio.NewReaderSize(r, 64<<10), to: b.window.mark}
	for !sel.done() && !b.full() {
		text, line, err := docs.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return diag.Errorf(diag.Pos{File: file, Line: line}, "%w", err)
		}
		b.document = catalog.Span{Offset: docs.from, Size: int64(len(text))}
		if !b.plodding && b.block(file, text, line-1, sel) {
			continue
		}
		nodes, err := yamlnode.Documents(file, text, yamlnode.Limits{Bytes: maxDocument, Depth: maxDepth, Nodes: maxNodes})
		if err != nil {
			b.fault(diag.Pos{File: file, Line: line}, shift(err, line-1))
			continue
		}
		for _, n := range nodes {
			if err := b.node(file, n, line-1, sel); err != nil {
				b.fault(diag.Pos{File: file, Line: n.Line + line - 1, Col: n.Column}, err)
			}
		}
	}
	return nil
}

// node decodes one document, whose lines count from offset.
func (b *builder) node(file string, n *yaml.Node, offset int, sel *selector) error {
	pos := diag.Pos{File: file, Line: n.Line + offset, Col: n.Column}
	schema, err := schemaOf(n)
	if err != nil {
		return diag.Errorf(pos, "%w", err)
	}
	if schema == "" {
		return diag.Errorf(pos, "object has no schema")
	}
	text, err := yamlnode.JSON(n)
	if err != nil {
		return shift(err, offset)
	}
	before := len(b.channels)
	d := b.text(file, pos, text, sel)
	if err := d.object(pos, schema); err != nil {
		return d.syntax(err)
	}
	if len(b.channels) > before {
		placeEntries(b.channels[before].data.Entries, n, pos, offset)
	}
	return nil
}

func schemaOf(n *yaml.Node) (string, error) {
	_, v := yamlnode.Field(n, "schema")
	if v == nil {
		return "", nil
	}
	s, ok := yamlnode.Text(v)
	if !ok {
		return "", errors.New("schema: want a string")
	}
	return s, nil
}

// shift moves the positions of a fault down by lines.
func shift(err error, lines int) error {
	move := func(e *diag.Error) *diag.Error {
		moved := *e
		if moved.Pos.Line > 0 {
			moved.Pos.Line += lines
		}
		return &moved
	}
	var list diag.List
	var one *diag.Error
	switch {
	case errors.As(err, &list):
		out := make(diag.List, len(list))
		for i, e := range list {
			out[i] = move(e)
		}
		return out
	case errors.As(err, &one):
		return move(one)
	default:
		return err
	}
}

// documents cuts a YAML stream at its document markers, which can stand
// nowhere else at the beginning of a line.
type documents struct {
	r     *bufio.Reader
	lines int    // line ends given out so far
	text  []byte // of the document; its memory serves the next one
	ahead []byte // the beginning of the line that ended the last document
	done  bool

	from, to int64 // where the last document lies
}

// next returns the next document, valid until the next call, and the line that
// it begins at; io.EOF after the last one.
func (d *documents) next() ([]byte, int, error) {
	start := d.lines + 1
	d.text = append(d.text[:0], d.ahead...)
	d.ahead = d.ahead[:0]
	for !d.done {
		fresh := len(d.text) == 0 || d.text[len(d.text)-1] == '\n'
		part, err := d.r.ReadSlice('\n')
		if fresh && isMarker(part) && !isPreamble(d.text) {
			d.ahead = append(d.ahead, part...)
			break
		}
		d.text = append(d.text, part...)
		if fresh && isLine(part, "...") {
			break
		}
		switch {
		case len(d.text) > maxDocument:
			return nil, start, fmt.Errorf("document of more than %d MiB", maxDocument>>20)
		case errors.Is(err, io.EOF):
			d.done = true
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, start, err
		}
	}
	d.from, d.to = d.to, d.to+int64(len(d.text))
	if len(d.text) == 0 {
		return nil, start, io.EOF
	}
	d.lines += bytes.Count(d.text, []byte{'\n'})
	return d.text, start, nil
}

// isMarker reports whether a line begins a document.
func isMarker(line []byte) bool { return isLine(line, "---") }

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
