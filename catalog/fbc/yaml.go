package fbc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// readYAML decodes the documents of a YAML file one at a time.
func (b *builder) readYAML(file string, r io.Reader, sel *selector) error {
	docs := &documents{r: bufio.NewReaderSize(r, 64<<10)}
	for !sel.done() && !b.full() {
		text, line, err := docs.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return diag.Errorf(diag.Pos{File: file, Line: line}, "%w", err)
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
	if err != nil || schema == "" {
		return diag.Errorf(pos, "object has no schema")
	}
	text, err := yamlnode.JSON(n)
	if err != nil {
		return shift(err, offset)
	}
	before := len(b.channels)
	d := &decoder{file: file, base: pos, dec: jsontext.NewDecoder(bytes.NewBuffer(text)), b: b, sel: sel}
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
	line  int    // lines given out so far
	ahead []byte // a marker's line, read ahead
	done  bool
}

// next returns the next document and the line that it begins at.
func (d *documents) next() ([]byte, int, error) {
	start := d.line + 1
	var text []byte
	text = append(text, d.ahead...)
	if d.ahead != nil {
		d.line++
		d.ahead = nil
	}
	for !d.done {
		line, err := d.readLine(maxDocument - len(text))
		if errors.Is(err, io.EOF) {
			d.done = true
		} else if err != nil {
			return nil, start, err
		}
		if isMarker(line) && len(bytes.TrimSpace(text)) > 0 && !isPreamble(text) {
			d.ahead = line
			return text, start, nil
		}
		text = append(text, line...)
		if len(line) > 0 {
			d.line++
		}
	}
	if len(text) == 0 {
		return nil, start, io.EOF
	}
	return text, start, nil
}

// readLine returns the next line with its end; io.EOF comes with the last one.
func (d *documents) readLine(limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := d.r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > limit {
			return nil, fmt.Errorf("document of more than %d MiB", maxDocument>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// isMarker reports whether a line begins a document.
func isMarker(line []byte) bool {
	return bytes.HasPrefix(line, []byte("---")) && (len(line) == 3 || bytes.IndexByte([]byte(" \t\r\n"), line[3]) >= 0)
}

// isPreamble reports whether text holds nothing but directives and comments,
// which belong to the document that the next marker begins.
func isPreamble(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '%' && line[0] != '#' {
			return false
		}
	}
	return true
}
