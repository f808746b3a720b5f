package blockyaml

import "bytes"

// blockText is the state of reading a literal or folded block.
type blockText struct {
	folded bool
	chomp  byte // chomping indicator: '-', '+', or 0 for none
	indent int  // indentation of the text; -1 until known
	blank  int  // number of blank lines since the last line of text
	lines  int  // number of lines of text
}

// blockScalar reads a literal or folded block into p.text. parent is the column of the parent node.
func (p *parser) blockScalar(parent int) {
	b := blockText{folded: p.data[p.off] == '>'}
	p.off++
	if !p.blockHeader(&b, parent) {
		p.fail()
		return
	}
	p.text = p.text[:0]
	at := p.off + 1
	for at < len(p.data) {
		end := at + bytes.IndexByte(p.data[at:], '\n')
		line := p.data[at:end]
		if b.indent < 0 {
			col := countBlanks(p.data[at:])
			switch {
			case col == len(line) && col > 0, col < len(line) && line[col] == '\t':
				p.fail() // unsupported: the spaces might determine the indentation
				return
			case col < len(line) && (col <= parent || col == 0):
				b.indent = 0 // the block has no text
			case col < len(line):
				b.indent = col
			}
		}
		if b.indent == 0 && len(line) > 0 || !p.blockLine(&b, line) {
			break
		}
		at = end + 1
	}
	if p.added && at >= len(p.data) {
		p.fail() // unsupported: parsers differ in whether the text ends with a line break
		return
	}
	p.chomp(&b)
	p.line(at)
	if !p.end && p.col > parent {
		p.fail()
	}
}

// blockLine adds one line to the text, and reports whether the line belongs to the block.
func (p *parser) blockLine(b *blockText, line []byte) bool {
	if len(line) <= b.indent || b.indent < 0 {
		if len(bytes.TrimLeft(line, " ")) > 0 {
			return false
		}
		b.blank++
		return true
	}
	for _, c := range line[:b.indent] {
		if c != ' ' {
			return false
		}
	}
	text := line[b.indent:]
	if b.folded && (text[0] == ' ' || text[0] == '\t') {
		p.fail() // unsupported: more indented lines are not folded
		return false
	}
	if p.skim == 0 {
		p.separate(b)
		p.text = append(p.text, text...)
	}
	b.lines++
	b.blank = 0
	return true
}

// separate adds the separator between the previous line of text and the next one. There are b.blank
// blank lines between them.
func (p *parser) separate(b *blockText) {
	switch {
	case b.lines > 0 && b.folded:
		p.fold(b.blank)
		return
	case b.lines > 0:
		p.text = append(p.text, '\n')
	}
	for range b.blank {
		p.text = append(p.text, '\n')
	}
}

// chomp adds the line breaks at the end of the text, depending on the chomping indicator.
func (p *parser) chomp(b *blockText) {
	if b.chomp != '-' && b.lines > 0 {
		p.text = append(p.text, '\n')
	}
	if b.chomp == '+' {
		for range b.blank {
			p.text = append(p.text, '\n')
		}
	}
}

// blockHeader reads the chomping and indentation indicators of a block. It reports whether there is
// nothing else on the line.
func (p *parser) blockHeader(b *blockText, parent int) bool {
	b.indent = -1
	for range 2 {
		switch c := p.data[p.off]; {
		case (c == '-' || c == '+') && b.chomp == 0:
			b.chomp = c
			p.off++
		case c >= '1' && c <= '9' && b.indent < 0:
			b.indent = max(parent, 0) + int(c-'0')
			p.off++
		}
	}
	return p.data[p.off] == '\n'
}
