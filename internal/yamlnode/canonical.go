package yamlnode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical returns a JSON value as canonical JSON: keys sorted, no blanks,
// numbers as [JSON] writes them.
func Canonical(raw []byte) ([]byte, error) { return appendValue(make([]byte, 0, len(raw)), raw, false) }

// FlowJSON writes a JSON value on one line, its keys sorted: {a: 1, b: [x, y]}.
func FlowJSON(b *bytes.Buffer, raw []byte) error {
	text, err := appendValue(b.AvailableBuffer(), raw, true)
	if err != nil {
		return err
	}
	b.Write(text)
	return nil
}

// BlockJSON writes a JSON value behind the colon of a key in column indent, and
// the line break that ends it: as [Encode] does, but each string as [Quote]
// returns it, on one line.
func BlockJSON(b *bytes.Buffer, raw []byte, indent int) error {
	text, err := Canonical(raw)
	if err != nil {
		return err
	}
	v, err := fromJSON(text)
	if err != nil {
		return err
	}
	e := encoder{lock: true}
	e.value(v, indent)
	b.Write(e.out)
	return nil
}

// appendValue returns out with a JSON value behind it, in canonical form or as flow
// YAML with each string as [Quote] returns it; null where there is nothing. What
// would be beyond the limits of a document is refused.
func appendValue(out, raw []byte, flow bool) ([]byte, error) {
	if len(raw) == 0 {
		return append(out, "null"...), nil
	}
	w := valueWriter{
		dec: jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)),
		out: out, most: Limits{}.orDefaults().Depth, comma: ",", colon: ":", flow: flow,
	}
	if flow {
		w.comma, w.colon = ", ", ": "
	}
	if err := w.value(); err != nil {
		return nil, err
	}
	if _, err := w.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return w.out, nil
}

// valueWriter appends what it reads.
type valueWriter struct {
	dec          *jsontext.Decoder
	out          []byte
	most         int // levels
	flow         bool
	comma, colon string
}

func (w *valueWriter) value() error {
	if kind := w.dec.PeekKind(); kind == '{' || kind == '[' {
		open, err := w.dec.ReadToken()
		if err != nil {
			return err
		}
		if w.dec.StackDepth() > w.most {
			return fmt.Errorf("nested deeper than the %d levels allowed", w.most)
		}
		if open.Kind() == '[' {
			return w.array()
		}
		return w.object()
	}
	raw, err := w.dec.ReadValue()
	if err != nil {
		return err
	}
	switch kind := raw.Kind(); {
	case kind == '"':
		w.text(raw)
	case kind == '0':
		w.number(string(raw))
	default:
		w.out = append(w.out, raw...)
	}
	return nil
}

// number appends a number in its canonical form; one beyond what a number can be as
// a string.
func (w *valueWriter) number(text string) {
	if s := plain(text); s.kind != kindString {
		w.out = append(w.out, s.text...)
		return
	}
	w.string(text)
}

func (w *valueWriter) array() error {
	w.out = append(w.out, '[')
	for first := true; w.dec.PeekKind() != ']'; first = false {
		if !first {
			w.out = append(w.out, w.comma...)
		}
		if err := w.value(); err != nil {
			return err
		}
	}
	w.out = append(w.out, ']')
	_, err := w.dec.ReadToken()
	return err
}

// member is one of an object, and where in the output it stands.
type member struct {
	key      string
	from, to int
}

func (w *valueWriter) object() error {
	w.out = append(w.out, '{')
	members := make([]member, 0, 4)
	for w.dec.PeekKind() != '}' {
		if len(members) > 0 {
			w.out = append(w.out, w.comma...)
		}
		m := member{from: len(w.out)}
		name, err := w.dec.ReadValue()
		if err != nil {
			return err
		}
		m.key = meaning(name)
		w.text(name)
		w.out = append(w.out, w.colon...)
		if err := w.value(); err != nil {
			return err
		}
		m.to = len(w.out)
		members = append(members, m)
	}
	if err := w.sort(members); err != nil {
		return err
	}
	w.out = append(w.out, '}')
	_, err := w.dec.ReadToken()
	return err
}

// sort puts the members that the output ends with in order, and refuses two of one
// name.
func (w *valueWriter) sort(members []member) error {
	ascend := func() bool {
		for i := 1; i < len(members); i++ {
			if members[i-1].key >= members[i].key {
				return false
			}
		}
		return true
	}
	if ascend() {
		return nil
	}
	start := members[0].from
	text := bytes.Clone(w.out[start:])
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	if !ascend() {
		return errors.New("an object has two members of one name")
	}
	w.out = w.out[:start]
	for i, m := range members {
		if i > 0 {
			w.out = append(w.out, w.comma...)
		}
		w.out = append(w.out, text[m.from-start:m.to-start]...)
	}
	return nil
}

// asIs reports whether a JSON string says what it means, without escapes.
func asIs(raw []byte) bool {
	for _, c := range raw {
		if c == '\\' || c > '~' {
			return false
		}
	}
	return true
}

// meaning returns the text of a JSON string. What is no text is replaced.
func meaning(raw jsontext.Value) string {
	if asIs(raw) {
		return string(raw[1 : len(raw)-1])
	}
	s, _ := jsontext.AppendUnquote(nil, raw) // the decoder took it
	return string(s)
}

// text appends a JSON string.
func (w *valueWriter) text(raw jsontext.Value) {
	if !w.flow && asIs(raw) {
		w.out = append(w.out, raw...)
		return
	}
	w.string(meaning(raw))
}

// string appends a string.
func (w *valueWriter) string(s string) {
	if w.flow {
		w.out = append(w.out, Quote(s)...)
		return
	}
	var b jsonWriter
	writeString(&b, s)
	w.out = append(w.out, b.Bytes()...)
}
