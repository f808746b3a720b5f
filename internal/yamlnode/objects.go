package yamlnode

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/quayside/quayside/internal/yamlnode/internal/blockyaml"
)

// Objects parses data like [Documents] and returns the documents as Go values: map[string]any,
// []any, string, bool, nil, and numbers. An integer is an int64, or a json.Number if it does not
// fit. A number with a fraction or an exponent is a float64, or an int64 if its value is whole and
// below 1<<53.
func Objects(file string, data []byte, lim Limits) ([]map[string]any, error) {
	if out, ok := quickObjects(data, lim.orDefaults()); ok {
		return out, nil
	}
	return slowObjects(file, data, lim)
}

func slowObjects(file string, data []byte, lim Limits) ([]map[string]any, error) {
	docs, err := Documents(file, data, lim)
	if err != nil {
		return nil, err
	}
	o := &objects{names: map[string]string{}}
	for _, doc := range docs {
		if err := (&nodeReader{sink: o}).value(doc); err != nil {
			return nil, shiftError(err, file, 0)
		}
		o.next()
	}
	return o.list, nil
}

// value returns a scalar as a Go value, with the types of [Objects].
func (s scalar) value() any {
	switch s.kind {
	case kindNull:
		return nil
	case kindBool:
		return s.text == "true"
	case kindInt:
		if i, err := strconv.ParseInt(s.text, 10, 64); err == nil {
			return i
		}
		return json.Number(s.text)
	case kindFloat:
		f, _ := strconv.ParseFloat(s.text, 64) // ignore the error: the text is a valid number
		if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f)
		}
		return f
	default:
		return s.text
	}
}

// isJSON reports whether JSON can represent the scalar.
func (s scalar) isJSON() bool { return s.kind != kindFloat || json.Valid([]byte(s.text)) }

// quickObjects is a faster Objects, for JSON and for the YAML style that tools write. It returns
// false for any other text, and for a text with a fault.
func quickObjects(data []byte, lim Limits) ([]map[string]any, bool) {
	if len(data) > lim.Bytes {
		return nil, false
	}
	v := &objects{names: map[string]string{}}
	if beginsJSON(data) {
		if !utf8.Valid(data) {
			return nil, false
		}
		v.unique = !lim.Repeated
		r := newJSONReader(data, lim, v)
		for r.more() {
			if r.value(1) != nil || !v.next() {
				return nil, false
			}
		}
		return v.list, r.err == nil
	}
	w := blockyaml.Walker{Depth: lim.Depth, Nodes: lim.Nodes}
	one := !bytes.Contains(data, []byte("\n---")) && !bytes.Contains(data, []byte("\n..."))
	for rest := data; len(rest) > 0; {
		end := len(rest)
		if !one {
			end, _ = cutDocument(rest, 0, true)
		}
		empty := IsEmpty(rest[:end]) && !bytes.Contains(rest[:end], []byte("..."))
		if !empty && (!w.Walk(rest[:end], v) || !v.next()) {
			return nil, false
		}
		rest = rest[end:]
	}
	return v.list, true
}

// beginsJSON reports whether a text begins like a JSON object.
func beginsJSON(data []byte) bool {
	first := bytes.TrimLeft(data, " \t\r\n")
	return len(first) > 0 && first[0] == '{'
}

// objects is a sink that builds Go values.
type objects struct {
	unique  bool              // reject repeated keys; the reader does not
	names   map[string]string // keys so far, so that equal keys share memory
	root    any
	stack   []collection // open collections, innermost last
	invalid bool
	list    []map[string]any
}

// collection is an open mapping or sequence.
type collection struct {
	fields map[string]any
	items  []any
	key    string // key of the next value
}

// next ends a document and adds its object to the list. It omits a null document. It returns
// false if the document is neither an object nor null, or after a fault.
func (v *objects) next() bool {
	root, isObject := v.root.(map[string]any)
	if isObject {
		v.list = append(v.list, root)
	}
	ok := !v.invalid && (isObject || v.root == nil) && len(v.list) <= MaxDocuments
	v.root = nil
	return ok
}

// Key implements blockyaml.Sink.
func (v *objects) Key(name []byte, _ int) bool {
	key, ok := v.names[string(name)]
	if !ok {
		key = string(name)
		v.names[key] = key
	}
	in := &v.stack[len(v.stack)-1]
	if v.unique {
		_, repeated := in.fields[key]
		v.invalid = v.invalid || repeated
	}
	in.key = key
	return true
}

// Open implements blockyaml.Sink.
func (v *objects) Open(kind byte, _ int) {
	c := collection{items: []any{}}
	if kind == '{' {
		c = collection{fields: map[string]any{}}
	}
	v.stack = append(v.stack, c)
}

// Close implements blockyaml.Sink.
func (v *objects) Close(byte) {
	last := len(v.stack) - 1
	c := v.stack[last]
	v.stack[last] = collection{}
	v.stack = v.stack[:last]
	if c.fields != nil {
		v.add(c.fields)
	} else {
		v.add(c.items)
	}
}

// Text implements blockyaml.Sink.
func (v *objects) Text(s []byte, _ int) { v.add(string(s)) }

// Word implements blockyaml.Sink.
func (v *objects) Word(s []byte, _ int) {
	switch s[0] {
	case 'n':
		v.add(nil)
	case 't', 'f':
		v.add(s[0] == 't')
	default:
		i, _ := strconv.ParseInt(string(s), 10, 64) // ignore the error: it fits int64
		v.add(i)
	}
}

// Plain implements blockyaml.Sink.
func (v *objects) Plain(s []byte, _ int, _ bool) bool {
	value := plainScalar(string(s))
	if value.isJSON() {
		v.scalar(value, 0)
	}
	return value.isJSON()
}

// scalar implements sink.
func (v *objects) scalar(s scalar, _ int) { v.add(s.value()) }

// add adds a value to the innermost open collection. If there is none, the value is the root.
func (v *objects) add(value any) {
	if len(v.stack) == 0 {
		v.root = value
		return
	}
	c := &v.stack[len(v.stack)-1]
	if c.fields != nil {
		c.fields[c.key] = value
	} else {
		c.items = append(c.items, value)
	}
}
