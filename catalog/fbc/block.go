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
	lines := liner{file: file, text: text, line: offset + 1}
	at := lines.pos(r.at)
	before := b.mark(r.pkg, sel)
	b.written.resetBytes(r.out)
	d := &decoder{file: file, in: &b.written, whole: true, base: at, b: b, sel: sel}
	if err := d.object(at, b.intern(r.schema)); err != nil || len(b.faults) > before.faults {
		b.undo(before, sel)
		return false
	}
	for _, c := range b.channels[before.channels:] {
		for i := range c.data.Entries {
			c.data.Entries[i].Pos = lines.pos(r.entries[i])
		}
	}
	for _, x := range b.deprecations[before.deprecations:] {
		for i := range x.data {
			x.data[i].Pos = lines.pos(r.entries[i])
		}
	}
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

// liner tells the lines of offsets of a text that ascend.
type liner struct {
	file string
	text []byte
	line int
	at   int // the line is of this offset
}

func (l *liner) pos(at int) diag.Pos {
	l.line += bytes.Count(l.text[l.at:at], []byte{'\n'})
	l.at = at
	return diag.Pos{File: l.file, Line: l.line, Col: at - bytes.LastIndexByte(l.text[:at], '\n')}
}

// mark is how far a builder was at some time.
type mark struct {
	packages, channels, bundles, deprecations, faults, objects int

	pkg        string // of the document that comes next
	deprecated diag.Pos
	selected   selector
}

// mark returns how far b is before it reads a document of pkg.
func (b *builder) mark(pkg []byte, sel *selector) mark {
	m := mark{
		packages: len(b.packages), channels: len(b.channels), bundles: len(b.bundles), deprecations: len(b.deprecations),
		faults: len(b.faults), objects: b.objects, pkg: b.intern(pkg), deprecated: b.deprecated[string(pkg)],
	}
	if sel != nil {
		m.selected = *sel
	}
	return m
}

// undo takes b back to where it was.
func (b *builder) undo(m mark, sel *selector) {
	b.packages, b.channels, b.bundles, b.deprecations = b.packages[:m.packages], b.channels[:m.channels], b.bundles[:m.bundles], b.deprecations[:m.deprecations]
	b.faults, b.objects = b.faults[:m.faults], m.objects
	delete(b.deprecated, m.pkg)
	if !m.deprecated.IsZero() {
		b.deprecated[m.pkg] = m.deprecated
	}
	if sel != nil {
		*sel = m.selected
	}
}
