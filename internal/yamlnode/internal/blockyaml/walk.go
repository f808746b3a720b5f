// Package blockyaml is a fast reader for the YAML style that tools write: block mappings with plain or
// quoted keys, block sequences, and scalars of every style. It returns the same values as a complete YAML
// parser, but much faster. It detects text that it does not support. Its caller must then use a complete
// parser for the whole text. The tests of package yamlnode, the only user, compare both parsers.
//
// Start from [Walker].
package blockyaml

import "bytes"

// Sink receives the content of a document, in the order of the text. at is the offset of a value in
// the text. Byte slices are valid only during the call.
type Sink interface {
	// Open begins a mapping ('{') or a sequence ('[').
	Open(kind byte, at int)
	// Close ends a mapping ('}') or a sequence (']').
	Close(kind byte)
	// Key receives the key of the next value of a mapping. Keys are unique. If wanted is false, the
	// value is checked, but not passed to the sink, except for calls of Plain.
	Key(name []byte, at int) (wanted bool)
	// Text receives a string.
	Text(s []byte, at int)
	// Word receives null, true, false, or a decimal integer that fits int64, spelled as in JSON.
	Word(s []byte, at int)
	// Plain receives any other plain scalar that might not be a string. If it returns false, the
	// scalar is not supported, and the walk ends.
	Plain(s []byte, at int, wanted bool) bool
}

// Walker reads documents. Memory is reused for the next document.
type Walker struct {
	Depth int // maximum nesting depth of a document
	Nodes int // maximum number of values and keys in all further documents; Walk reduces it

	p parser
}

// Walk reads text, a single document with or without a "---" line, and reports whether the sink
// received all of it. It returns false if the text is empty, invalid, not supported or beyond the
// limits. The sink may then have received a part.
func (w *Walker) Walk(text []byte, sink Sink) bool {
	w.p.sink, w.p.depth, w.p.nodes = sink, w.Depth, w.Nodes
	ok := w.p.document(text, skipMarker(text)) && !w.p.empty
	w.Nodes = w.p.nodes
	return ok
}

// skipMarker returns the offset after the first "---" line of text. If there is other content
// before it, it returns 0.
func skipMarker(text []byte) int {
	for at := 0; at < len(text); {
		end := at + 1 + bytes.IndexByte(text[at:], '\n')
		if end == at {
			end = len(text)
		}
		line := bytes.Trim(text[at:end], " \n")
		switch {
		case len(line) == 0 || line[0] == '#':
			at = end
		case isMarker(text[at:end]):
			return end
		default:
			return 0
		}
	}
	return 0
}

// isMarker reports whether a line is a "---" line.
func isMarker(line []byte) bool {
	return bytes.HasPrefix(line, []byte("---")) && len(bytes.TrimRight(line[3:], " \n")) == 0
}

// parser reads one document. Its cursor is at the next content.
type parser struct {
	data  []byte // text of the document, which ends with a line break
	sink  Sink
	off   int // offset of the cursor
	col   int // column of the cursor
	end   bool
	bad   bool     // the text is not supported
	empty bool     // the text contains only white space and comments
	tabs  bool     // the text has a tab
	added bool     // the line break at the end of the text was added
	skim  int      // number of unwanted values that contain the cursor
	depth int      // remaining nesting levels
	nodes int      // remaining values and keys
	next  int      // offset after the last key
	name  []byte   // the last key
	keys  [][]byte // keys of the mappings that contain the cursor
	text  []byte   // value of the last quoted, block or multi-line scalar
}

// document reads the text that begins at offset from, and reports whether it succeeded.
func (p *parser) document(text []byte, from int) bool {
	var ok bool
	if p.tabs, ok = isSimple(text); !ok {
		return false
	}
	*p = parser{data: text, sink: p.sink, tabs: p.tabs, depth: p.depth, nodes: p.nodes, keys: p.keys[:0], text: p.text[:0]}
	if len(text) == 0 || text[len(text)-1] != '\n' {
		p.data, p.added = append(bytes.Clone(text), '\n'), true
	}
	p.line(from)
	if p.end {
		p.empty = !p.bad
		return !p.bad
	}
	p.block(-1)
	return !p.bad && p.end
}

