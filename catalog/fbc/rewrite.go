package fbc

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/yamlnode"
)

// rewriter is a blockyaml.Sink that writes a document as the JSON that
// yamlnode.JSON makes of it, but for what is of no use to the decoder.
type rewriter struct {
	root *shape // what documents are; nil: all is of use

	out     []byte
	odd     bool   // the full parser must read it
	next    *shape // of the value that comes next in a mapping
	around  []frame
	members []span // of the mappings in around
	scratch []byte

	at       int    // where the root begins
	schema   []byte // the root's
	metadata bool   // the property around the cursor is an olm.csv.metadata
	entries  []int  // where each of the root's entries begins
}

// frame is an open mapping or sequence.
type frame struct {
	shape *shape
	list  bool
	start int  // behind its brace in out
	first int  // its first member in members
	mixed bool // its keys do not ascend
}

// span is a member of a mapping in out: where it begins, and where its quoted
// name ends.
type span struct{ from, name, to int }

// reset makes r ready for the next document, with the memory that it has.
func (r *rewriter) reset() {
	*r = rewriter{
		root: r.root, next: r.root, out: r.out[:0], around: r.around[:0], members: r.members[:0], scratch: r.scratch[:0],
		schema: r.schema[:0], entries: r.entries[:0],
	}
}

// Open implements blockyaml.Sink.
func (r *rewriter) Open(kind byte, at int) {
	here := r.value()
	switch {
	case len(r.around) == 0:
		r.at = at
	case here.is() == anEntry && kind == '{':
		r.entries = append(r.entries, at)
	case here.is() == anEntry:
		r.odd = true
	case here.is() == aProperty:
		r.metadata = false
	}
	r.out = append(r.out, kind)
	r.around = append(r.around, frame{shape: here, list: kind == '[', start: len(r.out), first: len(r.members)})
}

// Close implements blockyaml.Sink.
func (r *rewriter) Close(kind byte) {
	last := len(r.around) - 1
	f := r.around[last]
	if f.mixed {
		r.sort(f)
	}
	r.out = append(r.out, kind)
	r.around, r.members = r.around[:last], r.members[:f.first]
}

// Key implements blockyaml.Sink.
func (r *rewriter) Key(name []byte) bool {
	f := &r.around[len(r.around)-1]
	var wanted bool
	if r.next, wanted = f.shape.field(name); !wanted {
		return false
	}
	r.comma()
	from := len(r.out)
	r.quote(name)
	if len(r.out) != from+len(name)+2 {
		r.odd = true // escapes sort otherwise
	}
	if n := len(r.members); n > f.first && bytes.Compare(r.name(r.members[n-1]), name) > 0 {
		f.mixed = true
	}
	r.members = append(r.members, span{from: from, name: len(r.out)})
	r.out = append(r.out, ':')
	return true
}

// Text implements blockyaml.Sink.
func (r *rewriter) Text(s []byte, _ int) {
	switch r.value().is() {
	case aSchema:
		r.schema = append(r.schema[:0], s...)
		r.odd = r.odd || string(s) == schemaLifecycles // which is small, and read field by field
	case aPropertyType:
		r.metadata = string(s) == olm.TypeMetadata
	case anEntry:
		r.odd = true
	case longText:
		s = clip(s, longEnough)
	default: // it is only written
	}
	r.quote(s)
}

// quote writes a JSON string. The full parser spells line and paragraph
// separators otherwise.
func (r *rewriter) quote(s []byte) {
	out, err := jsontext.AppendQuote(r.out, s)
	r.odd = r.odd || err != nil || bytes.Contains(s, []byte("\u2028")) || bytes.Contains(s, []byte("\u2029"))
	r.out = out
}

// Word implements blockyaml.Sink.
func (r *rewriter) Word(s []byte, _ int) {
	r.odd = r.odd || r.value().is() == anEntry
	r.out = append(r.out, s...)
}

// Plain implements blockyaml.Sink.
func (r *rewriter) Plain(s []byte, at int, wanted bool) bool {
	text, err := yamlnode.JSON(&yaml.Node{Kind: yaml.ScalarNode, Value: string(s)})
	if err != nil {
		return false
	}
	switch {
	case !wanted:
	case text[0] == '"':
		r.Text(s, at)
	default:
		r.Word(text, at)
	}
	return true
}

// value begins a value and returns what it is.
func (r *rewriter) value() *shape {
	here := r.next
	if last := len(r.around) - 1; last >= 0 && r.around[last].list {
		r.comma()
		here = r.around[last].shape.item()
	}
	if here.is() == someMetadata && !r.metadata {
		return nil
	}
	return here
}

// comma sets off what comes next from what stands before it.
func (r *rewriter) comma() {
	switch r.out[len(r.out)-1] {
	case '{', '[', ':':
	default:
		r.out = append(r.out, ',')
	}
}

// name returns a member's name.
func (r *rewriter) name(m span) []byte { return r.out[m.from+1 : m.name-1] }

// sort brings the members of a mapping, which ends where out does, in the order
// of their names.
func (r *rewriter) sort(f frame) {
	members := r.members[f.first:]
	for i := range members {
		members[i].to = len(r.out)
		if i+1 < len(members) {
			members[i].to = members[i+1].from - 1
		}
	}
	slices.SortFunc(members, func(a, b span) int { return bytes.Compare(r.name(a), r.name(b)) })
	r.scratch = r.scratch[:0]
	for i, m := range members {
		if i > 0 {
			r.scratch = append(r.scratch, ',')
		}
		r.scratch = append(r.scratch, r.out[m.from:m.to]...)
	}
	copy(r.out[f.start:], r.scratch)
}

// clip returns at most limit bytes of s, whole characters.
func clip(s []byte, limit int) []byte {
	if len(s) <= limit {
		return s
	}
	for !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
