package fbc

import (
	"bytes"

	"github.com/quayside/quayside/internal/diag"
)

// block decodes one document that is in the style that opm writes, whose lines
// count from offset. It reports false, and has done nothing, where the document
// is not that plain or not right: then the full parser must read it.
func (b *builder) block(file string, text []byte, offset int, sel *selector) bool {
	r := &b.rewriter
	r.reset()
	if crowded(text) || !b.walker.Walk(text, r) || r.odd || len(r.schema) == 0 {
		return false
	}
	lines := diag.Lines{File: file, Text: text, Line: offset + 1}
	at, faults := lines.Pos(r.at), len(b.faults)
	b.written.resetBytes(r.out)
	d := &decoder{file: file, in: &b.written, whole: true, base: at, b: b, sel: sel}
	o, err := d.object(at, b.intern(r.schema))
	if err != nil || len(b.faults) > faults {
		b.faults = b.faults[:faults]
		return false
	}
	for i := range o.entries {
		o.entries[i].Pos = lines.Pos(r.entries[i])
	}
	for i := range o.deprecations {
		o.deprecations[i].Pos = lines.Pos(r.entries[i])
	}
	b.add(o, sel)
	return true
}

// crowded reports whether a document may hold more values than the full parser
// allows: in block style there are no more than four to each mark.
func crowded(text []byte) bool {
	if len(text) < maxNodes/4 {
		return false
	}
	marks := 0
	for _, c := range []byte("\n,[{") {
		marks += bytes.Count(text, []byte{c})
	}
	return marks+bytes.Count(text, []byte("- "))+bytes.Count(text, []byte("? ")) >= maxNodes/4
}
