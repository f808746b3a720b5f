// Package yamlnode parses YAML and JSON into trees with positions.
//
// Input is untrusted: size, depth and the expansion of aliases are limited. A repeated key is an
// error. Every fault has a file, line and column. Scalars have the types that the API server
// assigns to them, by the rules of YAML 1.1.
//
// Start from [Documents], then [Decode] into a struct or [JSON].
package yamlnode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/diag"
)

// Limits bounds the input. A zero field means the default.
type Limits struct {
	Bytes    int  // bytes of the whole input; default 64 MiB
	Depth    int  // nesting depth of mappings and sequences; default 100
	Nodes    int  // values in all documents together, with aliases expanded; default 2,000,000
	Repeated bool // the last value of a repeated key wins, as in the API server; default: an error
}

// MaxFaults is the maximum number of faults that are listed for one document or file. A hostile
// document could have a fault for each byte.
const MaxFaults = 100

func (l Limits) orDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = 64 << 20
	}
	if l.Depth == 0 {
		l.Depth = 100
	}
	if l.Nodes == 0 {
		l.Nodes = 2_000_000
	}
	return l
}

// Documents returns the root mapping of each document in data, in order. Empty documents are omitted. More
// than [MaxDocuments] other documents are an error. A stream of JSON objects is parsed as JSON. Aliases and
// merge keys (<<) are expanded. So a node may occur several times in the tree, with the position of its
// anchor, and must not be modified. The error is a diag.List.
func Documents(file string, data []byte, lim Limits) ([]*yaml.Node, error) {
	lim = lim.orDefaults()
	whole := diag.Pos{File: file}
	if len(data) > lim.Bytes {
		return nil, diag.List{diag.Errorf(whole, "%d bytes exceed the limit of %d", len(data), lim.Bytes)}
	}
	if i := invalidUTF8(data); i >= 0 {
		return nil, diag.List{diag.Errorf(offsetPos(file, data, i), "not UTF-8")}
	}
	roots, err := parse(file, data, lim)
	if err != nil {
		return nil, err
	}
	ex := expander{file: file, lim: lim, size: map[*yaml.Node]extent{}, active: map[*yaml.Node]bool{}}
	docs := make([]*yaml.Node, 0, len(roots))
	for _, root := range roots {
		if n := ex.document(root); n != nil {
			docs = append(docs, n)
		}
	}
	if err := ex.errs.Err(); err != nil {
		return nil, err
	}
	return docs, nil
}

func parse(file string, data []byte, lim Limits) ([]*yaml.Node, error) {
	if beginsJSON(data) {
		roots, err := parseJSON(file, data, lim)
		if err == nil || !errors.Is(err, errNotJSON) {
			return roots, err
		}
	}
	if countDelimiters(data) > lim.Nodes {
		return nil, diag.List{diag.Errorf(diag.Pos{File: file}, "more than %d values", lim.Nodes)}
	}
	condensed, err := condense(data)
	if err != nil {
		return nil, diag.List{diag.Errorf(diag.Pos{File: file}, "%w", err)}
	}
	var roots []*yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(condensed))
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, diag.List{syntaxError(file, data, err)}
		}
		roots = append(roots, &n)
	}
	newColumns(data).fixNodes(roots)
	return roots, nil
}

// invalidUTF8 returns the offset of the first invalid UTF-8 sequence, or -1.
func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// countDelimiters estimates the number of values without parsing. This is needed because the parser
// allocates nodes before they can be counted.
func countDelimiters(data []byte) int {
	n := 0
	for i, c := range data {
		switch c {
		case ',', '\n', '[', '{':
			n++
		case '-', '?':
			if i+1 < len(data) && data[i+1] == ' ' {
				n++
			}
		}
	}
	return n
}

// syntaxError converts an error of the YAML parser to an error with a position.
func syntaxError(file string, data []byte, err error) *diag.Error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	pos := diag.Pos{File: file, Line: 1}
	if m := regexp.MustCompile(`^line ([0-9]+): `).FindStringSubmatch(msg); m != nil {
		pos.Line, _ = strconv.Atoi(m[1]) // ignore the error: the pattern matches only digits
		msg = msg[len(m[0]):]
		if countsFromZero(msg) {
			pos.Line++
		}
	} else if m := regexp.MustCompile(`^unknown anchor '([^']*)'`).FindStringSubmatch(msg); m != nil {
		msg = fmt.Sprintf("unknown anchor %q", m[1])
		if i := bytes.Index(data, []byte("*"+m[1])); i >= 0 {
			pos = offsetPos(file, data, i)
		}
	}
	pos.Line = min(pos.Line, bytes.Count(data, []byte("\n"))+1)
	lines := strings.Split(string(data), "\n")
	near := strings.Join(lines[max(0, min(pos.Line-2, len(lines))):min(pos.Line, len(lines))], "\n")
	isUnquoted := strings.Contains(msg, "cannot start any token") || strings.Contains(msg, "expected comment or line break")
	if m := regexp.MustCompile("(?m)(?:^|[:,\\[{-] +)([>%@`][^\\s,\\]}#][^,\\]}#\n]*)").FindStringSubmatch(near); isUnquoted && m != nil {
		return diag.Hintf(pos, "put the value in quotes: "+strconv.Quote(strings.TrimSpace(m[1])), "malformed YAML: %s", msg)
	}
	return diag.Errorf(pos, "malformed YAML: %s", msg)
}

// countsFromZero reports whether a message of the YAML parser counts lines from 0. Some stages of the parser
// count from 0, the others from 1.
func countsFromZero(msg string) bool {
	for _, s := range []string{"key", "'-' indicator", "node content", "',' or ']'", "',' or '}'", "<document start>", "<stream-start>"} {
		if msg == "did not find expected "+s {
			return true
		}
	}
	return strings.HasPrefix(msg, "found undefined tag handle")
}

// offsetPos returns the position of a byte offset in data.
func offsetPos(file string, data []byte, offset int) diag.Pos {
	lines := diag.Lines{File: file, Text: data, Line: 1}
	return lines.Pos(offset)
}

// At returns the position of n in file.
func At(file string, n *yaml.Node) diag.Pos {
	return diag.Pos{File: file, Line: n.Line, Col: n.Column}
}

// Field returns the key and value nodes of a field of a mapping. Both are nil if there is no such
// field.
func Field(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k, err := keyText(n.Content[i]); err == nil && k == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// Text returns the text of a scalar, and whether the API server decodes it as a string.
func Text(n *yaml.Node) (string, bool) {
	if n == nil || n.Kind != yaml.ScalarNode {
		return "", false
	}
	s, err := resolve(n)
	if err != nil || s.kind != kindString {
		return "", false
	}
	return s.text, true
}

// Positions returns the position of each value below n, by field path such as "spec.channel" or
// "spec.channels[0]".
func Positions(file string, n *yaml.Node) map[string]diag.Pos {
	out := map[string]diag.Pos{}
	collectPositions(file, n, "", out)
	return out
}

func collectPositions(file string, n *yaml.Node, path string, out map[string]diag.Pos) {
	if path != "" {
		out[path] = At(file, n)
	}
	switch n.Kind { //nolint:exhaustive // other kinds contain no values
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, err := keyText(n.Content[i])
			if err != nil {
				continue
			}
			collectPositions(file, n.Content[i+1], diag.Member(path, k), out)
			if literal := n.Content[i].Value; literal == "on" { // a field name that YAML 1.1 decodes as true
				collectPositions(file, n.Content[i+1], diag.Member(path, literal), out)
			}
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			collectPositions(file, c, diag.Item(path, i), out)
		}
	}
}
