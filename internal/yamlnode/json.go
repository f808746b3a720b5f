package yamlnode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/diag"
)

// JSON returns n as canonical JSON: keys sorted, no blanks, integers exact,
// scalars as the API server would take them.
func JSON(n *yaml.Node) ([]byte, error) {
	var b jsonWriter
	if err := writeJSON(&b, n); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Place says where in YAML a value stands that begins at an offset of JSON.
type Place struct{ Offset, Line, Col int }

// Places returns n as JSON does, and the place of every value and every key,
// by offset.
func Places(n *yaml.Node) ([]byte, []Place, error) {
	b := jsonWriter{placing: true}
	if err := writeJSON(&b, n); err != nil {
		return nil, nil, err
	}
	return b.Bytes(), b.places, nil
}

// jsonWriter takes JSON, and may keep where it comes from.
type jsonWriter struct {
	bytes.Buffer
	placing bool
	places  []Place
}

// place says that what is written next comes from n.
func (b *jsonWriter) place(n *yaml.Node) {
	if b.placing {
		b.places = append(b.places, Place{Offset: b.Len(), Line: n.Line, Col: n.Column})
	}
}

func writeJSON(b *jsonWriter, n *yaml.Node) error {
	b.place(n)
	switch n.Kind { //nolint:exhaustive // the rest is refused below
	case yaml.MappingNode:
		return writeObject(b, n)
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, c); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case yaml.ScalarNode:
		return writeScalar(b, n)
	}
	return diag.Errorf(At("", n), "cannot be JSON: %s", describe(n))
}

func writeObject(b *jsonWriter, n *yaml.Node) error {
	type field struct {
		key         string
		name, value *yaml.Node
	}
	fields := make([]field, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, err := keyText(n.Content[i])
		if err != nil {
			return diag.Errorf(At("", n.Content[i]), "%w", err)
		}
		fields = append(fields, field{k, n.Content[i], n.Content[i+1]})
	}
	slices.SortStableFunc(fields, func(x, y field) int { return strings.Compare(x.key, y.key) })
	b.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		b.place(f.name)
		writeString(b, f.key)
		b.WriteByte(':')
		if err := writeJSON(b, f.value); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func writeScalar(b *jsonWriter, n *yaml.Node) error {
	s, err := resolve(n)
	switch {
	case err != nil:
		return diag.Errorf(At("", n), "%w", err)
	case s.kind == kindString:
		writeString(b, s.text)
	case s.kind == kindFloat && !json.Valid([]byte(s.text)):
		return diag.Errorf(At("", n), "%s has no form in JSON", n.Value)
	default:
		b.WriteString(s.text)
	}
	return nil
}

func writeString(b *jsonWriter, s string) {
	enc := json.NewEncoder(&b.Buffer)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(fmt.Sprintf("yamlnode: string %q cannot be JSON: %v", s, err))
	}
	b.Truncate(b.Len() - 1) // the encoder's newline
}

// errNotJSON says that the input has to be read as YAML.
var errNotJSON = errors.New("not JSON")

// jsonReader builds nodes from a stream of JSON objects.
type jsonReader struct {
	file  string
	data  []byte
	dec   *json.Decoder
	lim   Limits
	count int
	line  int // of offset
	start int // offset of the line's first byte
	seen  int // lines are counted up to here
}

// parseJSON returns the objects in data, or errNotJSON.
func parseJSON(file string, data []byte, lim Limits) ([]*yaml.Node, error) {
	r := &jsonReader{file: file, data: data, dec: json.NewDecoder(bytes.NewReader(data)), lim: lim, line: 1}
	r.dec.UseNumber()
	var roots []*yaml.Node
	for {
		n, err := r.value(1)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			return nil, err
		}
		roots = append(roots, n)
	}
}

// value reads the next value; io.EOF where the input ends before it.
func (r *jsonReader) value(depth int) (*yaml.Node, error) {
	n := r.place()
	tok, err := r.dec.Token()
	if errors.Is(err, io.EOF) && depth == 1 {
		return nil, io.EOF
	}
	if err != nil {
		return nil, errNotJSON
	}
	if depth > r.lim.Depth {
		return nil, diag.List{diag.Errorf(At(r.file, n), "nested deeper than the %d levels allowed", r.lim.Depth)}
	}
	if r.count++; r.count > r.lim.Nodes {
		return nil, diag.List{diag.Errorf(At(r.file, n), "more than the %d values allowed", r.lim.Nodes)}
	}
	n.Kind = yaml.ScalarNode
	switch t := tok.(type) {
	case json.Delim:
		return r.children(n, t, depth)
	case string:
		n.Tag, n.Style, n.Value = "!!str", yaml.DoubleQuotedStyle, t
	case json.Number:
		n.Tag, n.Value = "!!float", t.String()
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(t)
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, nil
}

func (r *jsonReader) children(n *yaml.Node, open json.Delim, depth int) (*yaml.Node, error) {
	n.Kind, n.Tag, n.Style = yaml.MappingNode, "!!map", yaml.FlowStyle
	if open == '[' {
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	}
	for r.dec.More() {
		c, err := r.value(depth + 1)
		if errors.Is(err, io.EOF) {
			return nil, errNotJSON
		}
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, c)
	}
	if _, err := r.dec.Token(); err != nil {
		return nil, errNotJSON
	}
	return n, nil
}

// place returns a node that stands where the next token begins.
func (r *jsonReader) place() *yaml.Node {
	i := int(r.dec.InputOffset())
	for i < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[i]) >= 0 {
		i++
	}
	for ; r.seen < i; r.seen++ {
		if r.data[r.seen] == '\n' {
			r.line++
			r.start = r.seen + 1
		}
	}
	return &yaml.Node{Line: r.line, Column: i - r.start + 1}
}
