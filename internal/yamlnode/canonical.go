package yamlnode

import (
	"bytes"
	"errors"
	"math"
)

// Canonical returns a JSON value as canonical JSON: sorted keys, no white space, numbers in the
// form of [JSON]. An empty raw is null. A value that is nested deeper than the default limit of a
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

// BlockJSON writes a JSON value to b as the YAML value of a key in column indent. It starts after
// the colon and ends with a line break. The format is that of [Encode], except that every string is
// on one line, as from [Quote].
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
