package yamlnode

import (
	"bytes"
	"encoding/json"
	"fmt"
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
