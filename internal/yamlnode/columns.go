package yamlnode

import (
	"bytes"
	"sort"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// columns converts positions of the YAML parser to lines as in an editor, with columns in bytes.
// The parser counts columns in characters, and treats more characters as line breaks than "\n".
type columns struct {
	data   []byte
	breaks []int // offset of the first byte of each line of the parser
	lines  []int // offset of the first byte of each line of an editor
	at     place // the position that was converted last
}

type place struct{ line, col, offset int }

func newColumns(data []byte) *columns {
	c := &columns{data: data, breaks: []int{0}, lines: []int{0}}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		i += size
		switch r {
		case '\n':
			c.lines = append(c.lines, i)
			c.breaks = append(c.breaks, i)
		case '\r':
			if i < len(data) && data[i] == '\n' {
				continue
			}
			c.breaks = append(c.breaks, i)
		case '\u0085', '\u2028', '\u2029':
			c.breaks = append(c.breaks, i)
		}
	}
	return c
}

func (c *columns) fixNodes(ns []*yaml.Node) {
	for _, n := range ns {
		c.fixNode(n)
		c.fixNodes(n.Content)
	}
}

func (c *columns) fixNode(n *yaml.Node) {
	if n.Line < 1 {
		return
	}
	offset := len(c.data) // an implied null is at the end of the text
	if n.Line <= len(c.breaks) {
		offset = c.offset(n.Line, n.Column)
	}
	n.Line = sort.Search(len(c.lines), func(i int) bool { return c.lines[i] > offset })
	n.Column = offset - c.lines[n.Line-1] + 1
}

// offset converts a position of the parser to a byte offset. If possible, it counts from the last
// converted position instead of the beginning of the line, because a line may be as long as the file.
func (c *columns) offset(line, col int) int {
	if line != c.at.line || col < c.at.col {
		c.at = place{line: line, col: 1, offset: c.breaks[line-1]}
		if c.at.offset == 0 && bytes.HasPrefix(c.data, []byte("\uFEFF")) {
			c.at.offset = len("\uFEFF")
		}
	}
	for c.at.col < col && c.at.offset < len(c.data) {
		_, size := utf8.DecodeRune(c.data[c.at.offset:])
		c.at.offset += size
		c.at.col++
	}
	return c.at.offset
}
