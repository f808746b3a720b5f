package fbc

import (
	"errors"
	"io"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// readYAML decodes a YAML file, one document at a time. The first byte of r is at the given offset
// of the file.
func (b *builder) readYAML(file string, r io.Reader, offset int64, sel *selector) error {
	limits := yamlnode.Limits{Bytes: maxDocument, Depth: maxDepth, Nodes: maxNodes}
	docs := &b.documents
	docs.Reset(r, offset, maxDocument)
	for !sel.done() && !b.isFull() {
		text, line, err := docs.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return diag.Errorf(diag.Pos{File: file, Line: line}, "%w", err)
		}
		b.document = catalog.Span{Offset: docs.Offset, Size: int64(len(text))}
		read, err := b.yaml.Read(file, line, text, limits, b.codecs.document())
		if string(b.codecs.schema) == schemaLifecycles { // the filter omits the fields of lifecycle documents: decode the whole document, which is small
			read, err = b.yaml.Read(file, line, text, limits, nil)
		}
		b.fault(diag.Pos{File: file, Line: line}, err)
		for i := range read {
			if err := b.decodeYAML(file, &read[i], sel); err != nil {
				b.fault(read[i].Pos(0), err)
			}
		}
	}
	return nil
}

// decodeYAML decodes one document.
func (b *builder) decodeYAML(file string, text *yamlnode.Document, sel *selector) error {
	pos := text.Pos(0)
	b.written.resetBytes(text.JSON)
	d := &decoder{file: file, in: &b.written, whole: true, base: pos, yaml: text, b: b, sel: sel}
	o, err := d.decodeObject(pos, b.intern(b.codecs.schema))
	if err != nil {
		return d.wrapSyntaxError(err)
	}
	b.add(o, sel)
	return nil
}
