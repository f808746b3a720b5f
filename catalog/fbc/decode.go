package fbc

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Decode decodes the catalog in r, a sequence of JSON objects or YAML documents. The content is
// sorted and does not depend on the order of the objects. file is the name of r in errors. The
// error is a diag.List of all faults.
func Decode(file string, r io.Reader) (catalog.Content, error) {
	b := newBuilder()
	if err := b.read(file, r, nil); err != nil {
		b.fault(diag.Pos{File: file}, err)
	}
	return b.content()
}

// read decodes one file into b. If sel is not nil, it only searches for the manifests of one
// bundle, and stops when they are found.
func (b *builder) read(file string, r io.Reader, sel *selector) error {
	b.window.Reset(r)
	first, offset, err := peekByte(b.window)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("reading: %w", err)
	case first == '{':
		b.file.reset(file, b.window, offset)
		d := &decoder{file: file, in: b.file, b: b, sel: sel}
		return d.decodeObjects()
	default:
		return b.readYAML(file, b.window, offset, sel)
	}
}

// peekByte returns the first non-blank byte without consuming it. If the input begins with a byte
// order mark, it consumes the mark and returns its size as passed. If the input is blank, the error
// is io.EOF.
func peekByte(r *bufio.Reader) (first byte, passed int64, err error) {
	const mark, enough = "\uFEFF", beginSize
	if begin, _ := r.Peek(len(mark)); string(begin) == mark {
		n, err := r.Discard(len(mark))
		if passed = int64(n); err != nil {
			return 0, passed, err
		}
	}
	for size := 1; ; size++ {
		begin, err := r.Peek(size)
		begin = begin[:min(max(len(begin), r.Buffered()), enough)]
		if text := bytes.TrimLeft(begin, " \t\r\n"); len(text) > 0 {
			return text[0], passed, nil
		}
		if err != nil {
			return 0, passed, err
		}
		if size = len(begin); size == enough {
			return ' ', passed, nil // no JSON file begins with so many blanks: treat the file as YAML
		}
	}
}

// decoder decodes the objects of one file into b. A syntax or read error of the scanner stops it.
// Other problems become faults of b, and decoding continues.
type decoder struct {
	file  string
	in    *scanner
	whole bool     // whether in contains a single value, not a file; errors then have the position base, or one in yaml
	base  diag.Pos // position of the value if whole is set and yaml is nil
	from  int64    // offset of the current object in the file
	b     *builder
	sel   *selector

	path      []step                    // path to the value being decoded
	lenient   bool                      // ignore values that are too large or of the wrong type
	tolerated *[]catalog.LifecycleFault // receives the faults of a lifecycle document, which do not invalidate the catalog; nil: faults are added to b

	yaml *yamlnode.Document // YAML document that in was converted from, for positions; nil for JSON input
}

// newTextDecoder returns a decoder of one JSON value in memory. All its faults have the position
// base.
func (b *builder) newTextDecoder(file string, base diag.Pos, value []byte, sel *selector) *decoder {
	in := &scanner{}
	in.resetBytes(value)
	return &decoder{file: file, in: in, whole: true, base: base, b: b, sel: sel}
}

// decodeObjects decodes objects until the end of the input. If it cannot continue, it returns an
// error with its position.
func (d *decoder) decodeObjects() error {
	for !d.sel.done() && !d.b.isFull() {
		d.in.beginObject()
		switch kind := d.in.kind(); kind {
		case '{':
			d.from = d.in.nextOffset()
			o, err := d.decodeObject(d.nextPos(), "")
			if err != nil {
				return d.wrapSyntaxError(err)
			}
			d.b.add(o, d.sel)
		case '[', '"', '0', 't', 'f', 'n':
			d.b.faults.Addf(d.nextPos(), "expected a JSON object, got %s", kindName(kind))
			d.in.skip()
		case end:
			if err := d.in.failed(); err != nil {
				return d.wrapSyntaxError(err)
			}
			return nil
		default:
			d.in.skip() // records the syntax error
		}
	}
	return nil
}

// nextPos returns the position of the next value. The caller must have called d.in.kind for this value.
func (d *decoder) nextPos() diag.Pos { return d.posAt(d.in.nextOffset()) }

func (d *decoder) posAt(offset int64) diag.Pos {
	switch {
	case d.yaml != nil:
		return d.yaml.Pos(int(offset))
	case d.whole:
		return d.base
	}
	return d.in.src.pos(offset)
}

// wrapSyntaxError returns an error of the scanner as a message with position.
func (d *decoder) wrapSyntaxError(err error) error {
	var fault *diag.Error
	var syn *jsontext.SyntacticError
	if errors.As(err, &fault) {
		return err
	}
	if errors.Is(err, errLarge) {
		return diag.Errorf(d.nextPos(), "object larger than %d MiB", maxObject>>20)
	}
	if !errors.As(err, &syn) {
		return diag.Errorf(d.nextPos(), "reading: %w", cmp.Or(errors.Unwrap(err), err)) // removes the prefix "jsontext: "
	}
	pos := d.posAt(d.in.src.from + syn.ByteOffset)
	switch {
	case errors.Is(syn.Err, io.ErrUnexpectedEOF):
		return diag.Errorf(pos, "malformed JSON: the file ends inside an object")
	case errors.Is(syn.Err, jsontext.ErrDuplicateName):
		return diag.Errorf(pos, "malformed JSON: name %q appears twice in one object", syn.JSONPointer.LastToken())
	case strings.HasPrefix(syn.Err.Error(), "invalid escape sequence"), strings.HasPrefix(syn.Err.Error(), "invalid surrogate pair"):
		return diag.Errorf(pos, "malformed JSON: invalid escape sequence in string") // the message of jsontext is not deterministic: it depends on buffer boundaries
	default:
		return diag.Errorf(pos, "malformed JSON: %w", syn.Err)
	}
}