// line moves the cursor to the first content at or after the offset off. off must be the beginning of a line.
func (p *parser) line(off int) {
	for off < len(p.data) {
		col := countBlanks(p.data[off:])
		at := off + col
		switch c := p.data[at]; {
		case c == '\n':
			off = at + 1
		case c == '#':
			off = at + bytes.IndexByte(p.data[at:], '\n') + 1
		default:
			p.off, p.col = at, col
			if c == '\t' || col == 0 && p.marker(at) {
				p.fail()
			}
			return
		}
	}
	p.off, p.col, p.end = len(p.data), -1, true
}

// countBlanks returns the number of spaces at the beginning of text. text must end with a line
// break.
func countBlanks(text []byte) int {
	n := 0
	for text[n] == ' ' {
		n++
	}
	return n
}

// marker reports whether a line begins or ends a document, or is a directive. at is the offset of the line.
func (p *parser) marker(at int) bool {
	switch p.data[at] {
	case '-':
		return bytes.HasPrefix(p.data[at:], []byte("---"))
	case '.':
		return bytes.HasPrefix(p.data[at:], []byte("..."))
	}
	return p.data[at] == '%'
}

// fail marks the text as unsupported and ends the walk.
func (p *parser) fail() { p.bad, p.end = true, true }

// block parses the node at the cursor. parent is the column of the parent node.
func (p *parser) block(parent int) {
	switch {
	case p.bad:
	case p.dash():
		p.sequence(p.col)
	case p.key():
		p.mapping(p.col)
	default:
		p.scalar(parent)
	}
}

// count counts a value or key. If a limit for values, keys or levels is exceeded, the walk fails.
func (p *parser) count() {
	if p.nodes--; p.nodes < 0 || p.depth < 1 {
		p.fail()
	}
}

// dash reports whether the cursor is at the dash of a sequence item.
func (p *parser) dash() bool {
	return p.data[p.off] == '-' && (p.data[p.off+1] == ' ' || p.data[p.off+1] == '\n')
}

func (p *parser) sequence(col int) {
	p.open('[')
	for !p.end && p.col == col && p.dash() {
		start := p.off
		p.off++
		if !p.skipToLineEnd() {
			p.col = col + p.off - start
			p.block(col)
			continue
		}
		p.line(p.off)
		if !p.end && p.col > col {
			p.block(col)
		} else {
			p.null(start + 1)
		}
	}
	if !p.end && p.col > col {
		p.fail()
	}
	p.close(']')
}

// skipToLineEnd skips white space and a comment, and reports whether the line ends there. If so,
// the cursor is at the line break.
func (p *parser) skipToLineEnd() bool {
	from := p.off
	for p.data[p.off] == ' ' {
		p.off++
	}
	switch c := p.data[p.off]; {
	case c == '\n':
		return true
	case c == '#' && p.off > from:
		p.off += bytes.IndexByte(p.data[p.off:], '\n')
		return true
	case c == '\t':
		p.fail()
	}
	return false
}

// mapping reads a mapping in column col, after its first key.
func (p *parser) mapping(col int) {
	p.open('{')
	seen := names{first: len(p.keys)}
	for {
		if p.isRepeatedKey(&seen) {
			p.fail()
			break
		}
		skim := p.skim
		if p.count(); p.bad {
			break
		}
		if skim > 0 || !p.sink.Key(p.name, p.off) {
			p.skim++
		}
		p.off = p.next
		p.value(col)
		p.skim = skim
		if p.end || p.col != col {
			break
		}
		if !p.key() {
			p.fail()
			break
		}
	}
	if !p.end && p.col > col {
		p.fail()
	}
	p.keys = p.keys[:seen.first]
	p.close('}')
}

// value reads the value of a key in column col, after the colon.
func (p *parser) value(col int) {
	start := p.off
	if !p.skipToLineEnd() {
		if !p.bad {
			p.scalar(col)
		}
		return
	}
	p.line(p.off)
	switch {
	case !p.end && p.col > col, !p.end && p.col == col && p.dash():
		p.block(col)
	default:
		p.null(start)
	}
}

func (p *parser) open(kind byte) {
	p.count()
	p.depth--
	if p.skim == 0 && !p.bad {
		p.sink.Open(kind, p.off)
	}
}

func (p *parser) close(kind byte) {
	p.depth++
	if p.skim == 0 && !p.bad {
		p.sink.Close(kind)
	}
}

// null passes a missing value to the sink as null. at is the offset after its key or dash.
func (p *parser) null(at int) {
	p.count()
	if p.skim == 0 && !p.bad {
		p.sink.Word([]byte("null"), at)
	}
}
