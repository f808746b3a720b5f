package fbc

import (
	"errors"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// readYAML decodes the documents of a YAML file one at a time. r begins at an
// offset of the file.
func (b *builder) readYAML(file string, r io.Reader, offset int64, sel *selector) error {
	docs := &b.documents
	docs.reset(r, offset)
	empty := 0
	for !sel.done() && !b.full() {
		b.settle()
		text, line, err := docs.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return diag.Errorf(diag.Pos{File: file, Line: line}, "%w", err)
		}
		if yamlnode.IsEmpty(text) {
			continue
		}
		b.document = catalog.Span{Offset: docs.offset, Size: int64(len(text))}
		if !b.plodding && b.block(file, text, line-1, sel) {
			continue
		}
		nodes, err := yamlnode.Documents(file, text, yamlnode.Limits{Bytes: maxDocument, Depth: maxDepth, Nodes: maxNodes})
		if err != nil {
			b.fault(diag.Pos{File: file, Line: line}, shift(err, line-1))
			continue
		}
		if len(nodes) == 0 {
			empty++
		}
		if empty > maxEmpty {
			return diag.Errorf(diag.Pos{File: file, Line: line}, "more than %d documents that hold nothing", maxEmpty)
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
	text, places, err := yamlnode.Places(n)
	if err != nil {
		return shift(err, offset)
	}
	d := b.text(file, pos, text, sel)
	d.places, d.lines = places, offset
	o, err := d.object(pos, schema)
	if err != nil {
		return d.syntax(err)
	}
	b.add(o, sel)
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