// earlyField is a field that precedes the field "schema" of its object. It is kept undecoded until
// the schema is known.
type earlyField struct {
	name string
	raw  []byte
}

// decodeObject decodes the object at pos. schema is its schema, or "" if it is not known yet. The
// result is valid until the next call.
func (d *decoder) decodeObject(pos diag.Pos, schema string) (*object, error) {
	o := &d.b.object
	*o = object{pos: pos, schema: schema}
	var early []earlyField
	for d.in.enter(); d.in.more(); {
		name := d.in.name()
		switch {
		case string(name) == "schema":
			d.path = append(d.path[:0], step{name: "schema"})
			o.schema = d.text(maxName)
			d.path = d.path[:0]
		case o.schema == "":
			m := earlyField{name: string(name)} // copied, because name is valid only until the next read
			m.raw = bytes.Clone(d.in.raw())
			early = append(early, m)
		default:
			d.b.codecs.schemas[o.schema].decodeField(d, o, name)
		}
	}
	if err := d.in.failed(); err != nil {
		return nil, err
	}
	o.span = d.span()
	return o, d.decodeEarly(o, early)
}

// span returns the byte range of the object in the file. The decoder must have read the object to its end.
func (d *decoder) span() catalog.Span {
	if d.whole {
		return d.b.document
	}
	return catalog.Span{Offset: d.from, Size: d.in.offset() - d.from}
}

// decodeEarly decodes the fields that were kept because they precede the field "schema".
func (d *decoder) decodeEarly(o *object, members []earlyField) error {
	if o.schema == "" {
		return nil
	}
	for _, m := range members {
		sub := d.b.newTextDecoder(d.file, o.pos, m.raw, d.sel)
		if d.b.codecs.schemas[o.schema].decodeField(sub, o, []byte(m.name)); sub.in.failed() != nil {
			return sub.in.failed()
		}
	}
	return nil
}

// step is one step of the path to a value: a field name or a list index.
type step struct {
	name string
	n    int // index, if name is empty
}

// pathText returns the path to the current value, such as "entries[3].name".
func (d *decoder) pathText() string {
	var path strings.Builder
	for i, s := range d.path {
		switch {
		case s.name == "":
			fmt.Fprintf(&path, "[%d]", s.n)
		case i > 0:
			path.WriteString("." + s.name)
		default:
			path.WriteString(s.name)
		}
	}
	return path.String()
}

// text decodes a string with at most limit bytes. Null decodes as "". For any other value it adds a
// fault and returns "".
func (d *decoder) text(limit int) string {
	if d.in.kind() != '"' {
		d.rejectValue("a string")
		return ""
	}
	text := d.in.text()
	if len(text) <= limit {
		return d.b.intern(text)
	}
	if !d.lenient {
		d.fault(d.posAt(d.in.lastOffset()), "%s of %d bytes exceeds the limit of %d", d.pathText(), len(text), limit)
	}
	return ""
}

// fault adds a fault about the current value.
func (d *decoder) fault(pos diag.Pos, format string, args ...any) {
	if d.tolerated == nil {
		d.b.faults.Addf(pos, format, args...)
	} else if len(*d.tolerated) < maxTolerated {
		*d.tolerated = append(*d.tolerated, catalog.LifecycleFault{Pos: pos, Msg: fmt.Sprintf(format, args...)})
	}
}

// rejectValue skips the next value and adds a fault. want describes the expected type, for the
// message. Null is not a fault, except in a lifecycle document.
func (d *decoder) rejectValue(want string) {
	kind := d.in.kind()
	if d.lenient || kind == 'n' && d.tolerated == nil {
		d.in.skip()
		return
	}
	pos := d.nextPos()
	if d.in.skip(); d.in.failed() == nil {
		d.fault(pos, "%s: expected %s, got %s", d.pathText(), want, kindName(kind))
	}
}

// items decodes an array and calls the function read for each element. Null counts as an empty array. An array
// with more than the maximum number of elements (most) is a fault.
func (d *decoder) items(most int, read func(n int)) {
	if !d.enter('[', "an array") {
		return
	}
	for n := 0; d.in.more(); n++ {
		switch {
		case n < most:
			d.path = append(d.path, step{n: n})
			read(n)
			d.path = d.path[:len(d.path)-1]
		case d.lenient:
			d.in.skip()
		case d.tolerated != nil:
			if pos := d.nextPos(); n == most {
				d.fault(pos, "%s: more than %d elements", d.pathText(), most)
			}
			d.in.skip()
		default:
			d.in.fail(diag.Errorf(d.nextPos(), "%s: more than %d elements", d.pathText(), most))
		}
	}
}

// fields decodes an object and calls the function read for each field. This function must consume the value.
// Null counts as an empty object.
func (d *decoder) fields(read func(name []byte)) {
	if !d.enter('{', "an object") {
		return
	}
	for d.in.more() {
		read(d.in.name())
	}
}

// enter consumes the opening bracket of the next value if it is the expected bracket open ('[' or '{'). Otherwise,
// it skips the value, adds a fault, and returns false. want describes the expected type, for the message.
func (d *decoder) enter(open byte, want string) bool {
	if d.in.kind() != open {
		d.rejectValue(want)
		return false
	}
	d.in.enter()
	return true
}

func kindName(kind byte) string {
	switch kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "no JSON"
	}
}
