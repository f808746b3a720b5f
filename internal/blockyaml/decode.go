package blockyaml

import (
	"bytes"
	"strconv"
)

// Decode returns the documents of data that are not empty: map[string]any,
// []any, string, bool, nil, int64, and whatever meaning returns for a plain
// scalar that may be no string. It reports false where the text is beyond it,
// or wrong, or where meaning reports false.
func Decode(data []byte, meaning func(text string) (value any, ok bool)) ([]any, bool) {
	v := &values{meaning: meaning, names: map[string]string{}}
	p := &parser{sink: v}
	var docs []any
	for len(data) > 0 {
		var doc []byte
		doc, data = cutDocument(data)
		v.root = nil
		if !p.document(doc, 0) {
			return nil, false
		}
		if v.root != nil {
			docs = append(docs, v.root)
		}
	}
	return docs, true
}

// cutDocument returns the text up to the next line that is "---", and what
// follows it.
func cutDocument(data []byte) (doc, rest []byte) {
	for at := 0; at < len(data); {
		if at == 0 || data[at-1] == '\n' {
			end := at + 1 + bytes.IndexByte(data[at:], '\n')
			if end == at {
				end = len(data)
			}
			if isMarker(data[at:end]) {
				return data[:at], data[end:]
			}
		}
		next := bytes.Index(data[at:], []byte("\n---"))
		if next < 0 {
			break
		}
		at += next + 1
	}
	return data, nil
}

// values is a Sink that builds what Decode returns.
type values struct {
	meaning func(text string) (any, bool)
	names   map[string]string // keys, each once
	root    any
	around  []collection // what is open, the innermost last
}

// collection is an open mapping or sequence.
type collection struct {
	fields map[string]any
	items  []any
	key    string // of the value that comes next
}

// Key implements Sink.
func (v *values) Key(name []byte) bool {
	key, ok := v.names[string(name)]
	if !ok {
		key = string(name)
		v.names[key] = key
	}
	v.around[len(v.around)-1].key = key
	return true
}

// Open implements Sink.
func (v *values) Open(kind byte, _ int) {
	c := collection{items: []any{}}
	if kind == '{' {
		c = collection{fields: map[string]any{}}
	}
	v.around = append(v.around, c)
}

// Close implements Sink.
func (v *values) Close(byte) {
	last := len(v.around) - 1
	c := v.around[last]
	v.around[last] = collection{}
	v.around = v.around[:last]
	if c.fields != nil {
		v.add(c.fields)
	} else {
		v.add(c.items)
	}
}

// Text implements Sink.
func (v *values) Text(s []byte, _ int) { v.add(string(s)) }

// Word implements Sink.
func (v *values) Word(s []byte, _ int) {
	switch s[0] {
	case 'n':
		v.add(nil)
	case 't', 'f':
		v.add(s[0] == 't')
	default:
		i, _ := strconv.ParseInt(string(s), 10, 64) // it fits
		v.add(i)
	}
}

// Plain implements Sink.
func (v *values) Plain(s []byte, _ int, _ bool) bool {
	value, ok := v.meaning(string(s))
	if ok {
		v.add(value)
	}
	return ok
}

// add puts a value where it belongs.
func (v *values) add(value any) {
	if len(v.around) == 0 {
		v.root = value
		return
	}
	c := &v.around[len(v.around)-1]
	if c.fields != nil {
		c.fields[c.key] = value
	} else {
		c.items = append(c.items, value)
	}
}
