// Package blockyaml reads the block style that tools write YAML in: mappings
// with plain or quoted keys, sequences, scalars of every style. It is many
// times as fast as a full parser, finds the same values, and knows when a text
// is beyond it: then it gives up, and a full parser must read the whole. Its
// users prove both with tests of their own.
//
// Start from [Walker], which says what a document holds as it goes, and
// [Decode], which returns it.
package blockyaml

import "bytes"

const maxDepth = 100

// Sink is told what a document holds, in the order of the text. The bytes that
// it is given are good until it returns; at is where in the text the value
// begins.
type Sink interface {
	// Open begins a mapping, by '{', or a sequence, by '['.
	Open(kind byte, at int)
	// Close ends it, by '}' or ']'.
	Close(kind byte)
	// Key names the value that comes next in a mapping, where it stands once.
	// It reports whether the sink wants the value: of another one it hears
	// nothing but what Plain says. The value is held to the same rules.
	Key(name []byte) (wanted bool)
	// Text takes a string.
	Text(s []byte, at int)
	// Word takes null, true, false, or a decimal integer that fits int64, as
	// JSON spells it.
	Word(s []byte, at int)
	// Plain takes any other plain scalar that may be something else than a
	// string. It reports false for what it does not understand, and the walk
	// ends.
	Plain(s []byte, at int, wanted bool) bool
}

// Walker reads documents. The zero value is ready; it keeps memory from one to
// the next.
type Walker struct{ p parser }

// Walk reads the one document in text, with or without the marker that begins
// it, and reports whether there is one and all of it was told. It is false where
// the text is empty, beyond this parser, or wrong; the sink then knows a part.
func (w *Walker) Walk(text []byte, sink Sink) bool {
	w.p.sink = sink
	return w.p.document(text, skipMarker(text)) && !w.p.empty
}

// skipMarker returns the offset behind the line "---" that text begins with,
// comments aside, or 0.
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

// isMarker reports whether a line is the one that begins a document.
func isMarker(line []byte) bool {
	return bytes.HasPrefix(line, []byte("---")) && len(bytes.TrimRight(line[3:], " \n")) == 0
}

// parser reads one document.
type parser struct {
	data  []byte // ends with a line break
	sink  Sink
	off   int // of the content that is next
	col   int // its column
	end   bool
	bad   bool // beyond this parser
	empty bool // nothing but blanks and comments
	tabs  bool // there is one somewhere
	added bool // the last line break is not in the text
	skim  int  // how many values around the cursor are not wanted
	deep  int
	next  int      // offset behind the key that was read last
	name  []byte   // that key
	keys  [][]byte // of the mappings around the cursor
	text  []byte   // a scalar that does not stand in data as it is
}

// document reads text from offset from on, and reports whether it could.
func (p *parser) document(text []byte, from int) bool {
	var ok bool
	if p.tabs, ok = simple(text); !ok {
		return false
	}
	*p = parser{data: text, sink: p.sink, tabs: p.tabs, keys: p.keys[:0], text: p.text[:0]}
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

// line moves to the next content at or after the line that begins at off.
func (p *parser) line(off int) {
	for off < len(p.data) {
		col := blanks(p.data[off:])
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

// blanks returns how many blanks text begins with. Text ends with a line break.
func blanks(text []byte) int {
	n := 0
	for text[n] == ' ' {
		n++
	}
	return n
}

// marker reports whether a line marks the beginning or end of a document, or
// is a directive.
func (p *parser) marker(at int) bool {
	switch p.data[at] {
	case '-':
		return bytes.HasPrefix(p.data[at:], []byte("---"))
	case '.':
		return bytes.HasPrefix(p.data[at:], []byte("..."))
	}
	return p.data[at] == '%'
}

// fail gives up.
func (p *parser) fail() { p.bad, p.end = true, true }

// block reads the node at the cursor, which belongs to one in column parent.
func (p *parser) block(parent int) {
	if p.deep++; p.deep > maxDepth || p.bad {
		p.fail()
		return
	}
	switch {
	case p.dash():
		p.sequence(p.col)
	case p.key():
		p.mapping(p.col)
	default:
		p.scalar(parent)
	}
	p.deep--
}

// dash reports whether a sequence's item begins at the cursor.
func (p *parser) dash() bool {
	return p.data[p.off] == '-' && (p.data[p.off+1] == ' ' || p.data[p.off+1] == '\n')
}

func (p *parser) sequence(col int) {
	p.open('[')
	for !p.end && p.col == col && p.dash() {
		start := p.off
		p.off++
		if !p.rest() {
			p.col = col + p.off - start
			p.block(col)
			continue
		}
		p.line(p.off)
		if !p.end && p.col > col {
			p.block(col)
		} else {
			p.null(start)
		}
	}
	if !p.end && p.col > col {
		p.fail()
	}
	p.close(']')
}

// rest skips blanks and reports whether the line ends, with or without a
// comment; then the cursor is at its end.
func (p *parser) rest() bool {
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

// mapping reads a mapping whose first key was read.
func (p *parser) mapping(col int) {
	p.open('{')
	seen := names{first: len(p.keys)}
	for {
		if p.again(&seen) {
			p.fail()
			break
		}
		start, skim := p.off, p.skim
		if skim > 0 || !p.sink.Key(p.name) {
			p.skim++
		}
		p.off = p.next
		p.value(col, start)
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

// value reads what stands behind a key's colon. The key is in column col, at
// start.
func (p *parser) value(col, start int) {
	if !p.rest() {
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
	if p.skim == 0 {
		p.sink.Open(kind, p.off)
	}
}

func (p *parser) close(kind byte) {
	if p.skim == 0 && !p.bad {
		p.sink.Close(kind)
	}
}

// null tells of a value that is not there; at is what it belongs to.
func (p *parser) null(at int) {
	if p.skim == 0 && !p.bad {
		p.sink.Word([]byte("null"), at)
	}
}
