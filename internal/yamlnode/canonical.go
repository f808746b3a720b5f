package yamlnode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical returns a JSON value as canonical JSON: keys sorted, no blanks,
// numbers as [JSON] writes them.
func Canonical(raw []byte) ([]byte, error) {
	v, err := readValue(raw)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// FlowJSON writes a JSON value on one line, its keys sorted: {a: 1, b: [x, y]}.
func FlowJSON(b *bytes.Buffer, raw []byte) error {
	v, err := readValue(raw)
	if err != nil {
		return err
	}
	e := encoder{lock: true}
	e.flow(v)
	b.Write(e.out)
	return nil
}

// BlockJSON writes a JSON value behind the colon of a key in column indent, and
// the line break that ends it: as [Encode] does, but each string as [Quote]
// returns it, on one line.
func BlockJSON(b *bytes.Buffer, raw []byte, indent int) error {
	v, err := readValue(raw)
	if err != nil {
		return err
	}
	e := encoder{lock: true}
	e.value(v, indent)
	b.Write(e.out)
	return nil
}

// readValue returns a JSON value as encoding/json does, with numbers in their
// canonical form, null where there is nothing. What would be beyond the limits of
// a document is refused.
func readValue(raw []byte) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowInvalidUTF8(true))
	v, err := nextValue(dec)
	if err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

func nextValue(dec *jsontext.Decoder) (any, error) {
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	if most := (Limits{}).orDefaults().Depth; dec.StackDepth() > most {
		return nil, fmt.Errorf("nested deeper than the %d levels allowed", most)
	}
	switch tok.Kind() {
	case '{':
		m := map[string]any{}
		for dec.PeekKind() != '}' {
			key, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			name := key.String()
			if m[name], err = nextValue(dec); err != nil {
				return nil, err
			}
		}
		_, err := dec.ReadToken()
		return m, err
	case '[':
		list := []any{}
		for dec.PeekKind() != ']' {
			v, err := nextValue(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.ReadToken()
		return list, err
	case '"':
		return tok.String(), nil
	case 'n':
		return nil, nil
	case '0':
		if s := plain(tok.String()); s.kind != kindString {
			return json.Number(s.text), nil
		}
		return tok.String(), nil // beyond what a number can be
	default:
		return tok.Bool(), nil
	}
}
