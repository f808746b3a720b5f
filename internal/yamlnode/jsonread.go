package yamlnode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode/internal/blockyaml"
)

// errNotJSON means that the input must be parsed as YAML.
var errNotJSON = errors.New("not JSON")

// limitError means that a value exceeds a limit.
type limitError struct {
	at     int
	format string
	limit  int
}

// Error implements error.
func (e *limitError) Error() string { return fmt.Sprintf(e.format, e.limit) }

// jsonReader passes a stream of JSON values to a sink.
type jsonReader struct {
	data  []byte
	dec   *jsontext.Decoder
	lim   Limits
	sink  blockyaml.Sink
	nodes int
	plain []byte // buffer for strings without their escapes
	err   error
}

func newJSONReader(data []byte, lim Limits, sink blockyaml.Sink) *jsonReader {
	return &jsonReader{
		data: data, lim: lim, sink: sink,
		dec: jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
	}
}

// more reports whether there is another value.
func (r *jsonReader) more() bool {
	if r.dec.PeekKind() != jsontext.KindInvalid {
		return true
	}
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		r.err = fmt.Errorf("%w: %w", errNotJSON, err)
	}
	return false
}

// value passes the next value to the sink. depth is the value's nesting level. The error, which is also
// stored in r.err, wraps errNotJSON or is a limitError.
func (r *jsonReader) value(depth int) error {
	kind := r.dec.PeekKind()
	at := r.next()
	if r.count(at, depth); r.err != nil {
		return r.err
	}
	switch kind {
	case '{', '[':
		return r.collection(byte(kind), at, depth)
	case '"':
		r.sink.Text(r.text(), at)
	case jsontext.KindInvalid:
		r.token() // fails and sets r.err
	default:
		raw := r.raw()
		switch {
		case r.err != nil:
		case kind != '0':
			r.sink.Word(raw, at)
		case !r.sink.Plain(raw, at, true):
			r.err = errNotJSON
		}
	}
	return r.err
}

func (r *jsonReader) collection(open byte, at, depth int) error {
	r.token()
	r.sink.Open(open, at)
	closing := open + 2 // '['+2 is ']', '{'+2 is '}'
	for r.err == nil && byte(r.dec.PeekKind()) != closing {
		if open == '{' {
			at := r.next()
			r.count(at, depth+1)
			if name := r.text(); r.err == nil {
				r.sink.Key(name, at)
			}
		}
		if r.err == nil {
			r.err = r.value(depth + 1)
		}
	}
	if r.token(); r.err == nil {
		r.sink.Close(closing)
	}
	return r.err
}

// count counts a value or key and checks the limits.
func (r *jsonReader) count(at, depth int) {
	switch {
	case r.err != nil:
	case depth > r.lim.Depth:
		r.err = &limitError{at, "nested deeper than %d levels", r.lim.Depth}
	case r.nodes >= r.lim.Nodes:
		r.err = &limitError{at, "more than %d values", r.lim.Nodes}
	}
	r.nodes++
}

// token consumes the next brace or bracket.
func (r *jsonReader) token() {
	if r.err == nil {
		if _, err := r.dec.ReadToken(); err != nil {
			r.err = fmt.Errorf("%w: %w", errNotJSON, err)
		}
	}
}

func (r *jsonReader) raw() []byte {
	if r.err != nil {
		return nil
	}
	value, err := r.dec.ReadValue()
	if err != nil {
		r.err = fmt.Errorf("%w: %w", errNotJSON, err)
	}
	return value
}

// text returns the next string, without quotes and escapes.
func (r *jsonReader) text() []byte {
	raw := r.raw()
	switch {
	case r.err != nil || raw[0] != '"':
		return nil
	case bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw):
		return raw[1 : len(raw)-1]
	}
	r.plain, _ = jsontext.AppendUnquote(r.plain[:0], raw) // ignore the error: the decoder has accepted the string
	return r.plain
}

// next returns the offset of the next token.
func (r *jsonReader) next() int {
	i := int(r.dec.InputOffset())
	for i < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[i]) >= 0 {
		i++
	}
	return i
}

// parseJSON returns the JSON values in data as nodes. The error wraps errNotJSON, or is a diag.List
// if a limit is exceeded.
func parseJSON(file string, data []byte, lim Limits) ([]*yaml.Node, error) {
	b := &nodes{lines: diag.Lines{File: file, Text: data, Line: 1}}
	r := newJSONReader(data, lim, b)
	for r.more() {
		var beyond *limitError
		if err := r.value(1); errors.As(err, &beyond) {
			return nil, diag.List{diag.Errorf(b.lines.Pos(beyond.at), "%w", beyond)}
		} else if err != nil {
			return nil, err
		}
	}
	return b.roots, r.err
}

// nodes is a sink that builds yaml.Nodes.
type nodes struct {
	lines diag.Lines
	roots []*yaml.Node
	stack []*yaml.Node // open nodes, innermost last
}

func (b *nodes) add(at int, n *yaml.Node) *yaml.Node {
	pos := b.lines.Pos(at)
	n.Line, n.Column = pos.Line, pos.Col
	if last := len(b.stack) - 1; last >= 0 {
		b.stack[last].Content = append(b.stack[last].Content, n)
	} else {
		b.roots = append(b.roots, n)
	}
	return n
}

// Key implements blockyaml.Sink.
func (b *nodes) Key(name []byte, at int) bool {
	b.Text(name, at)
	return true
}

// Open implements blockyaml.Sink.
func (b *nodes) Open(kind byte, at int) {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: yaml.FlowStyle}
	if kind == '[' {
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	}
	b.stack = append(b.stack, b.add(at, n))
}

// Close implements blockyaml.Sink.
func (b *nodes) Close(byte) { b.stack = b.stack[:len(b.stack)-1] }

// Text implements blockyaml.Sink.
func (b *nodes) Text(s []byte, at int) {
	b.add(at, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: string(s)})
}

// Word implements blockyaml.Sink.
func (b *nodes) Word(s []byte, at int) {
	tag := "!!bool"
	if s[0] == 'n' {
		tag = "!!null"
	}
	b.add(at, &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: string(s)})
}

// Plain implements blockyaml.Sink.
func (b *nodes) Plain(s []byte, at int, _ bool) bool {
	b.add(at, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: string(s)})
	return true
}
