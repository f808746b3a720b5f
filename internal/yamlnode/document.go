package yamlnode

import (
	"bytes"
	"errors"
	"slices"
	"sort"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode/internal/blockyaml"
)

// Filter selects the parts of a value that are converted to JSON. A nil Filter selects the whole
// value.
type Filter struct {
	Open  func()                                      // called at the beginning of a mapping or sequence; may be nil
	Field func(name []byte) (of *Filter, wanted bool) // returns the filter for a field, and whether the field is selected; nil selects all fields
	Items *Filter                                     // filter for the items of a sequence; nil selects the whole items
	Text  func(s []byte) []byte                       // replaces a string; may be nil
}

func (f *Filter) open() {
	if f != nil && f.Open != nil {
		f.Open()
	}
}

func (f *Filter) field(name []byte) (*Filter, bool) {
	if f == nil || f.Field == nil {
		return nil, true
	}
	return f.Field(name)
}

func (f *Filter) item() *Filter {
	if f == nil {
		return nil
	}
	return f.Items
}

func (f *Filter) text(s []byte) []byte {
	if f == nil || f.Text == nil {
		return s
	}
	return f.Text(s)
}

// Document is a YAML document, converted to canonical JSON.
type Document struct {
	JSON []byte

	places []origin
	lines  diag.Lines
	nodes  []*yaml.Node
}

// origin links a value or key in the JSON to the input. offset is the beginning of the value or key in the
// JSON. at is the offset of its beginning in the YAML, or the index of its node.
type origin struct{ offset, at int }

// Pos returns the position in the YAML of the value or key at an offset of the JSON.
func (t *Document) Pos(offset int) diag.Pos {
	next := sort.Search(len(t.places), func(i int) bool { return t.places[i].offset > offset })
	at := t.places[max(next, 1)-1].at
	if t.nodes != nil {
		return diag.Pos{File: t.lines.File, Line: t.lines.Line + t.nodes[at].Line - 1, Col: t.nodes[at].Column}
	}
	return t.lines.Pos(at)
}

// maxEmpty is the maximum number of null documents that a Reader skips.
const maxEmpty = 10_000

// Reader converts YAML documents to JSON. The zero value is ready for use. Memory is reused for the
// next document.
type Reader struct {
	Slow  bool // do not use the fast path; for tests
	Quick int  // number of documents read by the fast path; for tests

	empty  int // number of null documents so far, for a limit, because parsing them takes time, too
	walker blockyaml.Walker
	writer writer
	one    [1]Document
}

// Read converts the documents in text to JSON, in the form of [JSON] and reduced to the parts that
// filter selects. Null documents are omitted. A text from a [Stream] has at most one document. line
// is the line of the file at which text begins. The result is valid until the next call. The error
// is a diag.List.
func (r *Reader) Read(file string, line int, text []byte, lim Limits, filter *Filter) ([]Document, error) {
	lim = lim.orDefaults()
	if !r.Slow && len(text) <= lim.Bytes {
		r.walker.Depth, r.walker.Nodes = lim.Depth, lim.Nodes
		if r.writer.reset(filter); r.walker.Walk(text, &r.writer) && r.writer.out[0] == '{' {
			r.Quick++
			r.one[0] = Document{JSON: r.writer.out, places: r.writer.places, lines: diag.Lines{File: file, Text: text, Line: line}}
			return r.one[:], nil
		}
	}
	docs, err := Documents(file, text, lim)
	if err != nil {
		return nil, shiftError(err, file, line-1)
	}
	if len(docs) == 0 {
		r.empty++
	}
	if r.empty > maxEmpty {
		return nil, diag.List{diag.Errorf(diag.Pos{File: file, Line: line}, "more than %d empty documents", maxEmpty)}
	}
	out := make([]Document, len(docs))
	for i, doc := range docs {
		w := &writer{next: filter}
		nodes := &nodeReader{sink: w, placing: true}
		if err := nodes.value(doc); err != nil {
			return nil, shiftError(err, file, line-1)
		}
		out[i] = Document{JSON: w.out, places: w.places, nodes: nodes.nodes, lines: diag.Lines{File: file, Line: line}}
	}
	return out, nil
}

// shiftError returns err with changed positions: their file is file, and lines is added to their line numbers.
func shiftError(err error, file string, lines int) error {
	var list diag.List
	var one *diag.Error
	if errors.As(err, &one) {
		list = diag.List{one}
	}
	errors.As(err, &list)
	out := make(diag.List, len(list))
	for i, e := range list {
		moved := *e
		moved.Pos.File = file
		if moved.Pos.Line > 0 {
			moved.Pos.Line += lines
		}
		out[i] = &moved
	}
	return out
}

// writer is a sink that writes canonical JSON, reduced to the parts that a filter selects.
type writer struct {
	out       []byte
	places    []origin
	duplicate bool    // a mapping has a repeated key
	next      *Filter // filter for the next value in a mapping
	stack     []frame

	members []span // members of the open mappings
	keys    []byte // names of the members
	sorted  []byte // buffer for sort
	moved   []origin
}

