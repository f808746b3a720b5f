package fbc

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/blockyaml"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// block decodes one document that is in the style that opm writes, whose lines
// count from offset. It reports false, and has done nothing, where the document
// is not that plain or not right: then the full parser must read it.
func (b *builder) block(file string, text []byte, offset int, sel *selector) bool {
	docs, ok := blockyaml.Decode(text, plainScalar)
	if !ok || len(docs) != 1 {
		return false
	}
	root, ok := docs[0].(map[string]any)
	if !ok {
		return false
	}
	schema, ok := root["schema"].(string)
	if !ok || schema == "" {
		return false
	}
	at, places := entryPlaces(file, text, offset)
	entries, _ := root["entries"].([]any)
	if at.Line == 0 || schema == schemaChannel && len(places) != len(entries) {
		return false
	}
	quoted := appendJSON(nil, root)
	before := len(b.channels)
	d := b.text(file, at, quoted, sel)
	if err := d.object(at, schema); err != nil {
		b.fault(at, d.syntax(err))
		return true
	}
	if len(b.channels) > before {
		place(b.channels[before].data.Entries, places)
	}
	return true
}

func place(entries []catalog.EntryData, places []diag.Pos) {
	if len(entries) == len(places) {
		for i := range entries {
			entries[i].Pos = places[i]
		}
	}
}

// plainScalar returns the JSON of a plain scalar that may be no string.
func plainScalar(text string) (any, bool) {
	value, err := yamlnode.JSON(&yaml.Node{Kind: yaml.ScalarNode, Value: text})
	return json.RawMessage(value), err == nil
}

// appendJSON appends a value that blockyaml returned, with sorted keys.
func appendJSON(out []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		out = append(out, '{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendText(out, k), ':')
			out = appendJSON(out, v[k])
		}
		return append(out, '}')
	case []any:
		out = append(out, '[')
		for i, e := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendJSON(out, e)
		}
		return append(out, ']')
	case string:
		return appendText(out, v)
	case bool:
		return strconv.AppendBool(out, v)
	case int64:
		return strconv.AppendInt(out, v, 10)
	case json.RawMessage:
		return append(out, v...)
	default:
		return append(out, "null"...)
	}
}

// appendText appends a JSON string. The parser takes valid UTF-8 only, and so
// nothing can go wrong.
func appendText(out []byte, s string) []byte {
	out, _ = jsontext.AppendQuote(out, s)
	return out
}

// entryPlaces returns where a document's mapping begins, and where the items of
// its "entries" do, or nothing where that takes a full parser. Every line that begins with a dash in their column is one:
// what is inside an item stands further to the right.
func entryPlaces(file string, text []byte, offset int) (at diag.Pos, items []diag.Pos) {
	line, column, inside := offset, -1, false
	for l := range bytes.Lines(text) {
		line++
		l = bytes.TrimRight(l, "\n")
		content := bytes.TrimLeft(l, " ")
		indent := len(l) - len(content)
		switch {
		case len(content) == 0 || content[0] == '#' || bytes.HasPrefix(l, []byte("---")):
		case at.Line == 0:
			at = diag.Pos{File: file, Line: line, Col: indent + 1}
			inside = bytes.Equal(content, []byte("entries:"))
		case inside && column < 0 && content[0] == '-':
			column = indent
			fallthrough
		case inside && indent == column && content[0] == '-':
			rest := bytes.TrimLeft(content[1:], " ")
			if len(rest) == 0 || rest[0] == '#' {
				return diag.Pos{}, nil // the item begins in some later line
			}
			items = append(items, diag.Pos{File: file, Line: line, Col: len(l) - len(rest) + 1})
		case indent == at.Col-1:
			inside = bytes.Equal(content, []byte("entries:")) && items == nil
		}
	}
	return at, items
}
