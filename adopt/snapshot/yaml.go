package snapshot

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/blockyaml"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// readYAML reads the documents of a file: as kubectl prints them by a parser made
// for that style, and everything else by the full one.
func (b *builder) readYAML(file string, data []byte) {
	condensed, err := yamlnode.Condense(data)
	if err != nil {
		b.errs.Add(diag.Pos{File: file}, err)
		return
	}
	line := 0
	for text := range documents(condensed) {
		if b.full() {
			return
		}
		if !yamlnode.IsEmpty(text) {
			b.document(file, text, line)
		}
		line += bytes.Count(text, []byte{'\n'})
	}
}

// documents yields the documents of a text, each with the marker that it begins
// with.
func documents(data []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			end := len(data)
			for at := 0; ; {
				next := bytes.Index(data[at:], []byte("\n---"))
				if next < 0 {
					break
				}
				at += next + 1
				if rest := data[at+len("---"):]; len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0 {
					end = at
					break
				}
			}
			if !yield(data[:end]) {
				return
			}
			data = data[end:]
		}
	}
}

// document reads one document, before which there are so many lines.
func (b *builder) document(file string, text []byte, line int) {
	var w blockyaml.Walker
	r := &rewriter{}
	if w.Walk(text, r) && !r.odd {
		b.rewritten(file, text, line, r)
		return
	}
	nodes, err := yamlnode.Documents(file, text, yamlnode.Limits{Bytes: maxDocument, Depth: maxDepth})
	if err != nil {
		var errs diag.List
		errs.Add(diag.Pos{File: file}, err)
		for _, e := range errs {
			moved := *e
			moved.Pos = shifted(e.Pos, line)
			b.errs = append(b.errs, &moved)
		}
		return
	}
	for _, n := range nodes {
		b.node(file, n, line)
	}
}

func shifted(p diag.Pos, lines int) diag.Pos {
	if p.Line > 0 {
		p.Line += lines
	}
	return p
}

// node reads a document that the full parser read.
func (b *builder) node(file string, n *yaml.Node, line int) {
	at := shifted(yamlnode.At(file, n), line)
	_, items := yamlnode.Field(n, "items")
	if items == nil || items.Kind != yaml.SequenceNode {
		if raw, err := yamlnode.JSON(n); err != nil {
			b.errs.Add(at, err)
		} else {
			b.single(raw, at)
		}
		return
	}
	l := list{builder: b, pos: at, seen: true}
	for name, into := range map[string]*string{"apiVersion": &l.apiVersion, "kind": &l.kind} {
		_, v := yamlnode.Field(n, name)
		*into, _ = yamlnode.Text(v)
	}
	for _, item := range items.Content {
		at := shifted(yamlnode.At(file, item), line)
		raw, err := yamlnode.JSON(item)
		if err != nil {
			b.errs.Add(at, err)
			continue
		}
		l.item(raw, at)
	}
	l.end()
}

// rewritten reads a document of the style that kubectl prints.
func (b *builder) rewritten(file string, text []byte, line int, r *rewriter) {
	lines := diag.Lines{File: file, Text: text, Line: line + 1}
	at := lines.Pos(r.at)
	if !r.listed {
		b.single(r.out, at)
		return
	}
	l := list{builder: b, pos: at, seen: true, apiVersion: r.apiVersion, kind: r.kind}
	for i, item := range r.items {
		to := len(r.out)
		if i+1 < len(r.items) {
			to = r.items[i+1].from
		}
		l.item(r.out[item.from:to], lines.Pos(item.at))
	}
	l.end()
}

// rewriter is a blockyaml.Sink that writes a document as JSON; of a list the items
// alone, one behind the other.
type rewriter struct {
	out    []byte
	odd    bool // the full parser must read it
	depth  int
	at     int // where the root begins
	key    string
	listed bool // the root has items
	inside bool // the cursor is within them
	items  []item

	apiVersion, kind string // of the root
}

// item is one of the items: where it begins in the text, and in out.
type item struct{ at, from int }

// Open implements blockyaml.Sink.
func (r *rewriter) Open(kind byte, at int) {
	switch {
	case r.depth == 0:
		r.at, r.odd = at, kind != '{'
	case r.depth == 1 && r.key == "items" && kind == '[':
		r.listed, r.inside, r.out = true, true, r.out[:0]
		r.depth++
		return
	case !r.value(at):
		r.depth++
		return
	}
	r.depth++
	r.out = append(r.out, kind)
}

// Close implements blockyaml.Sink.
func (r *rewriter) Close(kind byte) {
	r.depth--
	if r.inside && r.depth == 1 {
		r.inside = false
		return
	}
	if r.listed && !r.inside {
		return
	}
	r.out = append(r.out, kind)
}

// Key implements blockyaml.Sink.
func (r *rewriter) Key(name []byte) bool {
	if r.depth == 1 {
		r.key = string(name)
	}
	if r.listed && !r.inside {
		return r.depth == 1
	}
	r.comma()
	r.quote(name)
	r.out = append(r.out, ':')
	return true
}

// Text implements blockyaml.Sink.
func (r *rewriter) Text(s []byte, at int) {
	if r.depth == 1 {
		switch r.key {
		case "apiVersion":
			r.apiVersion = string(s)
		case "kind":
			r.kind = string(s)
		}
	}
	if r.value(at) {
		r.quote(s)
	}
}

// Word implements blockyaml.Sink.
func (r *rewriter) Word(s []byte, at int) {
	if r.value(at) {
		r.out = append(r.out, s...)
	}
}

// Plain implements blockyaml.Sink.
func (r *rewriter) Plain(s []byte, at int, wanted bool) bool {
	text, err := yamlnode.JSON(&yaml.Node{Kind: yaml.ScalarNode, Value: string(s)})
	if err != nil {
		return false
	}
	if wanted {
		r.Word(text, at)
	}
	return true
}

func (r *rewriter) quote(s []byte) {
	out, err := jsontext.AppendQuote(r.out, s)
	r.odd = r.odd || err != nil
	r.out = out
}

// value begins a value, and reports whether it is written.
func (r *rewriter) value(at int) bool {
	switch {
	case r.depth == 0:
		r.at, r.odd = at, true
	case r.inside && r.depth == 2:
		r.items = append(r.items, item{at: at, from: len(r.out)})
	case r.listed && !r.inside:
		return false
	default:
		r.comma()
	}
	return true
}

// comma sets off what comes next from what stands before it.
func (r *rewriter) comma() {
	if n := len(r.out); n > 0 {
		switch r.out[n-1] {
		case '{', '[', ':':
		default:
			r.out = append(r.out, ',')
		}
	}
}