// frame is an open mapping or sequence.
type frame struct {
	filter   *Filter
	list     bool
	start    int  // offset in out, after the opening brace
	placed   int  // index of its first member in places
	first    int  // index of its first member in members
	keys     int  // offset of its first key in keys
	unsorted bool // its keys are not sorted
}

// span is a member of a mapping: its ranges in the slices out and places, and the range of its name in the
// slice keys.
type span struct{ from, to, placed, placedTo, key, keyTo int }

func (w *writer) reset(root *Filter) {
	*w = writer{
		next: root, out: w.out[:0], places: w.places[:0], stack: w.stack[:0],
		members: w.members[:0], keys: w.keys[:0], sorted: w.sorted[:0], moved: w.moved[:0],
	}
}

// Open implements blockyaml.Sink.
func (w *writer) Open(kind byte, at int) {
	here := w.value(at)
	here.open()
	w.out = append(w.out, kind)
	w.stack = append(w.stack, frame{filter: here, list: kind == '[', start: len(w.out), placed: len(w.places), first: len(w.members), keys: len(w.keys)})
}

// Close implements blockyaml.Sink.
func (w *writer) Close(kind byte) {
	last := len(w.stack) - 1
	f := w.stack[last]
	if f.unsorted {
		w.sort(f)
	}
	w.out = append(w.out, kind)
	w.stack, w.members, w.keys = w.stack[:last], w.members[:f.first], w.keys[:f.keys]
}

// Key implements blockyaml.Sink.
func (w *writer) Key(name []byte, at int) bool {
	f := &w.stack[len(w.stack)-1]
	var wanted bool
	if w.next, wanted = f.filter.field(name); !wanted {
		return false
	}
	w.comma(f)
	m := span{from: len(w.out), placed: len(w.places), key: len(w.keys), keyTo: len(w.keys) + len(name)}
	w.keys = append(w.keys, name...)
	w.places = append(w.places, origin{offset: m.from, at: at})
	w.out = append(appendString(w.out, name), ':')
	if n := len(w.members); n > f.first && bytes.Compare(w.key(w.members[n-1]), name) >= 0 {
		f.unsorted = true
	}
	w.members = append(w.members, m)
	return true
}

// Text implements blockyaml.Sink.
func (w *writer) Text(s []byte, at int) {
	text := w.value(at).text(s)
	w.out = appendString(w.out, text)
}

// Word implements blockyaml.Sink.
func (w *writer) Word(s []byte, at int) {
	w.value(at)
	w.out = append(w.out, s...)
}

// Plain implements blockyaml.Sink.
func (w *writer) Plain(s []byte, at int, wanted bool) bool {
	v := plainScalar(string(s))
	if v.isJSON() && wanted {
		w.scalar(v, at)
	}
	return v.isJSON()
}

// scalar implements sink.
func (w *writer) scalar(s scalar, at int) {
	if s.kind == kindString {
		w.Text([]byte(s.text), at)
	} else {
		w.Word([]byte(s.text), at)
	}
}

// value begins a value and returns the filter for it.
func (w *writer) value(at int) *Filter {
	here := w.next
	if last := len(w.stack) - 1; last >= 0 && w.stack[last].list {
		w.comma(&w.stack[last])
		here = w.stack[last].filter.item()
	}
	w.places = append(w.places, origin{offset: len(w.out), at: at})
	return here
}

// comma writes the separator before a member. It writes nothing before the first member.
func (w *writer) comma(f *frame) {
	if len(w.out) > f.start {
		w.out = append(w.out, ',')
	}
}

// key returns the name of a member.
func (w *writer) key(m span) []byte { return w.keys[m.key:m.keyTo] }

// sort sorts the members of the mapping f by name. f must be at the end of out.
func (w *writer) sort(f frame) {
	members := w.members[f.first:]
	for i := range members {
		members[i].to, members[i].placedTo = len(w.out), len(w.places)
		if i+1 < len(members) {
			members[i].to, members[i].placedTo = members[i+1].from-len(","), members[i+1].placed
		}
	}
	slices.SortStableFunc(members, func(a, b span) int { return bytes.Compare(w.key(a), w.key(b)) })
	w.sorted, w.moved = w.sorted[:0], w.moved[:0]
	for i, m := range members {
		if i > 0 {
			w.sorted = append(w.sorted, ',')
			w.duplicate = w.duplicate || bytes.Equal(w.key(members[i-1]), w.key(m))
		}
		by := f.start + len(w.sorted) - m.from
		for _, p := range w.places[m.placed:m.placedTo] {
			p.offset += by
			w.moved = append(w.moved, p)
		}
		w.sorted = append(w.sorted, w.out[m.from:m.to]...)
	}
	copy(w.out[f.start:], w.sorted)
	copy(w.places[f.placed:], w.moved)
}
