package yamlnode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode/internal/blockyaml"
)

// JSON returns n as canonical JSON: sorted keys, no white space, exact integers. Scalars have the
// types that the API server assigns to them.
func JSON(n *yaml.Node) ([]byte, error) {
	var w writer
	err := (&nodeReader{sink: &w}).value(n)
	return w.out, err
}

// sink receives the content of a document. In addition to blockyaml.Sink, it receives scalars whose
// type is already known.
type sink interface {
	blockyaml.Sink
	scalar(s scalar, at int)
}

// nodeReader passes nodes to a sink. Positions are indexes of nodes.
type nodeReader struct {
	sink    sink
	placing bool // record the nodes for positions
	nodes   []*yaml.Node
}

func (r *nodeReader) at(n *yaml.Node) int {
	if r.placing {
		r.nodes = append(r.nodes, n)
	}
	return len(r.nodes) - 1
}

// value passes n to the sink. The error is a diag.Error.
func (r *nodeReader) value(n *yaml.Node) error {
	at := r.at(n)
	switch n.Kind { //nolint:exhaustive // all other kinds are errors, below
	case yaml.MappingNode:
		r.sink.Open('{', at)
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := r.field(n.Content[i], n.Content[i+1]); err != nil {
				return err
			}
		}
		r.sink.Close('}')
		return nil
	case yaml.SequenceNode:
		r.sink.Open('[', at)
		for _, c := range n.Content {
			if err := r.value(c); err != nil {
				return err
			}
		}
		r.sink.Close(']')
		return nil
	case yaml.ScalarNode:
		s, err := resolve(n)
		switch {
		case err != nil:
			return diag.Errorf(At("", n), "%w", err)
		case !s.isJSON():
			return diag.Errorf(At("", n), "%s cannot be represented in JSON", n.Value)
		}
		r.sink.scalar(s, at)
		return nil
	}
	return diag.Errorf(At("", n), "cannot be represented in JSON: %s", describeNode(n))
}

func (r *nodeReader) field(name, value *yaml.Node) error {
	key, err := keyText(name)
	if err != nil {
		return diag.Errorf(At("", name), "%w", err)
	}
	if r.sink.Key([]byte(key), r.at(name)) {
		return r.value(value)
	}
	return (&nodeReader{sink: &writer{}}).value(value) // a value that is not selected must be valid, too
}

// appendString appends a JSON string, in the form of encoding/json without HTML escapes.
func appendString(out, s []byte) []byte {
	if bytes.Contains(s, []byte("\u2028")) || bytes.Contains(s, []byte("\u2029")) || !utf8.Valid(s) { // jsontext formats these strings differently
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(string(s)); err != nil {
			panic(fmt.Sprintf("yamlnode: string %q cannot be JSON: %v", s, err))
		}
		return append(out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
	}
	out, err := jsontext.AppendQuote(out, s)
	if err != nil {
		panic(fmt.Sprintf("yamlnode: string %q cannot be JSON: %v", s, err))
	}
	return out
}

// Canonical returns a JSON value as canonical JSON: sorted keys, no white space, numbers in the form of
// [JSON]. If raw is empty, the result is null. A value that is nested deeper than the default limit of a
// document is an error.
func Canonical(raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return []byte("null"), nil
	}
	w := &writer{out: make([]byte, 0, len(raw))}
	r := newJSONReader(raw, Limits{Nodes: math.MaxInt}.orDefaults(), w)
	if err := r.value(1); err != nil {
		return nil, err
	}
	switch more := r.more(); {
	case r.err != nil:
		return nil, r.err
	case more:
		return nil, errors.New("more than one JSON value")
	case w.duplicate:
		return nil, errors.New("duplicate name in a JSON object")
	}
	return w.out, nil
}

// FlowJSON writes a JSON value to b as flow YAML on one line, with sorted keys: {a: 1, b: [x, y]}.
// Strings are written as by [Quote].
func FlowJSON(b *bytes.Buffer, raw []byte) error {
	return encodeCanonical(b, raw, func(e *encoder, v any) { e.flow(v) })
}

// BlockJSON writes a JSON value to b as the YAML value of a key in column indent. The output begins after the
// colon and ends with a line break. The format is the same as in [Encode], except that every string is on one
// line, as in [Quote].
func BlockJSON(b *bytes.Buffer, raw []byte, indent int) error {
	return encodeCanonical(b, raw, func(e *encoder, v any) { e.value(v, indent) })
}

func encodeCanonical(b *bytes.Buffer, raw []byte, encode func(e *encoder, v any)) error {
	v, err := fromCanonical(raw)
	if err != nil {
		return err
	}
	e := encoder{out: b.AvailableBuffer(), lock: true}
	encode(&e, v)
	b.Write(e.out)
	return nil
}

// fromCanonical decodes the canonical form of a JSON value.
func fromCanonical(raw []byte) (any, error) {
	text, err := Canonical(raw)
	if err != nil {
		return nil, err
	}
	return fromJSON(text)
}
